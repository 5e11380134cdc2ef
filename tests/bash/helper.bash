# shellcheck shell=bash
# A separate world for each test: HOME, PATH, temporary directory, and a copy of the launcher with the real archive.

CHECKOUT="$(cd -P -- "$BATS_TEST_DIRNAME/../.." && pwd)"
TOOLS=(bash env sed dirname readlink mktemp rm mkdir cat id sleep ls cp chmod touch ln mv tr head tail tee mkfifo sort grep date stat getent)

# Create the world. PATH holds stubs/ and the few tools that the launcher may use, nothing else of this machine.
make_world() {
  local tool
  [[ -f $CHECKOUT/dist/hivekeeper.py ]] || { echo "build the archive first: make dist" >&2; return 1; }
  PYTHON="${HIVEKEEPER_PYTHON:-$CHECKOUT/.venv/bin/python}"
  WORLD="$BATS_TEST_TMPDIR/the world"
  mkdir -p "$WORLD/home" "$WORLD/tmp" "$WORLD/stubs" "$WORLD/tools" "$WORLD/app/dist"
  for tool in "${TOOLS[@]}"; do
    ln -s "$(type -P "$tool")" "$WORLD/tools/$tool"
  done
  cp -R "$CHECKOUT/bin" "$CHECKOUT/conf" "$WORLD/app"
  cp "$CHECKOUT/dist/hivekeeper.py" "$WORLD/app/dist"
  RUN="$WORLD/app/bin/hivekeeper"
  ARGV="$WORLD/argv"
  ORIGINAL_PATH="$PATH"
  unset JAVA_HOME SPARK_HOME HIVEKEEPER_CONF_DIR SHIV_ROOT KRB5CCNAME
  # Fetch what tests install once, not once for each HOME.
  export PIP_CACHE_DIR="$CHECKOUT/.cache/pip"
  export HIVEKEEPER_PYTHON="$PYTHON" HOME="$WORLD/home" TMPDIR="$WORLD/tmp" PATH="$WORLD/stubs:$WORLD/tools" ARGV
}

# Put a program on PATH. # NAME BODY
stub() {
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$WORLD/stubs/$1"
  chmod +x "$WORLD/stubs/$1"
}

# What a client of a cluster has.
make_hadoop_conf() {
  mkdir "$WORLD/hadoop"
  touch "$WORLD/hadoop/core-site.xml"
  unset YARN_CONF_DIR SPARK_CONF_DIR
  export HADOOP_CONF_DIR="$WORLD/hadoop"
}

# Java, and a spark3-submit that records its arguments. # [MORE]
stub_spark() {
  stub java 'exit 99'
  # shellcheck disable=SC2016 # expanded when the stub runs
  stub spark3-submit 'printf "%s\0" "$@" >"$ARGV"
'"${1:-}"
}

# Fill ARRIVED with the arguments that spark3-submit got.
read_arrived() {
  local word
  ARRIVED=()
  while IFS= read -r -d '' word; do
    ARRIVED+=("$word")
  done <"$ARGV"
}

# Whether one of the arguments that arrived is exactly this. # WORD
arrived() {
  local word
  for word in "${ARRIVED[@]}"; do
    [[ $word != "$1" ]] || return 0
  done
  printf 'did not arrive: %q\n' "$1" >&2
  return 1
}

# Become a program that receives every signal, however these tests were started: no shell can trap what was ignored from its start,
# such as HUP under nohup. # COMMAND [ARGUMENTS]
heeding_signals() {
  exec "$PYTHON" -c 'import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

# Wait until a file exists; on a busy machine a launcher takes its time. # FILE
wait_for() {
  local turn
  for ((turn = 0; turn < 1200; turn++)); do
    [[ ! -e $1 ]] || return 0
    sleep 0.1
  done
  printf 'did not come: %s\n' "$1" >&2
  return 1
}

# What is left of the launcher's own temporary files.
leftovers() {
  ls "$WORLD/tmp" | sed '/^hivekeeper-[0-9]*$/d'
}
