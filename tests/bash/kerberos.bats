#!/usr/bin/env bats
# Tickets and signals: a stub of kinit writes the requested cache.

load helper

bats_require_minimum_version 1.5.0

setup() {
  make_world
  touch "$WORLD/etl key.tab"
  chmod 640 "$WORLD/etl key.tab"
  TICKET=(--set kerberos.principal=etl@EXAMPLE.COM --set "kerberos.keytab=$WORLD/etl key.tab")
  stub kinit 'printf "%s\0" "$@" >"$ARGV.kinit"; echo ticket >"${5#FILE:}"'
  PROXY=(--proxy-user loader)
}

@test "keytab: it is tried, and Spark logs in with it by itself: no ticket is left, and the user's cache is not touched" {
  stub_spark 'printf "%s" "$KRB5CCNAME" >"$ARGV.cache"; exit 6'
  KRB5CCNAME=FILE:/mine run "$RUN" analyze --database sales "${TICKET[@]}"
  [ "$status" -eq 6 ]
  [[ $(tr '\0' '|' <"$ARGV.kinit") == "-k|-t|$WORLD/etl key.tab|-c|FILE:$WORLD/tmp/"*"|etl@EXAMPLE.COM|" ]]
  [ "$(cat "$ARGV.cache")" = FILE:/mine ]
  [ -z "$(leftovers)" ]
  read_arrived
  arrived --keytab
  arrived "$WORLD/etl key.tab"
}

@test "keytab: a machine without kinit leaves the trial to Spark" {
  stub_spark
  rm "$WORLD/stubs/kinit"
  run "$RUN" analyze --database sales "${TICKET[@]}"
  [ "$status" -eq 0 ]
}

@test "proxy user: the ticket lies in a cache of the run's own, which the driver sees and which is removed" {
  stub_spark 'printf "%s" "$KRB5CCNAME" >"$ARGV.cache"; cat "${KRB5CCNAME#FILE:}" >"$ARGV.ticket"; exit 6'
  run "$RUN" analyze --database sales "${TICKET[@]}" "${PROXY[@]}"
  [ "$status" -eq 6 ]
  [ "$(cat "$ARGV.ticket")" = ticket ]
  [[ $(cat "$ARGV.cache") == "FILE:$WORLD/tmp/"* ]]
  [ -z "$(leftovers)" ]
  read_arrived
  arrived --proxy-user
  run ! arrived --keytab
  run ! arrived --principal
}

@test "ticket: a missing keytab is one clear error, and nothing is started" {
  stub_spark
  rm "$WORLD/etl key.tab"
  run "$RUN" analyze --database sales "${TICKET[@]}"
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: the keytab $WORLD/etl key.tab is not there" ]
  [ ! -e "$ARGV" ]
  [ ! -e "$ARGV.kinit" ]
  [ -z "$(leftovers)" ]
}

@test "ticket: a keytab that is open to everybody is not used" {
  local mode
  stub_spark
  ln -s "etl key.tab" "$WORLD/link.tab"
  for mode in 604 602; do
    chmod "$mode" "$WORLD/etl key.tab"
    run "$RUN" analyze --database sales "${TICKET[@]}" --set "kerberos.keytab=$WORLD/link.tab"
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "hivekeeper: the keytab $WORLD/link.tab is open to every user of this machine (mode $mode)" ]
    [[ $output == *"next:  chmod o= "* ]]
    [ ! -e "$ARGV" ]
    [ ! -e "$ARGV.kinit" ]
  done
}

@test "ticket: a refusing KDC is exit 8, with its words" {
  stub_spark
  stub kinit 'echo "kinit: Preauthentication failed" >&2; exit 1'
  run "$RUN" analyze --database sales "${TICKET[@]}"
  [ "$status" -eq 8 ]
  [ "${lines[0]}" = "hivekeeper: no ticket for etl@EXAMPLE.COM: kinit: Preauthentication failed" ]
  [ ! -e "$ARGV" ]
  [ -z "$(leftovers)" ]
}

@test "proxy user: with a keytab a machine without kinit is one clear error" {
  stub_spark
  rm "$WORLD/stubs/kinit"
  run "$RUN" analyze --database sales "${TICKET[@]}" "${PROXY[@]}"
  [ "$status" -eq 2 ]
  [ "${lines[0]}" = "hivekeeper: kinit is not on PATH" ]
}

@test "ticket: without a keytab the user's own cache is left as it is" {
  stub_spark 'printf "%s" "$KRB5CCNAME" >"$ARGV.cache"'
  KRB5CCNAME=FILE:/mine run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
  [ "$(cat "$ARGV.cache")" = FILE:/mine ]
  [ ! -e "$ARGV.kinit" ]
}

@test "ticket: the driver still has standard input" {
  stub_spark 'cat >"$ARGV.stdin"'
  "$RUN" analyze --database sales "${TICKET[@]}" "${PROXY[@]}" <<<"hello"
  [ "$(cat "$ARGV.stdin")" = hello ]
}

# Start a run that waits for TERM, send a signal to the launcher, and set CODE. # SIGNAL OPTIONS…
signal_a_run() {
  local signal="$1" pid
  shift
  # The child is slow to end: the launcher must wait for it.
  stub_spark 'trap "sleep 0.3; touch \"$ARGV.ended\"; exit 143" TERM HUP; touch "$ARGV.started"; while :; do sleep 0.05; done'
  heeding_signals "$RUN" analyze --database sales "$@" 3>&- &
  pid=$!
  wait_for "$ARGV.started"
  kill -s "$signal" "$pid"
  CODE=0
  wait "$pid" || CODE=$?
}

@test "signal: TERM reaches the driver, whose exit code passes through" {
  signal_a_run TERM
  [ "$CODE" -eq 143 ]
  [ -e "$ARGV.ended" ]
}

@test "signal: with a ticket too, and the cache is removed after the driver has ended" {
  local signal
  for signal in TERM HUP; do
    rm -f "$ARGV".*
    signal_a_run "$signal" "${TICKET[@]}" "${PROXY[@]}"
    [ "$CODE" -eq 143 ]
    [ -e "$ARGV.ended" ]
    [ -z "$(leftovers)" ]
  done
}

# Make the cluster require tickets. # exit code of klist
secure() {
  [[ -d $WORLD/hadoop ]] || make_hadoop_conf
  printf '<configuration><property><name>hadoop.security.authentication</name><value>kerberos</value></property></configuration>' >"$WORLD/hadoop/core-site.xml"
  stub_spark
  stub klist "[ \"\$1\" = -s ] && exit $1"
}

@test "ticket: none at all is one line that says kinit, and nothing is started" {
  secure 1
  run "$RUN" analyze --database sales
  [ "$status" -eq 8 ]
  [ "${lines[0]}" = "hivekeeper: there is no valid Kerberos ticket [no-ticket]" ]
  [[ $output == *"next:  run kinit, or set kerberos.principal and kerberos.keytab"* ]]
  [ "${#lines[@]}" -eq 3 ]
  [ ! -e "$ARGV" ]
}

@test "ticket: one of the user's own, a token or a cluster without Kerberos needs no word" {
  secure 0
  run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
  secure 1
  HADOOP_TOKEN_FILE_LOCATION=/tokens run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
  run "$RUN" --print analyze --database sales
  [ "$status" -eq 0 ]
  printf '<configuration/>' >"$WORLD/hadoop/core-site.xml"
  run "$RUN" analyze --database sales
  [ "$status" -eq 0 ]
}
