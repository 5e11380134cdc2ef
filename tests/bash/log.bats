#!/usr/bin/env bats
# The copy of a run's log in a file, and the removal of old ones.
# shellcheck disable=SC2154 # bats sets stderr

load helper

bats_require_minimum_version 1.5.0

setup() {
  make_world
  LOGS="$WORLD/the logs"
  LOGGED=(--set "log_dir=$LOGS")
}

@test "log: all of stderr is in a file too, which only the group can read; stdout is not" {
  stub_spark 'echo answer; echo "a step" >&2; exit 6'
  run --separate-stderr "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 6 ]
  [ "$output" = answer ]
  [[ $(ls "$LOGS") =~ ^hivekeeper-analyze-[0-9]{8}T[0-9]{6}Z-[0-9]+\.log$ ]]
  [ "$(cat "$LOGS"/*)" = "$stderr" ]
  [ "$stderr" = $'a step\nhivekeeper: the log of this run is '"$LOGS/$(ls "$LOGS")" ]
  [[ $(ls -l "$LOGS"/*) == -rw-r-----* ]]
  [ -z "$(leftovers)" ]
}

@test "log: a run that succeeds does not speak of it" {
  stub_spark
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

@test "log: our own errors are in it" {
  stub_spark
  run "$RUN" analyze --database sales "${LOGGED[@]}" --set kerberos.principal=x --set kerberos.keytab=/absent
  [ "$status" -eq 2 ]
  grep -q 'the keytab /absent is not there' "$LOGS"/*
}

@test "log: the newest are kept, and only files that a run made are removed" {
  local name
  stub_spark
  mkdir "$LOGS"
  touch "$LOGS/hivekeeper-analyze-20200101T000000Z-4194399.log" "$LOGS/hivekeeper-verify-20200102T000000Z-4194399.log" \
    "$LOGS/hivekeeper-verify-20200103T000000Z-4194399.log" "$LOGS/hivekeeper-notes.log" "$LOGS/hivekeeper-x-20200101T000000Z-1.log.gz"
  ln -s "$WORLD/argv" "$LOGS/hivekeeper-analyze-20190101T000000Z-4194399.log"
  # A run that is still active.
  touch "$LOGS/hivekeeper-analyze-20180101T000000Z-$$.log"
  run "$RUN" analyze --database sales "${LOGGED[@]}" --set log_keep=2
  [ "$status" -eq 0 ]
  for name in verify-20200103T000000Z-4194399.log notes.log x-20200101T000000Z-1.log.gz "analyze-20180101T000000Z-$$.log"; do
    [ -e "$LOGS/hivekeeper-$name" ]
  done
  [ -L "$LOGS/hivekeeper-analyze-20190101T000000Z-4194399.log" ]
  [ ! -e "$LOGS/hivekeeper-analyze-20200101T000000Z-4194399.log" ]
  [ ! -e "$LOGS/hivekeeper-verify-20200102T000000Z-4194399.log" ]
}

@test "log: a directory in which everyone may exchange files is refused, one with the sticky bit is not" {
  stub_spark
  mkdir -m 0777 "$LOGS"
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir $LOGS: everyone may exchange files in it" ]]
  [ ! -e "$ARGV" ]
  [ -z "$(ls -A "$LOGS")" ]
  chmod +t "$LOGS"
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 0 ]
}

@test "log: a group that may exchange files in the directory is one too many, unless it is the owner's private one" {
  stub_spark
  mkdir -m 0775 "$LOGS"
  stub getent 'printf "%s:x:%s:bob\n" "$(id -gn)" "$2"'
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir $LOGS: the group $(id -gn), or users of its ACL, may exchange files in it" ]]
  [ ! -e "$ARGV" ]
  chmod +t "$LOGS"
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 0 ]
}

@test "log: what others may exchange above the directory is refused, too, unless it has the sticky bit" {
  stub_spark
  mkdir -m 777 "$WORLD/shared"
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/shared/own/logs"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir $WORLD/shared/own/logs: everyone may exchange files in $WORLD/shared" ]]
  [ ! -e "$ARGV" ]
  cd "$WORLD/shared"
  run "$RUN" analyze --database sales --set log_dir=own/logs
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir own/logs: everyone may exchange files in $WORLD/shared" ]]
  ln -s shared/own "$WORLD/link"
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/link"
  [ "$status" -eq 2 ]
  chmod +t "$WORLD/shared"
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/shared/own/logs"
  [ "$status" -eq 0 ]
}

@test "log: a directory, or a link, that somebody else has made on the way is refused" {
  [[ $EUID -eq 0 ]] || skip "only root can give a directory away"
  local chown
  chown="$(PATH=$ORIGINAL_PATH type -P chown)"
  stub_spark
  mkdir -m 1777 "$WORLD/shared"
  mkdir "$WORLD/shared/theirs" "$WORLD/own"
  ln -s "$WORLD/own" "$WORLD/shared/link"
  "$chown" -h daemon "$WORLD/shared/theirs" "$WORLD/shared/link"
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/shared/theirs/logs"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir $WORLD/shared/theirs/logs: the owner daemon may exchange files in $WORLD/shared/theirs" ]]
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/shared/link"
  [ "$status" -eq 2 ]
  [ ! -e "$ARGV" ]
  [ -z "$(ls -A "$WORLD/own")" ]
}

@test "log: an ACL that lets others write is refused, also where the group is private; a group above is not" {
  stub_spark
  mkdir -m 775 "$WORLD/team" "$WORLD/team/logs"
  stub getent 'printf "%s:x:%s:\n" "$(id -gn)" "$2"'
  stub stat '"$WORLD/tools/stat" "$@" | sed "s/ [^ ]*\$/ $(id -un)/"'
  export WORLD
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/team/logs"
  [ "$status" -eq 0 ]
  stub ls '"$WORLD/tools/ls" "$@" | sed "s/^\(..........\)/\1+/"'
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/team/logs"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *" users of its ACL, may exchange files in it" ]]
  chmod 755 "$WORLD/team/logs"
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/team/logs"
  [ "$status" -eq 0 ]
}

@test "log: somebody else's directory is refused, whatever its mode" {
  [[ $EUID -eq 0 ]] || skip "only root can give a directory away"
  stub_spark
  mkdir -m 1777 "$LOGS"
  "$(PATH=$ORIGINAL_PATH type -P chown)" daemon "$LOGS"
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir $LOGS: its owner daemon may exchange files in it" ]]
  [ ! -e "$ARGV" ]
  HIVEKEEPER_RELEASE_OWNERS=daemon run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 0 ]
}

@test "log: a directory that somebody else makes just before us is refused" {
  stub_spark
  stub mkdir '[[ ${!#} != "'"$LOGS"'" ]] || "'"$WORLD"'/tools/mkdir" -m 777 "'"$LOGS"'"
exec "'"$WORLD"'/tools/mkdir" "$@"'
  run "$RUN" analyze --database sales "${LOGGED[@]}"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: log_dir $LOGS: everyone may exchange files in it" ]]
  [ -z "$(ls -A "$LOGS")" ]
}

@test "log: what others put there does not push out our own" {
  local name
  stub_spark
  mkdir "$LOGS"
  touch "$LOGS/hivekeeper-verify-20200103T000000Z-4194399.log"
  for name in 99991231T235958Z-1 99991231T235959Z-1; do
    ln -s /dev/null "$LOGS/hivekeeper-x-$name.log"
  done
  run "$RUN" analyze --database sales "${LOGGED[@]}" --set log_keep=2
  [ "$status" -eq 0 ]
  [ -e "$LOGS/hivekeeper-verify-20200103T000000Z-4194399.log" ]
}

@test "log: a directory that cannot be made is one clear error, and nothing is started" {
  stub_spark
  touch "$WORLD/file"
  run "$RUN" analyze --database sales --set "log_dir=$WORLD/file/logs"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: the log $WORLD/file/logs/"*" cannot be written" ]]
  [ ! -e "$ARGV" ]
  [ -z "$(leftovers)" ]
}

@test "log: a signal reaches the driver, and its last words are in the file" {
  local pid code=0
  stub_spark 'trap "echo last words >&2; exit 143" TERM; touch "$ARGV.started"; while :; do sleep 0.05; done'
  heeding_signals "$RUN" analyze --database sales "${LOGGED[@]}" 2>/dev/null 3>&- &
  pid=$!
  wait_for "$ARGV.started"
  kill -s TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 143 ]
  grep -q '^last words$' "$LOGS"/*
  [ -z "$(leftovers)" ]
}

@test "log: a pipe, a link or a file that somebody has put at its place is not used" {
  local there
  mkdir -p "$LOGS"
  # shellcheck disable=SC2016 # expanded by the inner shell
  for there in 'mkfifo "$at"' 'ln -s /dev/null "$at"' 'ln -s "$at.target" "$at"' ': >"$at"'; do
    run env PATH="$ORIGINAL_PATH" timeout 20 bash -c '
      . "$0/common.bash" && . "$0/trust.bash" && . "$0/log.bash"
      require_trusted
      date() { printf 20260101T000000Z; }
      rotate_logs() { :; }
      begin_copy() { :; }
      LOG_DIR="$1" at="$1/hivekeeper-compact-20260101T000000Z-$$.log"
      eval "$2"
      open_log_file compact
    ' "$CHECKOUT/bin/lib" "$LOGS" "$there"
    [ "$status" -eq 2 ]
    [[ $output == *"cannot be written"* ]]
  done
  [[ $(ls -A "$LOGS") != *.hivekeeper.* ]]
}
