#!/usr/bin/env bats
# YARN's cluster mode against a stub of spark3-submit that prints what Spark 3.5 prints, and fetches what a driver has left.
# shellcheck disable=SC2154 # bats sets stderr

load helper

bats_require_minimum_version 1.5.0

setup() {
  make_world
  make_hadoop_conf
  CLUSTER=(--set spark.master=yarn --set spark.deploy_mode=cluster)
  ID=application_1700000000000_0007
}

# spark3-submit: BODY for the application; FsShell returns the file driver-output, LogsCLI the file container.log. # BODY
stub_yarn() {
  # shellcheck disable=SC2016 # expanded when the stub runs
  stub_spark '
case " $* " in
  *FsShell*)
    printf "%s\n" "$*" >>"$ARGV.fetched"
    [[ -e $ARGV.output ]] || { echo "get: \`x.json'"'"': No such file or directory" >&2; exit 1; }
    cp "$ARGV.output" "${!#}"; exit ;;
  *LogsCLI*) cat "$ARGV.container"; exit ;;
esac
printf "%s\0" "$@" >"$ARGV.submitted"
'"$1"
}

# What is encoded in a word, one word a line. # WORD
decode() {
  "$PYTHON" -c 'import base64, sys; print(base64.b64decode(sys.argv[1]).decode().replace("\0", "\n"), end="")' "$1"
}

# What a driver left. # CODE TEXT LOG [FILES]
leave_driver_output() {
  printf '{"version": 1, "code": %s, "text": "%s", "log": "%s", "files": %s}' "$1" "$2" "$3" "${4:-"{}"}" >"$ARGV.output"
}

@test "cluster mode: text, log, files and exit code of the driver come back" {
  stub_yarn "echo 'INFO Client: Submitted application $ID' >&2; exit 1"
  leave_driver_output 6 'the answer\n' 'step=swap done\n' "{\"$WORLD/out.json\": \"{}\\n\", \"/etc/evil\": \"x\"}"
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}" --report-file "$WORLD/out.json"
  [ "$status" -eq 6 ]
  [ "$output" = "the answer" ]
  [[ $stderr == *"Submitted application"*"step=swap done"*"yarn logs -applicationId $ID"* ]]
  [ "$(cat "$WORLD/out.json")" = "{}" ]
  [ ! -e /etc/evil ]
  [ -z "$(leftovers)" ]
}

@test "cluster mode: the driver is told where its output goes, and it is fetched from there" {
  local place
  stub_yarn "echo 'Submitted application $ID' >&2"
  leave_driver_output 0 'done\n' ''
  run "$RUN" analyze --database sales "${CLUSTER[@]}" --set spark.driver_output_dir=hdfs:///outputs/
  [ "$status" -eq 0 ]
  place="$(tr '\0' '\n' <"$ARGV.submitted" | sed -n 's/^spark.yarn.appMasterEnv.HIVEKEEPER_DRIVER_OUTPUT=//p')"
  [[ $place =~ ^hdfs:///outputs/[0-9]{8}t[0-9]{6}z-[0-9a-f]{16}\.json$ ]]
  [[ "$(cat "$ARGV.fetched")" == *" spark-internal -get $place "* ]]
}

@test "cluster mode: the driver's output is fetched by whom the run is" {
  touch "$WORLD/key.tab"
  chmod 600 "$WORLD/key.tab"
  stub kinit 'echo ticket >"${5#FILE:}"'
  local keytab=(--set kerberos.principal=etl@X --set "kerberos.keytab=$WORLD/key.tab")
  stub_yarn "echo 'Submitted application $ID' >&2"
  leave_driver_output 0 'done\n' ''
  run "$RUN" analyze --database sales "${CLUSTER[@]}" "${keytab[@]}"
  [ "$status" -eq 0 ]
  run "$RUN" analyze --database sales "${CLUSTER[@]}" "${keytab[@]}" --proxy-user loader
  [ "$status" -eq 0 ]
  [[ "$(sed -n 1p "$ARGV.fetched")" == *"--principal etl@X --keytab $WORLD/key.tab --class"* ]]
  [[ "$(sed -n 2p "$ARGV.fetched")" == *"--proxy-user loader --class"* ]]
}

@test "cluster mode: without the driver's output the exit code is what spark-submit says of the driver's, and the log's lines are shown" {
  stub_yarn "echo 'Submitted application $ID' >&2; echo 'ERROR Client: Application diagnostics message: User application exited with status 5' >&2; exit 1"
  printf 'INFO a\nhivekeeper: it differs\n  state: untouched\n  next:  look\nINFO b\n' >"$ARGV.container"
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}"
  [ "$status" -eq 5 ]
  [[ $stderr == *$'hivekeeper: it differs\n  state: untouched\n  next:  look\nhivekeeper: the driver ended with exit code 5'* ]]
  [[ $stderr == *"yarn logs -applicationId $ID"* ]]
  [ -z "$output" ]
  [ -z "$(leftovers)" ]
}

@test "cluster mode: what was never started is exit 2 or 8, in Java's own words, and nothing is fetched" {
  stub_yarn 'echo "Exception in thread \"main\" org.apache.hadoop.yarn.exceptions.YarnException: unknown queue: nosuch" >&2; exit 1'
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}"
  [ "$status" -eq 2 ]
  [[ $stderr == *"hivekeeper: nothing was started on YARN: YarnException: unknown queue: nosuch"* ]]
  [ ! -e "$ARGV.fetched" ]
}

@test "cluster mode: a name that YARN quotes from the driver's log does not keep what the driver has left from being fetched" {
  stub_yarn "printf 'Submitted application $ID\nLast 4096 bytes of stderr :\nreason=a file looks unfinished (Failed to submit x.tmp)\n' >&2
    printf 'Exception in thread \"main\" x: Failed to submit x.tmp\nCaused by: x: Failed to submit ${ID}8 to YARN\n' >&2; exit 1"
  leave_driver_output 7 'the answer\n' ''
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}"
  [ "$status" -eq 7 ]
  [ "$output" = "the answer" ]
}

@test "cluster mode: an application that was not accepted left nothing to fetch" {
  stub_yarn "printf 'Submitted application $ID\nException in thread \"main\" org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit $ID to YARN : unknown queue: nosuch\n' >&2; exit 1"
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}"
  [ "$status" -eq 2 ]
  [ ! -e "$ARGV.fetched" ]
}

@test "cluster mode: nor did one of a proxy user, for whom Java wraps what YARN says" {
  stub_yarn "printf 'Submitted application $ID\nException in thread \"main\" java.lang.reflect.UndeclaredThrowableException\nCaused by: org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit $ID to YARN : unknown queue: nosuch\n' >&2; exit 1"
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}"
  [ "$status" -eq 2 ]
  [ ! -e "$ARGV.fetched" ]
}

@test "cluster mode: an application that was killed is 143" {
  stub_yarn "echo 'Exception in thread \"main\" org.apache.spark.SparkException: Application $ID is killed' >&2; exit 1"
  touch "$ARGV.container"
  run --separate-stderr "$RUN" analyze --database sales "${CLUSTER[@]}"
  [ "$status" -eq 143 ]
  [[ $stderr == *"hivekeeper: $ID was killed on YARN"* ]]
}

@test "cluster mode: an interrupt leaves the application, says so and how to stop it, and is 128+n" {
  local pid code=0
  stub_yarn "echo 'Submitted application $ID' >&2; trap 'exit 143' TERM; touch \"\$ARGV.started\"; while :; do sleep 0.05; done"
  heeding_signals "$RUN" analyze --database sales "${CLUSTER[@]}" 2>"$WORLD/err" 3>&- &
  pid=$!
  wait_for "$ARGV.started"
  kill -s TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 143 ]
  grep -q "$ID goes on in YARN" "$WORLD/err"
  grep -q "yarn application -kill $ID" "$WORLD/err"
  [ ! -e "$ARGV.fetched" ]
  [ -z "$(leftovers)" ]
}

@test "cluster mode: words that a shell reads otherwise go to the driver encoded, others as they are" {
  local words=(analyze --table 'sales.e`touch ran`' --where "dt <> '}}'" "${CLUSTER[@]}") sent
  stub_yarn "echo 'Submitted application $ID' >&2"
  leave_driver_output 0 'done\n' ''
  run "$RUN" "${words[@]}"
  [ "$status" -eq 0 ]
  mapfile -d '' -t sent <"$ARGV.submitted"
  [ "${#sent[@]}" -gt 3 ]
  sent=("${sent[@]: -3}")
  [[ ${sent[0]} == *.py && ${sent[1]} == carried-words ]]
  [ "$(decode "${sent[2]}")" = "$(printf '%s\n' "${words[@]}")" ]
  run "$RUN" analyze --table sales.events "${CLUSTER[@]}"
  [ "$status" -eq 0 ]
  mapfile -d '' -t sent <"$ARGV.submitted"
  [[ "${sent[*]: -8}" == *".py analyze --table sales.events ${CLUSTER[*]}" ]]
  [[ " ${sent[*]} " != *" carried-words "* ]]
}

@test "cluster mode: --print shows no secret, encoded or not" {
  local secret=--set=spark.extra_conf.spark.hadoop.my.secret=hunter2 words
  stub_spark
  run "$RUN" --print analyze --table 'sales.a b' "${CLUSTER[@]}" "$secret"
  [ "$status" -eq 0 ]
  [ "${lines[${#lines[@]} - 2]}" = carried-words ]
  [[ $output != *hunter2* ]]
  words="$(decode "${lines[${#lines[@]} - 1]}")"
  [[ $words == *--set=spark.extra_conf.spark.hadoop.my.secret=*redacted* && $words != *hunter2* ]]
}

@test "cluster mode: a file of tables is shipped with the run" {
  stub_yarn "echo 'Submitted application $ID' >&2"
  leave_driver_output 0 '' ''
  echo sales.events >"$WORLD/my tables"
  run "$RUN" analyze --tables-file "$WORLD/my tables" "${CLUSTER[@]}"
  [ "$status" -eq 0 ]
  tr '\0' '\n' <"$ARGV.submitted" | grep -q 'my%20tables#hivekeeper-tables.txt'
}
