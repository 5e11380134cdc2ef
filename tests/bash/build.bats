#!/usr/bin/env bats
# What the build scripts take into an archive, and what they run: nothing but the pinned packages, wherever they are started.

CHECKOUT="$(cd -P -- "$BATS_TEST_DIRNAME/../.." && pwd)"

setup() {
  PYTHON="${HIVEKEEPER_PYTHON:-$CHECKOUT/.venv/bin/python}"
  SOURCE="$BATS_TEST_TMPDIR/the source"
  SHARED="$BATS_TEST_TMPDIR/shared"
  OUTPUT="$BATS_TEST_TMPDIR/hivekeeper.py"
  mkdir "$SOURCE" "$SHARED"
  cp -R "$CHECKOUT"/{job,conf,packaging,pyproject.toml,README.md,LICENSE} "$SOURCE"
  # Modules of these names come before the installed ones for `python -m` and `python -c`, which look into the current directory first.
  for name in pip shiv venv ensurepip venv_pack; do
    printf 'open("%s/ran", "a").write("%s\\n")\n' "$BATS_TEST_TMPDIR" "$name" >"$SHARED/$name.py"
  done
  cd "$SHARED"
}

nothing_ran() {
  if [[ -e $BATS_TEST_TMPDIR/ran ]]; then
    printf 'was run: %s\n' "$(<"$BATS_TEST_TMPDIR/ran")"
    return 1
  fi
}

@test "build: the archive is made of the pinned source alone, with pinned tools, and runs nothing of the current directory" {
  mkdir "$BATS_TEST_TMPDIR/packages"
  (cd "$SOURCE" && "$PYTHON" -m pip download --quiet --no-deps --no-build-isolation --no-binary :all: --dest "$BATS_TEST_TMPDIR/packages" -r packaging/runtime.txt)
  # Where nothing else can be had, nothing else is taken.
  PIP_NO_INDEX=1 PIP_FIND_LINKS="$BATS_TEST_TMPDIR/packages" run "$PYTHON" "$SOURCE/packaging/build-zipapp" "$OUTPUT"
  printf '%s\n' "$output"
  nothing_ran
  [ "$status" -eq 0 ]
  cmp "$OUTPUT" "$CHECKOUT/dist/hivekeeper.py"
}

@test "build: a PyYAML of this version with other bytes is not taken" {
  cd "$SOURCE"
  sed -i 's/sha256:d/sha256:e/' "$SOURCE/packaging/runtime.txt"
  run "$PYTHON" "$SOURCE/packaging/build-zipapp" "$OUTPUT"
  [ "$status" -ne 0 ]
  [[ $output == *"DO NOT MATCH THE HASHES"* ]]
  [ ! -e "$OUTPUT" ]
}

@test "build: an archive does not go through a file or a link that somebody has put beside it" {
  cd "$SOURCE"
  run "$PYTHON" - "$SOURCE/packaging/build-zipapp" "$OUTPUT" "$BATS_TEST_TMPDIR/target" <<'EOF'
import os, runpy, sys
script, output, target = sys.argv[1:]
os.symlink(target, f"{output}.{os.getpid()}")
sys.argv = [script, output]
runpy.run_path(script, run_name="__main__")
EOF
  printf '%s\n' "$output"
  [ "$status" -eq 0 ]
  [ ! -e "$BATS_TEST_TMPDIR/target" ]
  [[ -f $OUTPUT && ! -L $OUTPUT ]]
}

@test "build: setup runs nothing of the current directory" {
  sed -i '/^[A-Za-z]/d' "$SOURCE"/packaging/{build,runtime,dev}.txt
  run "$SOURCE/packaging/setup"
  printf '%s\n' "$output"
  nothing_ran
  [ "$status" -eq 0 ]
  [ -x "$SOURCE/.venv/bin/python" ]
}

@test "build: a tool of this version with other bytes does not come into the environment that builds" {
  sed -i '/^[A-Za-z]/d' "$SOURCE"/packaging/{runtime,dev}.txt
  sed -i '/^shiv/!d; s/sha256:a/sha256:b/' "$SOURCE/packaging/build.txt"
  run "$SOURCE/packaging/setup"
  printf '%s\n' "$output"
  [ "$status" -eq 2 ]
  [ ! -e "$SOURCE/.venv/bin/shiv" ]
  [ ! -e "$SOURCE/.venv/pins" ]
}

@test "build: packing a Python runs nothing of the current directory" {
  run "$CHECKOUT/packaging/build-env" "$BATS_TEST_TMPDIR/env.tar.gz"
  printf '%s\n' "$output"
  nothing_ran
  [ "$status" -eq 0 ]
}
