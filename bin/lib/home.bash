# shellcheck shell=bash
# Where this installation keeps its archive and its site's configuration. Only functions.

# Set ARCHIVE: dist/ in a checkout, lib/ in a release bundle.
find_archive() {
  local candidate
  for candidate in "$ROOT/dist/hivekeeper.py" "$ROOT/lib/hivekeeper.py"; do
    if [[ -f $candidate ]]; then
      ARCHIVE="$candidate"
      require_trusted "$ARCHIVE"
      return
    fi
  done
  die 2 "dist/hivekeeper.py is missing" "build it with: make dist; in a release bundle, unpack it again"
}

# Set HIVEKEEPER_CONF_DIR, where the job looks for site.yaml, unless the caller has. A release bundle looks outside itself
# first, so that the next version finds the site's file; a checkout uses only its own.
set_conf_dir() {
  if [[ -n ${HIVEKEEPER_CONF_DIR:-} ]]; then
    [[ -d $HIVEKEEPER_CONF_DIR ]] || die 2 "HIVEKEEPER_CONF_DIR is $HIVEKEEPER_CONF_DIR, which is not a directory" "correct or unset it"
  elif [[ -f $ROOT/lib/hivekeeper.py ]]; then
    choose_conf_dir "$(dirname -- "$ROOT")/conf" /etc/hivekeeper "$ROOT/conf"
  elif [[ -d $ROOT/conf ]]; then
    export HIVEKEEPER_CONF_DIR="$ROOT/conf"
  fi
}

# Set HIVEKEEPER_CONF_DIR to the first directory that holds a site.yaml, or to the last one. # DIRECTORY…
choose_conf_dir() {
  local directory
  for directory in "$@"; do
    # A directory that cannot be entered may hold the site's settings: running without them would be a guess.
    [[ ! -d $directory || -x $directory ]] ||
      die 2 "$directory cannot be entered by $(id -un)" "let this user read it, or set HIVEKEEPER_CONF_DIR"
    # So may what a link leads to that is not there just now.
    [[ ! -L $directory || -e $directory ]] || die 2 "$directory is a link to nothing" "correct or remove it, or set HIVEKEEPER_CONF_DIR"
    export HIVEKEEPER_CONF_DIR="$directory"
    if [[ -e $directory/site.yaml || -L $directory/site.yaml ]]; then
      return
    fi
  done
}
