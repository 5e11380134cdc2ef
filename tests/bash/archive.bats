#!/usr/bin/env bats
# The archive alone, as spark-submit and operators start it.

load helper

setup() {
  make_world
  ARCHIVE="$WORLD/app/dist/hivekeeper.py"
  MINE="$WORLD/tmp/hivekeeper-$(id -u)"
}

# An interpreter of an old version, by name or from pyenv; fails if there is none. # VERSION
find_old_python() {
  local candidate
  for candidate in "$(PATH="$ORIGINAL_PATH" type -P "python$1")" "${PYENV_ROOT:-$(eval echo ~)/.pyenv}/versions/$1".*/bin/python; do
    if [[ -x $candidate ]] && "$candidate" -c "" 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

@test "archive: holds nothing compiled, and PyYAML's licence" {
  run "$PYTHON" -m zipfile -l "$ARCHIVE"
  [ "$status" -eq 0 ]
  [[ $output == *site-packages/yaml/LICENSE* ]]
  [[ $output == *site-packages/hivekeeper/log4j2.properties* ]]
  [[ $output != *.so\ * ]]
  [[ $output != *.pyc* ]]
}

@test "archive: an old Python gets one clear error" {
  local version old tried=0
  for version in 2.7 3.6 3.7 3.8; do
    old="$(find_old_python "$version")" || continue
    tried=$((tried + 1))
    run "$old" "$ARCHIVE" config
    [ "$status" -eq 2 ]
    [[ ${lines[0]} == "hivekeeper: Python 3.9 or newer is needed, this is $version."* ]]
    [ "${#lines[@]}" -eq 3 ]
  done
  [ "$tried" -gt 0 ] || skip "NOT TESTED: there is no Python 2.7, 3.6, 3.7 or 3.8 on this machine"
}

@test "archive: every supported Python that is here runs it" {
  local version python tried=0
  for version in 3.9 3.10 3.11 3.12 3.13; do
    python="$(find_old_python "$version")" || continue
    tried=$((tried + 1))
    run "$python" "$ARCHIVE" config
    [ "$status" -eq 0 ]
    [[ $output == *block_size* ]]
  done
  [ "$tried" -gt 0 ]
}

@test "unpacking: into a directory that only its user can enter" {
  "$PYTHON" "$ARCHIVE" --version
  [ -d "$MINE" ]
  [ "$("$PYTHON" -c 'import os, sys; print(oct(os.stat(sys.argv[1]).st_mode & 0o777))' "$MINE")" = 0o700 ]
}

@test "unpacking: a prepared directory that others can write to is not used, and nothing is left" {
  mkdir "$MINE"
  chmod 777 "$MINE"
  run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ -z "$(ls -A "$MINE")" ]
  [ "$(ls "$WORLD/tmp")" = "hivekeeper-$(id -u)" ]
}

@test "unpacking: not where others could put another directory in its place" {
  chmod 777 "$WORLD/tmp"
  run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ -z "$(ls "$WORLD/tmp")" ]
  chmod 1777 "$WORLD/tmp"
  run "$PYTHON" "$ARCHIVE" --version
  [ -d "$MINE" ]
}

@test "unpacking: nor below a directory in which others could exchange it; behind a link it goes to where that leads now" {
  mkdir -p "$WORLD/shared/mine"
  chmod 777 "$WORLD/shared"
  TMPDIR="$WORLD/shared/mine" run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ -z "$(ls "$WORLD/shared/mine")" ]
  ln -s "$WORLD/tmp" "$WORLD/shared/link"
  run "$PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); import main; print(main.choose_root())' "$CHECKOUT/packaging"
  [ "$output" = "$MINE" ]
  TMPDIR="$WORLD/shared/link" run "$PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); import main; print(main.choose_root())' "$CHECKOUT/packaging"
  [ "$output" = "$MINE" ]
}

@test "unpacking: where somebody else could exchange it only if that user is trusted, as in a container of YARN" {
  [ "$(id -u)" -eq 0 ] || skip "NOT TESTED: only root can give a directory away"
  mkdir -p "$WORLD/yarn/container"
  PATH="$ORIGINAL_PATH" chown daemon "$WORLD/yarn"
  TMPDIR="$WORLD/yarn/container" run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ -z "$(ls "$WORLD/yarn/container")" ]
  HIVEKEEPER_RELEASE_OWNERS="no-such-user daemon" TMPDIR="$WORLD/yarn/container" run "$PYTHON" "$ARCHIVE" --version
  [ -d "$WORLD/yarn/container/hivekeeper-0" ]
}

@test "unpacking: a directory of somebody else that is gone when it is looked at" {
  run "$PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); import main; print(main.is_private(sys.argv[2]))' "$CHECKOUT/packaging" "$WORLD/gone"
  [ "$output" = False ]
}

@test "unpacking: a link in the place of the directory is not followed" {
  mkdir "$WORLD/trap"
  ln -s "$WORLD/trap" "$MINE"
  run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ -z "$(ls -A "$WORLD/trap")" ]
}

@test "unpacking: a directory of somebody else is not used" {
  [ "$(id -u)" -eq 0 ] || skip "NOT TESTED: only root can give a directory away"
  mkdir -m 700 "$MINE"
  "$PYTHON" -c 'import os, sys; os.chown(sys.argv[1], 65534, 65534)' "$MINE"
  run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ -z "$(ls -A "$MINE")" ]
}

@test "unpacking: needs no HOME, and works where only the current directory is writable" {
  mkdir "$WORLD/container"
  cd "$WORLD/container"
  HOME=/home/ TMPDIR=/absent run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ ! -e "$WORLD/home/.shiv" ]
}

@test "unpacking: files that a sweep of the temporary directory took away are put back; those that another command may load just now stay" {
  "$PYTHON" "$ARCHIVE" --version
  local unpacked
  unpacked="$(echo "$MINE"/hivekeeper.py_*/site-packages/hivekeeper)"
  ln "$unpacked/errors.py" "$WORLD/errors.py"
  rm "$unpacked/names.py"
  rm -r "$unpacked/plan"
  run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [ "$(cat "$unpacked/names.py")" = "$(cat "$CHECKOUT/job/hivekeeper/names.py")" ]
  [ -e "$unpacked/plan/sizing.py" ]
  [ "$unpacked/errors.py" -ef "$WORLD/errors.py" ]
}

@test "unpacking: a sweep that left only the directory" {
  "$PYTHON" "$ARCHIVE" --version
  rm -r "$MINE"/hivekeeper.py_*/site-packages
  run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
}

@test "unpacking: settings of another shiv archive do not redirect it" {
  SHIV_ENTRY_POINT=os:getcwd SHIV_INTERPRETER=1 run "$PYTHON" "$ARCHIVE" --version
  [ "$status" -eq 0 ]
  [[ $output == "hivekeeper "* ]]
}
