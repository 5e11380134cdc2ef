#!/usr/bin/env bats
# Rules for every shell script of the project.

load helper

setup() {
  make_world
  PATH="$ORIGINAL_PATH"
  cd "$CHECKOUT"
  SCRIPTS=()
  local file
  while IFS= read -r -d '' file; do
    if [[ $(head -n 1 -- "$file" | tr -d '\0') == '#!/usr/bin/env bash' ]]; then
      SCRIPTS+=("$file")
    fi
  done < <(find bin packaging .ci -type f -print0)
}

@test "scripts: there are some" {
  [ "${#SCRIPTS[@]}" -ge 6 ]
}

@test "scripts: bash can read each of them and each library" {
  local file
  for file in "${SCRIPTS[@]}" bin/lib/*.bash packaging/*.bash; do
    bash -n "$file"
  done
}

@test "scripts: each begins with its help and is strict" {
  local file
  for file in "${SCRIPTS[@]}"; do
    [[ $(sed -n 2p "$file") == "# Usage: "* ]]
    [[ $(sed -n 3p "$file") == "# Summary: "* ]]
    grep -q '^set -euo pipefail$' "$file"
    [ -x "$file" ]
  done
}

@test "scripts: none uses eval, back-ticks, or what bash 4.2 lacks" {
  run grep -nE '(^|[^a-z])eval |`[^`]*`\)|mapfile|readarray|local -n|declare -n|\$\{[a-z_]+@[QEPA]\}' "${SCRIPTS[@]}" bin/lib/*.bash packaging/*.bash
  printf '%s\n' "$output"
  [ "$status" -eq 1 ]
}

@test "scripts: libraries define functions only" {
  local file
  for file in bin/lib/*.bash packaging/*.bash; do
    run grep -nvE '^(#.*|[a-z_]+\(\) \{|\}| .*|)$' "$file"
    printf '%s: %s\n' "$file" "$output"
    [ "$status" -eq 1 ]
  done
}
