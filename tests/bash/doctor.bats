#!/usr/bin/env bats
# hivekeeper-doctor as a whole: what bash finds by itself, what it passes to the archive, and when the cluster is checked. What each
# finding means is proved in tests/unit/plan/test_edge_node.py, how the machine is read in tests/unit/launch/test_edge_node.py.

load helper

setup() {
  make_world
  DOCTOR="$WORLD/app/bin/hivekeeper-doctor"
  unset HADOOP_CONF_DIR YARN_CONF_DIR SPARK_CONF_DIR
  make_spark 3.5.9
  make_java 17.0.15
  make_client_conf
  YARN=(--set spark.master=yarn)
}

# A Spark with nothing but a version. # VERSION
make_spark() {
  export SPARK_HOME="$WORLD/spark"
  rm -rf "$SPARK_HOME"
  mkdir -p "$SPARK_HOME/bin" "$SPARK_HOME/conf"
  echo "Spark $1 built for Hadoop 3.3.4" >"$SPARK_HOME/RELEASE"
  printf '#!/usr/bin/env bash\nprintf "%%s\\0" "$@" >"$ARGV"\nexit ${SUBMIT_CODE:-0}\n' >"$SPARK_HOME/bin/spark-submit"
  chmod +x "$SPARK_HOME/bin/spark-submit"
}

# A Java with nothing but a version. # VERSION
make_java() {
  export JAVA_HOME="$WORLD/java"
  mkdir -p "$JAVA_HOME/bin"
  printf 'JAVA_VERSION="%s"\n' "$1" >"$JAVA_HOME/release"
  printf '#!/usr/bin/env bash\ntouch "%s"\nexit 1\n' "$WORLD/java-was-started" >"$JAVA_HOME/bin/java"
  chmod +x "$JAVA_HOME/bin/java"
}

# Print a Hadoop configuration. # NAME VALUE…
xml() {
  echo '<configuration>'
  echo '  <!-- <property><name>fs.defaultFS</name><value>hdfs://commented-out</value></property> -->'
  while [[ $# -gt 1 ]]; do
    printf '  <property>\n    <name>%s</name>\n    <value>%s</value><final>true</final>\n  </property>\n' "$1" "$2"
    shift 2
  done
  echo '</configuration>'
}

# The client configuration of a cluster without Kerberos.
make_client_conf() {
  CONF="$WORLD/hadoop conf"
  mkdir -p "$CONF"
  xml fs.defaultFS hdfs://nn:8020 hadoop.security.authentication simple >"$CONF/core-site.xml"
  xml dfs.replication 3 >"$CONF/hdfs-site.xml"
  xml yarn.resourcemanager.hostname rm >"$CONF/yarn-site.xml"
  xml hive.metastore.uris thrift://hms:9083 >"$CONF/hive-site.xml"
  export HADOOP_CONF_DIR="$CONF"
}

# The same with Kerberos.
make_secure_conf() {
  xml fs.defaultFS hdfs://nn:8020 hadoop.security.authentication kerberos >"$CONF/core-site.xml"
}

# A keytab of etl, and the tools that read it.
make_keytab() {
  KEYTAB="$WORLD/etl key.tab"
  touch "$KEYTAB"
  chmod 600 "$KEYTAB"
  stub klist 'if [[ $1 == -kt ]]; then
  printf "Keytab name: FILE:%s\nKVNO Timestamp         Principal\n   2 11/21/26 08:00:00 etl@EXAMPLE.COM\n" "$2"
fi'
  stub kinit '[[ -z ${KINIT_SAYS:-} ]] || { echo "$KINIT_SAYS" >&2; exit 1; }'
  TICKET=(--set kerberos.principal=etl@EXAMPLE.COM --set "kerberos.keytab=$KEYTAB")
}

# Whether the answer has a line that begins with these words. # LEVEL NAME TEXT
says() {
  local line
  printf -v line '%-5s %-16s %s' "$1" "$2" "$3"
  [[ $'\n'$output == *$'\n'"$line"* ]] || { printf 'not said: %s\nbut:\n%s\n' "$line" "$output" >&2; return 1; }
}

@test "doctor: an edge node on which all is well is ok, line by line, and no Java was started" {
  run "$DOCTOR" --edge-only "${YARN[@]}"
  [ "$status" -eq 0 ]
  says ok bash ""
  says ok archive "$WORLD/app/dist/hivekeeper.py"
  says ok python "3."
  says ok spark "3.5.9 at $SPARK_HOME/bin/spark-submit"
  says ok java "17.0.15 at $JAVA_HOME/bin/java"
  says ok hadoop-conf "hdfs://nn:8020, from $CONF/core-site.xml"
  says ok yarn-conf "ResourceManager rm"
  says ok hive-conf "thrift://hms:9083, from $CONF/hive-site.xml"
  says ok keytab "none configured"
  says ok ticket "not needed"
  [[ $output != *fix* ]]
  [ ! -e "$WORLD/java-was-started" ]
  [ -z "$(leftovers)" ]
}

@test "doctor: several wrong things are all told, each with what to do, and the cluster is not asked" {
  make_java 11.0.2
  make_spark 4.0.1
  xml hive.x y >"$CONF/hive-site.xml"
  rm "$CONF/yarn-site.xml"
  run "$DOCTOR" "${YARN[@]}"
  [ "$status" -eq 2 ]
  says fix java "11.0.2 at $JAVA_HOME/bin/java does not fit Spark 4.0.1"
  says fix yarn-conf "$CONF holds no yarn-site.xml"
  says fix hive-conf "$CONF/hive-site.xml does not set hive.metastore.uris"
  says skip cluster "not checked"
  [ "$(grep -c '^fix' <<<"$output")" -eq "$(grep -c '^      → ' <<<"$output")" ]
  [ ! -e "$ARGV" ]
}

@test "doctor: without a Spark, what needs it is skipped and the rest is checked" {
  unset SPARK_HOME
  rm -rf "$WORLD/app/.venv"
  run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix spark "neither spark3-submit nor spark-submit found"
  says skip hive-conf "needs spark"
  says ok hadoop-conf ""
}

@test "doctor: without a Java, the rest is checked and the cluster is not" {
  unset JAVA_HOME
  rm -rf "$WORLD/app/.venv"
  run "$DOCTOR" "${YARN[@]}"
  [ "$status" -eq 2 ]
  says fix java "no Java found"
  says ok hive-conf ""
  says skip cluster "not checked"
  [ ! -e "$ARGV" ]
}

@test "doctor: a conf directory that is not there is a finding" {
  HIVEKEEPER_CONF_DIR="$WORLD/nowhere" run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix configuration "HIVEKEEPER_CONF_DIR is $WORLD/nowhere, which is not a directory"
  says skip files "needs configuration"
  says ok java ""
}

@test "doctor: without Python every check is named, and there is no document" {
  export HIVEKEEPER_PYTHON="$WORLD/nowhere/python"
  run "$DOCTOR"
  [ "$status" -eq 2 ]
  says ok archive ""
  says fix python "HIVEKEEPER_PYTHON is $WORLD/nowhere/python"
  says ok temp-dir ""
  says skip java "needs python"
  says skip files "needs python"
  says skip cluster "not checked"
  [ "$(grep -c "^[a-z]" <<<"$output")" -eq 15 ]
  run "$DOCTOR" --json
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: without the archive and a usable Python there is no document" ]]
}

@test "doctor: without the archive every check is named" {
  rm "$WORLD/app/dist/hivekeeper.py"
  run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix archive "dist/hivekeeper.py is missing"
  says skip configuration "needs archive"
  [[ $output != *cluster* ]]
}

@test "doctor: a configuration that is refused is told in the words of the job" {
  run "$DOCTOR" --edge-only --set block_sise_mb=1
  [ "$status" -eq 2 ]
  says fix configuration ""
  [[ $output == *block_size_mb* ]]
  says skip spark "needs configuration"
}

@test "doctor: a keytab that is fine, and the ticket that it gives" {
  make_secure_conf
  make_keytab
  run "$DOCTOR" --edge-only "${TICKET[@]}"
  says ok keytab "etl@EXAMPLE.COM in $KEYTAB"
  says warn ticket "from the keytab; how long it lasts cannot be read"
  [ "$status" -eq 0 ]
}

@test "doctor: a file to be shipped that is not there" {
  touch "$WORLD/env.tar.gz"
  run "$DOCTOR" --edge-only "${YARN[@]}" --set "spark.python_env=$WORLD/env.tar.gz" --set "spark.extra_files=hdfs:///a/b,file:$WORLD/none#c"
  [ "$status" -eq 2 ]
  says fix files "cannot be read: $WORLD/none"
}

@test "launcher: a file to be shipped that is not there is one clear error, and nothing is started" {
  run "$RUN" analyze --database sales --set "spark.archives=$WORLD/none.tar.gz#env"
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: not there, or not to be read by "*": $WORLD/none.tar.gz" ]]
  [ ! -e "$ARGV" ]
}

@test "doctor: a temporary directory that cannot be used" {
  TMPDIR="$WORLD/nowhere" run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix temp-dir "no temporary directory can be made in $WORLD/nowhere"
  says skip configuration "needs temp-dir"
}

@test "doctor: a directory for logs in which others may exchange files, which a run refuses" {
  mkdir -m 777 "$WORLD/logs"
  run "$DOCTOR" --edge-only --set "log_dir=$WORLD/logs"
  [ "$status" -eq 2 ]
  says fix log-dir "log_dir $WORLD/logs: everyone may exchange files in it"
}

@test "doctor: the cluster is asked through the launcher, its tables and options arrive, and its code comes back" {
  SUBMIT_CODE=8 run "$DOCTOR" "sales.big events" --log-level debug
  [ "$status" -eq 8 ]
  read_arrived
  arrived doctor
  arrived "sales.big events"
  arrived debug
}

@test "doctor: what is to be fixed here counts for more than the cluster's code" {
  make_keytab
  rm "$WORLD/stubs/klist"
  SUBMIT_CODE=8 run "$DOCTOR" "${TICKET[@]}"
  [ "$status" -eq 2 ]
  [ -e "$ARGV" ]
}

@test "doctor: with --json the job gets the findings of this machine and nothing else is printed" {
  run "$DOCTOR" --json
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  read_arrived
  "$PYTHON" -c '
import json, sys
words = sys.argv[1:]
checks = {check["name"]: check for check in json.loads(words[words.index("--edge-checks") + 1])}
assert (checks["java"]["level"], checks["bash"]["place"], len(checks)) == ("ok", "machine", 14), checks' "${ARRIVED[@]}"
}

@test "doctor: with --json there is a document even where no Spark can be started" {
  make_java 21.0.4
  run "$DOCTOR" --json
  [ "$status" -eq 2 ]
  "$PYTHON" -c '
import json, sys
document = json.loads(sys.argv[1])
levels = {check["name"]: (check["level"], check["place"]) for check in document["checks"]}
assert document["exit_code"] == 2 and levels["java"] == ("fix", "machine") and levels["cluster"][0] == "skip", document' "$output"
  [ ! -e "$ARGV" ]
}

@test "doctor: help is the comment at its top" {
  run "$DOCTOR" --help
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == "Usage: hivekeeper-doctor "* ]]
  [[ $output == *"Exit code: 0 nothing to fix"* ]]
}
