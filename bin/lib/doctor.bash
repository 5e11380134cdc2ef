# shellcheck shell=bash
# The checks of this machine that must work without Python; the archive does all others (edge-checks). Only functions. Each check
# reports one line and never ends the script.

# Forget all findings.
begin_findings() {
  declare -gA LEVELS=()
  FOUND=()
}

# Run the checks that the archive cannot do.
check_without_python() {
  check_bash
  check_archive
  check_python
  check_temp_dir
}

# Record one finding for the archive. # LEVEL NAME WHAT [NEXT]
note() {
  LEVELS[$2]="$1"
  FOUND+=("found=$1 $2 $3${4:+ → $4}")
}

# Record one finding and, unless a document is wanted, print it. # LEVEL NAME WHAT [NEXT]
report() {
  note "$@"
  [[ $AS_JSON == no ]] || return 0
  printf '%-5s %-16s %s\n' "$1" "$2" "$3"
  [[ -z ${4:-} ]] || printf '      → %s\n' "$4"
}

# Call a function that may die, in a subshell first. If it dies, set WRONG and REMEDY to its message. # FUNCTION [ARGUMENTS]
attempt() {
  local said
  WRONG='' REMEDY=''
  if said="$("$@" 2>&1 >/dev/null)"; then
    "$@" >/dev/null
    return
  fi
  # Other programs may have written before it.
  WRONG="${said##*hivekeeper: }"
  WRONG="${WRONG%%$'\n'*}"
  [[ $said != *'next:  '* ]] || REMEDY="${said##*next:  }"
  return 1
}

# RHEL 7 has bash 4.2.
check_bash() {
  if ((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 2))); then
    report ok bash "${BASH_VERSION%%(*}"
  else
    report fix bash "$BASH_VERSION is too old" "install bash 4.2 or newer and put it first on PATH"
  fi
}

check_archive() {
  if attempt find_archive; then
    report ok archive "$ARCHIVE"
  else
    report fix archive "$WRONG" "$REMEDY"
  fi
}

check_python() {
  local version
  if ! attempt find_python; then
    report fix python "$WRONG" "$REMEDY"
  elif ! version="$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3]); sys.exit(sys.version_info < (3, 9))' 2>/dev/null)"; then
    report fix python "${version:-no version} at $PYTHON" "set HIVEKEEPER_PYTHON to Python 3.9 or newer"
  else
    report ok python "$version at $PYTHON"
  fi
}

# Also makes WORK, which reading the configuration needs.
check_temp_dir() {
  if attempt make_work_directory; then
    report ok temp-dir "${TMPDIR:-/tmp}"
  else
    report fix temp-dir "$WRONG" "$REMEDY"
  fi
}

# Whether the archive can do the other checks.
can_use_archive() {
  [[ ${LEVELS[archive]} == ok && ${LEVELS[python]} == ok ]]
}

# Report the checks that the archive would have done; without Python there is no document. # EDGE-ONLY
report_without_archive() {
  local name needed=archive
  [[ ${LEVELS[archive]} != ok ]] || needed=python
  [[ $AS_JSON == no ]] ||
    die 2 "without the archive and a usable Python there is no document" "run it without --json to see what to fix"
  for name in configuration spark java hadoop-conf yarn-conf hive-conf keytab ticket log-dir files; do
    report skip "$name" "needs $needed"
  done
  [[ $1 == yes ]] || report skip cluster "not checked: fix what is reported above first"
}

# Let the archive do the other checks, given what the launcher finds for a run. Sets STATUS; leaves WORK/checks if the cluster
# can be checked too. # EDGE-ONLY [OPTIONS]
check_with_archive() {
  local edge_only="$1" facts=()
  shift
  find_as_for_a_run "$@"
  [[ -z ${WORK:-} ]] || facts+=("hand_over=$WORK/checks")
  STATUS=0
  "$PYTHON" "$ARCHIVE" edge-checks "edge_only=$edge_only" "${FOUND[@]}" ${facts[@]+"${facts[@]}"} \
    "spark_submit=${SPARK_SUBMIT:-}" ${SHIPPED[@]+"${SHIPPED[@]/#/shipped=}"} -- doctor "$@" || STATUS=$?
}

# Set SPARK_SUBMIT, SHIPPED and the environment as bin/hivekeeper does, and record what would stop it. The archive itself finds
# what is wrong with the configuration. # [OPTIONS]
find_as_for_a_run() {
  SHIPPED=()
  if ! attempt set_conf_dir; then
    note fix configuration "$WRONG" "$REMEDY"
  elif [[ -n ${WORK:-} ]] && ask_launch_words doctor "$@" >/dev/null 2>&1; then
    read_launch_words
    attempt find_spark_submit || note fix spark "$WRONG" "$REMEDY"
    find_shipped
    attempt require_sole_use "$LOG_DIR" log_dir || note fix log-dir "$WRONG" "$REMEDY"
  fi
  attempt find_java || note fix java "$WRONG" "$REMEDY"
}
