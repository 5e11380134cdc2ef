#!/usr/bin/env bats
# What the demo does before it starts Spark, and that its checks can fail.

load helper

setup() {
  make_world
  PATH="$ORIGINAL_PATH"
  DEMO="$CHECKOUT/tests/demo"
  stub java 'exit 99'
  export DEMO_DIR="$WORLD/my demo"
  "$PYTHON" -c 'import pyarrow, pyspark' || skip "NOT TESTED: $PYTHON has no pyspark or no pyarrow"
}

# A count of one table as count_rows.py writes it. # FILE ROWS DIGEST FILES
write_count() {
  printf '{"events_by_date": {"rows": %d, "digest": "%032x", "files": %d, "bytes": 10}}\n' "$2" "$3" "$4" >"$WORLD/$1"
}

@test "demo: --print shows the commands and runs none of them" {
  PATH="$WORLD/stubs:$PATH" run "$DEMO/run" --print
  [ "$status" -eq 0 ]
  local word
  for word in analyze compact-swap verify rollback cleanup history; do
    [[ $output == *"bin/hivekeeper $word --"* ]]
  done
  [ ! -e "$DEMO_DIR" ]
}

@test "demo: on a cluster it works below the user's directory, in a database of its own, and takes both away" {
  mkdir "$WORLD/cluster"
  echo "export HADOOP_CONF_DIR='$WORLD/cluster' HKTEST_KEYTAB=/keys/etl.keytab" >"$WORLD/cluster/env.sh"
  CLUSTER="$WORLD/cluster" PATH="$WORLD/stubs:$PATH" run "$DEMO/run" --print
  [ "$status" -eq 0 ]
  [[ $output == *"--database hivekeeper_demo --seen --location /user/etl/hivekeeper-demo/tables --home /user/etl/hivekeeper-demo/database --late"* ]]
  [[ $output == *"compact-swap --database hivekeeper_demo --"* ]]
  [[ $output == *"-get /user/etl/hivekeeper-demo/tables "* ]]
  [[ ${lines[-2]} == *"--home /user/etl/hivekeeper-demo/database --drop "* ]]
  [[ ${lines[-1]} == *"-rm -r -f -skipTrash /user/etl/hivekeeper-demo "* ]]
  [ ! -e "$DEMO_DIR" ]
}

@test "demo: a cluster's settings that are not there are refused" {
  mkdir "$WORLD/cluster"
  CLUSTER="$WORLD/cluster" PATH="$WORLD/stubs:$PATH" run "$DEMO/run"
  [ "$status" -eq 2 ]
  [[ $output == *"neither env.sh nor core-site.xml can be read"* ]]
  CLUSTER="$WORLD/no such directory" PATH="$WORLD/stubs:$PATH" run "$DEMO/run" --print
  [ "$status" -eq 2 ]
}

@test "demo: a directory with other files is refused and left as it is" {
  mkdir "$DEMO_DIR"
  echo mine >"$DEMO_DIR/file"
  PATH="$WORLD/stubs:$PATH" run "$DEMO/run"
  [ "$status" -eq 2 ]
  [[ $output == *"holds other files than a demo's"* ]]
  [ "$(cat "$DEMO_DIR/file")" = mine ]
}

@test "demo: every check that a step asks for is there, and every one is asked for" {
  local asked there
  asked="$(sed -n 's/^ *check \([a-z-]*\) .*/\1/p' "$DEMO/run" | sort -u)"
  there="$(sed -n 's/^    "\([a-z-]*\)": check_.*/\1/p' "$DEMO/check.py" | sort -u)"
  [ -n "$asked" ]
  [ "$asked" = "$there" ]
}

@test "demo: rows before and rows that came must be the rows after" {
  write_count before 100 7 3
  write_count late 5 9 1
  write_count after 105 16 4
  cd "$WORLD"
  run "$PYTHON" "$DEMO/check.py" added before late after
  [ "$status" -eq 0 ]
  write_count after 104 16 4
  run "$PYTHON" "$DEMO/check.py" added before late after
  [ "$status" -eq 1 ]
  [[ $output == *"had 105 rows and has 104"* ]]
  write_count after 105 17 4
  run "$PYTHON" "$DEMO/check.py" added before late after
  [ "$status" -eq 1 ]
  [[ $output == *"not the same content"* ]]
  write_count after 105 16 5
  run "$PYTHON" "$DEMO/check.py" added before late after
  [ "$status" -eq 1 ]
  [[ $output == *"should have 4 files and has 5"* ]]
}

@test "demo: a data file in a control directory is found, whatever it is called" {
  mkdir -p "$WORLD/tables/t/.hivekeeper/runs/r"
  printf 'PAR1....' >"$WORLD/tables/t/part-0"
  printf '{}' >"$WORLD/tables/t/.hivekeeper/runs/r/plan.json"
  cd "$DEMO"
  run "$PYTHON" -B -c 'import sys; from check import find_hidden_data; print(*find_hidden_data(sys.argv[1]))' "$WORLD/tables"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  printf 'ORC....' >"$WORLD/tables/t/.hivekeeper/runs/r/odd name"
  run "$PYTHON" -B -c 'import sys; from check import find_hidden_data; print(*find_hidden_data(sys.argv[1]))' "$WORLD/tables"
  [[ $output == *"odd name" ]]
}
