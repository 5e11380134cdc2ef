# shellcheck shell=bash
# What every launcher needs: help, errors, a private directory, signals passed on to a child. Only functions.

# Print the comment at the top of the script, so that help and comment cannot differ.
usage() {
  sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
}

# Say what is wrong and what to do, and exit with a code. # CODE WHAT [NEXT]
die() {
  printf 'hivekeeper: %s\n' "$2" >&2
  [[ -z ${3:-} ]] || printf '  state: nothing was started\n  next:  %s\n' "$3" >&2
  exit "$1"
}

# Make WORK, a directory that only this user can enter, removed when the script ends.
make_work_directory() {
  # Exchanged for another one, it would say what is started.
  require_sole_use "${TMPDIR:-/tmp}" TMPDIR
  WORK="$(mktemp -d "${TMPDIR:-/tmp}/hivekeeper.XXXXXX")" ||
    die 2 "no temporary directory can be made in ${TMPDIR:-/tmp}" "set TMPDIR to a directory that is writable"
  trap remove_work_directory EXIT
}

# Remove WORK. Call it before exec too, which skips the trap.
remove_work_directory() {
  [[ -z ${WORK:-} ]] || rm -rf -- "$WORK"
}

# Run a command, pass signals on to it, and set STATUS and RECEIVED, the number of the last signal or 0; for cases where something
# follows, so that exec cannot be used.
# shellcheck disable=SC2034 # for the script that sources this
run_child() {
  RECEIVED=0 CHILD=''
  # A shell without job control starts its children with INT ignored, so ask them to end by TERM.
  trap 'forward TERM 2' INT
  trap 'forward TERM 15' TERM
  trap 'forward HUP 1' HUP
  "$@" <&0 &
  CHILD=$!
  # A signal that came before there was a child to pass it on to.
  [[ $RECEIVED -eq 0 ]] || forward TERM "$RECEIVED"
  while :; do
    SIGNALLED=no STATUS=0
    wait "$CHILD" || STATUS=$?
    [[ $SIGNALLED == yes ]] || break
  done
  trap - INT TERM HUP
}

# Pass a signal on to the child. # SIGNAL NUMBER-RECEIVED
# shellcheck disable=SC2034 # RECEIVED is for the script that sources this
forward() {
  SIGNALLED=yes RECEIVED="$2"
  [[ -z $CHILD ]] || kill -s "$1" "$CHILD" 2>/dev/null || true
}
