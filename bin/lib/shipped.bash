# shellcheck shell=bash
# The local files that the configuration ships with the job. Only functions.

# Fill SHIPPED with the local paths among SUBMIT_OPTIONS, the script included, and MISSING with those that cannot be read.
find_shipped() {
  local at path paths
  SHIPPED=() MISSING=()
  for ((at = 0; at + 1 < ${#SUBMIT_OPTIONS[@]}; at++)); do
    case "${SUBMIT_OPTIONS[at]}" in
      --files | --archives | --py-files) IFS=, read -r -a paths <<<"${SUBMIT_OPTIONS[at + 1]}" ;;
      *) continue ;;
    esac
    for path in ${paths[@]+"${paths[@]}"}; do
      note_shipped "${path%#*}"
    done
  done
  [[ -z ${SUBMITTED:-} ]] || note_shipped "$SUBMITTED"
}

# Paths on the cluster are checked there, and patterns are left to Spark. # PATH
note_shipped() {
  local path="$1"
  case "$path" in
    *[*?[{]*) return 0 ;;
    file:/*) printf -v path '%b' "$(sed 's|^file:/*|/|; s|%|\\x|g' <<<"$path")" ;;
    [A-Za-z]*:/*) return 0 ;;
  esac
  SHIPPED+=("$path")
  [[ -r $path ]] || MISSING+=("$path")
}

# Spark would report a missing file in a stack trace, and in cluster mode only after the application was accepted.
require_shipped() {
  find_shipped
  [[ ${#MISSING[@]} -eq 0 ]] ||
    die 2 "not there, or not to be read by $(id -un): ${MISSING[*]}" "correct spark.python_env, spark.archives, spark.extra_files, spark.py_files or spark.archive"
}
