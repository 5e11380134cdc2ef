# shellcheck shell=bash
# A Kerberos ticket for one run, in a cache that nobody else uses. Only functions.

# Get a ticket into WORK and point KRB5CCNAME at it. # PRINCIPAL KEYTAB
get_ticket() {
  local principal="$1" keytab="$2" answer
  [[ -f $keytab ]] || die 2 "the keytab $keytab is not there" "correct kerberos.keytab"
  [[ -r $keytab ]] || die 2 "the keytab $keytab cannot be read by $(id -un)" "correct its permissions, or kerberos.keytab"
  type -P kinit >/dev/null || die 2 "kinit is not on PATH" "install the Kerberos client, or get a ticket and leave kerberos.keytab empty"
  export KRB5CCNAME="FILE:$WORK/ticket"
  answer="$(kinit -k -t "$keytab" "$principal" 2>&1)" || die 8 "no ticket for $principal: $answer" "check the keytab with: klist -kt $keytab"
}
