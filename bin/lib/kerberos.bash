# shellcheck shell=bash
# How a run logs in: checks the keytab, and gets the run its own ticket where Spark cannot log in by itself. Only functions.

# With a keytab Spark logs in and renews by itself, except as a proxy user, which needs a ticket. Without one the user's own
# ticket is used as it is. Sets OWN_TICKET, empty if the run has none.
# shellcheck disable=SC2034 # for the script that sources this
log_in() {
  OWN_TICKET=''
  if [[ -z $PRINCIPAL ]]; then
    [[ -z $NEEDS_TICKET ]] || require_own_ticket
    return 0
  fi
  require_keytab "$KEYTAB"
  if [[ -n $PROXY_USER ]]; then
    get_ticket "$PRINCIPAL" "$KEYTAB"
    OWN_TICKET=yes
  elif type -P kinit >/dev/null; then
    try_keytab "$PRINCIPAL" "$KEYTAB"
  fi
}

# Check that the user has a valid ticket. Java reports a missing one only after several tries, in a stack trace; without klist that must do.
require_own_ticket() {
  type -P klist >/dev/null || return 0
  klist -s </dev/null >/dev/null 2>&1 ||
    die 8 "there is no valid Kerberos ticket [no-ticket]" "run kinit, or set kerberos.principal and kerberos.keytab; klist shows what there is"
}

# Check that the keytab can be read, and by nobody whom its owner has not chosen: who reads it can be this user on all of the cluster. # KEYTAB
require_keytab() {
  local mode
  [[ -f $1 ]] || die 2 "the keytab $1 is not there" "correct kerberos.keytab"
  [[ -r $1 ]] || die 2 "the keytab $1 cannot be read by $(id -un)" "correct its permissions, or kerberos.keytab"
  mode="$(stat -L -c %a -- "$1")"
  [[ $((8#$mode & 8#7)) -eq 0 ]] || die 2 "the keytab $1 is open to every user of this machine (mode $mode)" "chmod o= $(printf '%q' "$1")"
}

# Get a ticket into WORK and point KRB5CCNAME at it. # PRINCIPAL KEYTAB
get_ticket() {
  require_keytab "$2"
  type -P kinit >/dev/null || die 2 "kinit is not on PATH" "install the Kerberos client, or get a ticket and leave kerberos.keytab empty"
  export KRB5CCNAME="FILE:$WORK/ticket"
  ask_for_ticket "$1" "$2" "$KRB5CCNAME"
}

# Report a wrong keytab at once and in one line; Java would print a stack trace. The ticket is not kept. # PRINCIPAL KEYTAB
try_keytab() {
  ask_for_ticket "$1" "$2" "FILE:$WORK/tried"
  rm -f -- "$WORK/tried"
}

# PRINCIPAL KEYTAB CACHE
ask_for_ticket() {
  local answer
  answer="$(kinit -k -t "$2" -c "$3" "$1" 2>&1)" || die 8 "no ticket for $1: $answer" "check the keytab with: klist -kt $(printf '%q' "$2")"
}
