#!/usr/bin/env bats
# The launcher against stubs of spark3-submit, java and kinit, with the real archive.

load helper

bats_require_minimum_version 1.5.0

setup() {
  make_world
  make_hadoop_conf
}

@test "launcher: every argument arrives whole and in its place" {
  stub_spark
  local nasty=("a b" "it's" 'say "x"' '$HOME' 'a;b' '`id`' $'two\nlines' '*' 'back\slash' '')
  local arguments=() word
  for word in "${nasty[@]}"; do
    arguments+=(--exclude "$word")
  done
  run "$RUN" analyze --database sales "${arguments[@]}"
  [ "$status" -eq 0 ]
  read_arrived
  local count=${#ARRIVED[@]} at
  at=$((count - ${#arguments[@]} - 3))
  [ "${ARRIVED[at - 1]}" = "$WORLD/app/dist/hivekeeper.py" ]
  [ "${ARRIVED[at]}" = analyze ]
  for ((word = 0; word < ${#arguments[@]}; word++)); do
    [ "${ARRIVED[at + 3 + word]}" = "${arguments[word]}" ]
  done
}

@test "launcher: the archive that is configured is submitted, in place of the local one" {
  stub_spark
  run "$RUN" analyze --database sales --set spark.archive=hdfs:///apps/hivekeeper.py
  [ "$status" -eq 0 ]
  read_arrived
  arrived hdfs:///apps/hivekeeper.py
  run ! arrived "$WORLD/app/dist/hivekeeper.py"
}

@test "launcher: a configured value with blanks, quotes and a newline arrives as one argument" {
  stub_spark
  printf 'spark:\n  master: yarn\n  queue: night run\n  extra_conf: {spark.x: "it'\''s $HOME; \\"q\\"\\nnext"}\n' >"$WORLD/mine.yaml"
  run "$RUN" analyze --database sales -c "$WORLD/mine.yaml"
  [ "$status" -eq 0 ]
  read_arrived
  arrived "night run"
  arrived $'spark.x=it\'s $HOME; "q"\nnext'
}

@test "launcher: site.yaml beside it is read, and HIVEKEEPER_CONF_DIR names another place" {
  stub_spark
  printf 'spark: {master: yarn, queue: beside}\n' >"$WORLD/app/conf/site.yaml"
  run "$RUN" analyze --database sales
  read_arrived
  arrived beside
  mkdir "$WORLD/etc"
  printf 'spark: {master: yarn, queue: elsewhere}\n' >"$WORLD/etc/site.yaml"
  HIVEKEEPER_CONF_DIR="$WORLD/etc" run "$RUN" analyze --database sales
  read_arrived
  arrived elsewhere
}

@test "launcher: the driver's exit code passes through" {
  local code
  for code in 0 1 3 6 7 143; do
    stub_spark "exit $code"
    run "$RUN" analyze --database sales
    [ "$status" -eq "$code" ]
  done
}

@test "launcher: nothing of it is left in the temporary directory" {
  stub_spark
  "$RUN" analyze --database sales
  "$RUN" --print analyze --database sales
  run "$RUN" analyze --no-such-option
  [ "$status" -eq 2 ]
  [ -z "$(leftovers)" ]
}

@test "launcher: a temporary directory that cannot be written to is said before anything is started" {
  stub_spark
  # Root may write anywhere except below a file.
  printf 'full' >"$WORLD/file"
  TMPDIR="$WORLD/file" run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [[ "$output" == *"hivekeeper: no temporary directory can be made in $WORLD/file"*"set TMPDIR to a directory that is writable"* ]]
  [ ! -e "$ARGV" ]
}

@test "launcher: a temporary directory in which others could exchange what the launcher reads and starts is refused" {
  stub_spark
  chmod 777 "$WORLD/tmp"
  run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: TMPDIR $WORLD/tmp: everyone may exchange files in it" ]]
  [ ! -e "$ARGV" ]
  [ -z "$(ls "$WORLD/tmp")" ]
  chmod +t "$WORLD/tmp"
  run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
}

@test "launcher: nor one below a directory in which others could exchange it" {
  stub_spark
  mkdir -m 777 "$WORLD/shared"
  mkdir -m 700 "$WORLD/shared/mine"
  TMPDIR="$WORLD/shared/mine" run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: TMPDIR $WORLD/shared/mine: everyone may exchange files in $WORLD/shared" ]]
  [ ! -e "$ARGV" ]
}

@test "launcher: a link to it works" {
  stub_spark
  ln -s "$RUN" "$WORLD/stubs/hk"
  run hk analyze --database sales
  [ "$status" -eq 0 ]
  read_arrived
  arrived "$WORLD/app/dist/hivekeeper.py"
}

@test "launcher: --print shows the command, one argument a line, and runs nothing" {
  stub_spark
  stub kinit 'touch "$ARGV"'
  run "$RUN" --print analyze --database 'a b' --set kerberos.principal=etl@X --set kerberos.keytab=/absent
  [ "$status" -eq 0 ]
  [ ! -e "$ARGV" ]
  [ "${lines[0]}" = "$(printf '%q' "$WORLD/stubs/spark3-submit")" ]
  [ "${lines[${#lines[@]} - 7]}" = analyze ]
  [ "${lines[${#lines[@]} - 5]}" = 'a\ b' ]
}

@test "launcher: help comes from its header and lists the subcommands" {
  run "$RUN" --help
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "Usage: hivekeeper [--print] SUBCOMMAND [OPTIONS]" ]
  [[ $output == *compact-swap* ]]
}

@test "launcher: help is there without an archive" {
  rm "$WORLD/app/dist/hivekeeper.py"
  run "$RUN" --help
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "Usage: hivekeeper [--print] SUBCOMMAND [OPTIONS]" ]
}

@test "launcher: config, version, help and wrong usage answer without Spark and Java" {
  run "$RUN" config
  [ "$status" -eq 0 ]
  [[ $output == *block_size* ]]
  run "$RUN" --version
  [ "$status" -eq 0 ]
  [[ $output == "hivekeeper "* ]]
  run "$RUN" analyze --help
  [ "$status" -eq 0 ]
  [[ $output == *--database* ]]
  run "$RUN" analyze --tabel a.b
  [ "$status" -eq 2 ]
  run "$RUN" no-such-word
  [ "$status" -eq 2 ]
}

@test "launcher: wrong usage gives the document or the properties that were asked for" {
  "$RUN" analyze --json >"$WORLD/out" 2>/dev/null || [ $? -eq 2 ]
  grep -q '"exit_code": 2' "$WORLD/out"
  "$RUN" analyze --properties-out - >"$WORLD/out" 2>/dev/null || [ $? -eq 2 ]
  grep -qx 'hivekeeper.exit_code=2' "$WORLD/out"
}

@test "launcher: a wrong configuration is refused before anything is started" {
  stub_spark
  run "$RUN" analyze --database sales --set blok_size_mb=1
  [ "$status" -eq 2 ]
  [[ $output == *"did you mean block_size_mb?"* ]]
  [ ! -e "$ARGV" ]
}

@test "launcher: no subcommand is wrong usage" {
  run "$RUN"
  [ "$status" -eq 2 ]
  [[ $output == *"no subcommand given"* ]]
}

@test "launcher: a missing archive is one clear error" {
  rm "$WORLD/app/dist/hivekeeper.py"
  run "$RUN" config
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: dist/hivekeeper.py is missing" ]
}

@test "launcher: the archive of a release bundle lies in lib" {
  mkdir "$WORLD/app/lib"
  mv "$WORLD/app/dist/hivekeeper.py" "$WORLD/app/lib"
  run "$RUN" --version
  [ "$status" -eq 0 ]
}

@test "python: a program that is not there is one clear error" {
  HIVEKEEPER_PYTHON=/absent/python run "$RUN" config
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: HIVEKEEPER_PYTHON is /absent/python, which is not a program" ]
}

@test "python: the first one on PATH that is new enough is taken" {
  stub python3 'exit 1'
  ln -s "$PYTHON" "$WORLD/stubs/python3.11"
  HIVEKEEPER_PYTHON='' run "$RUN" --print config
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "$(printf '%q' "$WORLD/stubs/python3.11")" ]
}

@test "python: none that is new enough is one clear error" {
  stub python3 'exit 1'
  HIVEKEEPER_PYTHON='' run "$RUN" config
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: no Python 3.9 or newer on PATH" ]
}

@test "java: none at all is one clear error" {
  stub_spark
  rm "$WORLD/stubs/java"
  run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: no Java found: JAVA_HOME is not set and java is not on PATH" ]
  [ ! -e "$ARGV" ]
}

@test "java: a JAVA_HOME without java is one clear error" {
  stub_spark
  JAVA_HOME=/absent run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: JAVA_HOME is /absent, but bin/java is not there" ]
}

@test "java: a configured one reaches spark-submit" {
  stub_spark 'printf "%s" "$JAVA_HOME" >"$ARGV.java"'
  mkdir -p "$WORLD/jdk/bin"
  cp "$WORLD/stubs/java" "$WORLD/jdk/bin/java"
  run "$RUN" analyze --database sales --set "spark.java_home=$WORLD/jdk"
  [ "$status" -eq 0 ]
  [ "$(cat "$ARGV.java")" = "$WORLD/jdk" ]
}

@test "hadoop: a directory that is none, or holds no core-site.xml, is one clear error before anything is started" {
  local name
  stub_spark
  mkdir "$WORLD/empty"
  for name in HADOOP_CONF_DIR YARN_CONF_DIR; do
    run env "$name=/absent" "$RUN" analyze --database sales --set spark.master=yarn
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "hivekeeper: $name is /absent, which is not a directory" ]
    run env "$name=$WORLD/empty" "$RUN" analyze --database sales --set spark.master=yarn
    [ "$status" -eq 2 ]
    [[ ${lines[0]} == "hivekeeper: $name is $WORLD/empty, which holds no core-site.xml"* ]]
  done
  [ ! -e "$ARGV" ]
  [ -z "$(leftovers)" ]
}

@test "hadoop: with a plain Spark it must be set, or come from its spark-env.sh" {
  stub_spark
  unset HADOOP_CONF_DIR
  mkdir -p "$WORLD/spark/bin" "$WORLD/spark/conf"
  cp "$WORLD/stubs/spark3-submit" "$WORLD/spark/bin/spark-submit"
  cp "$WORLD/stubs/spark3-submit" "$WORLD/spark/bin/spark-class"
  run env "SPARK_HOME=$WORLD/spark" "$RUN" analyze --database sales --set spark.master=yarn
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: HADOOP_CONF_DIR is not set, and $WORLD/spark/conf/spark-env.sh does not set it" ]
  echo 'export HADOOP_CONF_DIR=/etc/hadoop/conf' >"$WORLD/spark/conf/spark-env.sh"
  run env "SPARK_HOME=$WORLD/spark" "$RUN" analyze --database sales --set spark.master=yarn
  [ "$status" -eq 0 ]
  # What a distribution's launcher sets is not known.
  rm "$WORLD/spark/bin/spark-class"
  run "$RUN" analyze --database sales --set spark.master=yarn
  [ "$status" -eq 0 ]
}

@test "hadoop: a local master needs none" {
  stub_spark
  HADOOP_CONF_DIR=/absent run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
}

@test "spark-submit: none at all is one clear error" {
  stub java 'exit 99'
  run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: neither spark3-submit nor spark-submit found" ]
}

@test "spark-submit: configured beats SPARK_HOME beats PATH" {
  stub_spark
  mkdir -p "$WORLD/spark/bin"
  cp "$WORLD/stubs/spark3-submit" "$WORLD/spark/bin/spark-submit"
  cp "$WORLD/stubs/spark3-submit" "$WORLD/stubs/mine"
  run "$RUN" --print analyze --database sales
  [ "${lines[0]}" = "$(printf '%q' "$WORLD/stubs/spark3-submit")" ]
  SPARK_HOME="$WORLD/spark" run "$RUN" --print analyze --database sales
  [ "${lines[0]}" = "$(printf '%q' "$WORLD/spark/bin/spark-submit")" ]
  SPARK_HOME="$WORLD/spark" run "$RUN" --print analyze --database sales --set spark.submit_command=mine
  [ "${lines[0]}" = "$(printf '%q' "$WORLD/stubs/mine")" ]
}

@test "spark-submit: a SPARK_HOME without it is one clear error" {
  stub java 'exit 99'
  SPARK_HOME=/absent run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: SPARK_HOME is /absent, but bin/spark-submit is not there" ]
}

@test "launcher: --print masks what Spark would mask, and a run gets it" {
  stub_spark
  local secret=(--set spark.extra_conf.spark.ssl.keyPassword=hunter2 --set "spark.extra_conf.spark.driver.extraJavaOptions=-Da.token=hunter2" --set spark.extra_conf.spark.z=seen)
  secret+=(--set=spark.extra_conf.spark.hadoop.my.secret=hunter2)
  run "$RUN" --print analyze --database sales "${secret[@]}"
  [ "$status" -eq 0 ]
  [[ $output != *hunter2* ]]
  [[ $output == *'spark.ssl.keyPassword=\*\*'*'redacted'* ]]
  [[ $output == *'spark.z=seen'* ]]
  run "$RUN" --print analyze --database sales --set=spark.extra_conf.spark.hadoop.my.secret=hunter2
  [[ ${lines[${#lines[@]} - 1]} == '--set=spark.extra_conf.spark.hadoop.my.secret=\*\*'*'redacted'* ]]
  run "$RUN" analyze --database sales "${secret[@]}"
  read_arrived
  arrived spark.extra_conf.spark.ssl.keyPassword=hunter2
}

@test "launcher: a secret of site.yaml is in no command line, which all users of the machine can read" {
  stub_spark
  printf 'spark: {extra_conf: {spark.hadoop.fs.s3a.secret.key: hunter2, spark.z: seen}}\n' >"$WORLD/app/conf/site.yaml"
  run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
  read_arrived
  arrived spark.z=seen
  [[ ${ARRIVED[*]} != *hunter2* ]]
}
