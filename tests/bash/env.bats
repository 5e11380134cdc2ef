#!/usr/bin/env bats
# The packed Python for YARN: really packed, unpacked elsewhere, run as a container runs it.

load helper

setup() {
  make_world
  PATH="$WORLD/stubs:$ORIGINAL_PATH"
  BUILD="$CHECKOUT/packaging/build-env"
  OUTPUT="$WORLD/env.tar.gz"
  BASE="$("$PYTHON" -c 'import sys; print(sys._base_executable)')"
  unset PYTHON
}

# Unpack the archive in an empty place, and go there.
enter_container() {
  mkdir -p "$WORLD/container/env"
  tar -xzf "$OUTPUT" -C "$WORLD/container/env"
  cd "$WORLD/container"
}

@test "venv-pack: the interpreter runs where it is unpacked, is the one that was packed, and runs the archive, also where there is a conda" {
  local base
  stub conda 'touch "$ARGV"; exit 1'
  PYTHON="$BASE" run "$BUILD" "$OUTPUT"
  printf '%s\n' "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"by venv-pack"* ]]
  [ ! -e "$ARGV" ]
  # Its standard library is not packed, and the output says so.
  base="$("$BASE" -c 'import sys; print("%d.%d.%d in %s" % (*sys.version_info[:3], sys.base_prefix))')"
  [[ ${lines[-1]} == "every node needs Python $base: "* ]]
  [ "$(stat -c %a "$OUTPUT")" = 644 ]
  [ -z "$(leftovers)" ]
  enter_container
  [ "$(./env/bin/python -c 'import sys; print(sys.prefix)')" = "$PWD/env" ]
  [ "$(./env/bin/python -c 'import sys; print(sys.version)')" = "$("$BASE" -c 'import sys; print(sys.version)')" ]
  [ ! -L env/bin/python ]
  run ./env/bin/python "$CHECKOUT/dist/hivekeeper.py" --version
  [[ $status -eq 0 && $output == "hivekeeper "* ]]
}

# A conda that makes an environment from a Python on this machine. # PYTHON
stub_conda() {
  stub conda 'printf "%s\n" "$@" >"$ARGV"
while [[ $# -gt 0 ]]; do [[ $1 != --prefix ]] || prefix="$2"; shift; done
"'"$1"'" -m venv --copies --without-pip "$prefix" && mkdir "$prefix/conda-meta" && touch "$prefix/conda-meta/history"'
}

@test "conda-pack: where there is a conda, it makes what environment.yml says" {
  local candidate python=''
  for candidate in "$(type -P python3.10)" "${PYENV_ROOT:-$(eval echo ~"$(id -un)")/.pyenv}"/versions/3.10.*/bin/python; do
    if [[ -x $candidate ]] && "$candidate" -c 'import venv' 2>/dev/null; then python="$candidate"; fi
  done
  [ -n "$python" ] || skip "NOT TESTED: no Python 3.10 on this machine"
  stub_conda "$("$python" -c 'import sys; print(sys.executable)')"
  run "$BUILD" "$OUTPUT"
  printf '%s\n' "$output"
  [ "$status" -eq 0 ]
  [[ $output == *"by conda-pack"* ]]
  [ "$(sed -n '1,2p;$p' "$ARGV")" = "$(printf 'env\ncreate\n%s' "$CHECKOUT/packaging/environment.yml")" ]
  enter_container
  [[ $(./env/bin/python -c 'import sys; print(sys.prefix, sys.version)') == "$PWD/env 3.10."* ]]
}

@test "conda-pack: an environment with another Python than environment.yml says is refused, and the last archive stays" {
  echo last >"$OUTPUT"
  local other
  other="$(PATH="$ORIGINAL_PATH" "$BASE" -c 'import sys; print(sys.executable if sys.version_info[:2] != (3, 10) else "")')"
  [ -n "$other" ] || skip "NOT TESTED: .venv's Python is the one of environment.yml"
  stub_conda "$other"
  run "$BUILD" "$OUTPUT"
  printf '%s\n' "$output"
  [ "$status" -eq 2 ]
  [[ $output == *"Python 3.10 was to be packed; what runs is 3."* ]]
  [ "$(cat "$OUTPUT")" = last ]
}

@test "conda-pack: a conda that fails is told, with the way without it" {
  stub conda 'echo "no channel" >&2; exit 1'
  run "$BUILD" "$OUTPUT"
  [ "$status" -eq 2 ]
  [[ $output == *"no channel"* && $output == *"PYTHON=python3"* ]]
  [ ! -e "$OUTPUT" ]
}

@test "build-env: an interpreter that is too old, is none, or does not run when it is unpacked, is refused" {
  stub old 'echo 3.8; exit 1'
  PYTHON=old run "$BUILD" "$OUTPUT"
  [[ $status -eq 2 && $output == *"old is Python 3.8; 3.9 or newer is needed"* ]]
  PYTHON=/absent run "$BUILD" "$OUTPUT"
  [[ $status -eq 2 && $output == *"/absent, which is not a program"* ]]
  # Makes an environment whose interpreter is a script that needs a file beside the environment.
  stub bound 'if [[ $1 == -c ]]; then echo 3.10; exit; fi
for prefix; do :; done
mkdir -p "$prefix/bin" "$prefix/lib/python3.10/site-packages"
printf "home = /usr/bin\n" >"$prefix/pyvenv.cfg"
printf "#!/bin/sh\nexec %s/bin/gone\n" "$prefix" >"$prefix/bin/python"
chmod +x "$prefix/bin/python"
printf "VIRTUAL_ENV=\"%s\"\n" "$prefix" >"$prefix/bin/activate"'
  PYTHON=bound run "$BUILD" "$OUTPUT"
  printf '%s\n' "$output"
  [[ $status -eq 2 && $output == *"does not run where it is unpacked"* ]]
  [ ! -e "$OUTPUT" ]
}

@test "environment.yml: one Python, pinned, and new enough for the archive" {
  run sed -n 's/^  - \(python.*\)/\1/p' "$CHECKOUT/packaging/environment.yml"
  [ "${#lines[@]}" -eq 1 ]
  [[ ${lines[0]} =~ ^python=3\.([0-9]+)\.[0-9]+$ ]]
  [ "${BASH_REMATCH[1]}" -ge 9 ]
}
