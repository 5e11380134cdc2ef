#!/usr/bin/env bats
# The check-up of an edge node: each check finds what is wrong, says what to do, and lets the others go on.

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

# A Spark with nothing but its version. # VERSION
make_spark() {
  export SPARK_HOME="$WORLD/spark"
  rm -rf "$SPARK_HOME"
  mkdir -p "$SPARK_HOME/bin" "$SPARK_HOME/conf"
  echo "Spark $1 built for Hadoop 3.3.4" >"$SPARK_HOME/RELEASE"
  printf '#!/usr/bin/env bash\nprintf "%%s\\0" "$@" >"$ARGV"\nexit ${SUBMIT_CODE:-0}\n' >"$SPARK_HOME/bin/spark-submit"
  chmod +x "$SPARK_HOME/bin/spark-submit"
}

# A Java with nothing but its version. # VERSION
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

# What klist says of a ticket. # ENDS [RENEWS]
klist_says() {
  local line="11/21/26 08:00:00  $1  krbtgt/EXAMPLE.COM@EXAMPLE.COM"
  stub klist "[[ \$1 != -s ]] || exit 0
echo 'Ticket cache: FILE:/tmp/x'
echo 'Default principal: etl@EXAMPLE.COM'
echo
echo 'Valid starting     Expires            Service principal'
echo '$line'${2:+
printf '\\trenew until %s\\n' '$2'}"
}

# Give the clock: it stands still, so that what is left of a ticket does not depend on how fast this machine is. # TIME
it_is() {
  stub date "[[ \$* != +%s ]] || set -- -d '$1' +%s
exec '$WORLD/tools/date' \"\$@\""
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

@test "doctor: Java 8 has another way to say its version" {
  make_java 1.8.0_392
  run "$DOCTOR" --edge-only
  says ok java "1.8.0_392"
  make_java 21.0.4
  run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix java "21.0.4"
}

@test "doctor: the version of Spark is read from its jars where there is no RELEASE file" {
  rm "$SPARK_HOME/RELEASE"
  mkdir "$SPARK_HOME/jars"
  touch "$SPARK_HOME/jars/spark-core_2.12-3.3.2.3.3.7190.0-91.jar"
  run "$DOCTOR" --edge-only
  says ok spark "3.3.2.3.3.7190.0-91 at"
}

@test "doctor: a Spark that is too old must be replaced" {
  make_spark 2.4.8
  run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix spark "2.4.8"
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

@test "doctor: a configuration that is refused is told in the words of the job" {
  run "$DOCTOR" --edge-only --set block_sise_mb=1
  [ "$status" -eq 2 ]
  says fix configuration ""
  [[ $output == *block_size_mb* ]]
  says skip spark "needs configuration"
}

@test "doctor: a HADOOP_CONF_DIR that is missing, empty, or means local files" {
  HADOOP_CONF_DIR="$WORLD/nowhere" run "$DOCTOR" --edge-only "${YARN[@]}"
  [ "$status" -eq 2 ]
  says fix hadoop-conf "HADOOP_CONF_DIR is $WORLD/nowhere, which is not a directory"
  says skip yarn-conf "needs hadoop-conf"
  mkdir "$WORLD/empty"
  HADOOP_CONF_DIR="$WORLD/empty" run "$DOCTOR" --edge-only "${YARN[@]}"
  says fix hadoop-conf "$WORLD/empty holds no core-site.xml"
  unset HADOOP_CONF_DIR
  run "$DOCTOR" --edge-only "${YARN[@]}"
  says fix hadoop-conf "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"
  export HADOOP_CONF_DIR="$CONF"
  xml hadoop.x y >"$CONF/core-site.xml"
  run "$DOCTOR" --edge-only "${YARN[@]}"
  [ "$status" -eq 2 ]
  says fix hadoop-conf "$CONF/core-site.xml: fs.defaultFS is not set"
}

@test "doctor: a HADOOP_CONF_DIR that spark-env.sh sets is left to it" {
  unset HADOOP_CONF_DIR
  klist_says "01/01/2099 08:00:00"
  echo 'export HADOOP_CONF_DIR=/etc/hadoop/conf' >"$SPARK_HOME/conf/spark-env.sh"
  echo 'spark: {extra_conf: {spark.hadoop.hive.metastore.uris: "thrift://other:9083"}}' >"$WORLD/mine.yaml"
  run "$DOCTOR" --edge-only "${YARN[@]}" -c "$WORLD/mine.yaml"
  [ "$status" -eq 0 ]
  says ok hadoop-conf "left to $SPARK_HOME/conf/spark-env.sh"
  says ok hive-conf "thrift://other:9083, from spark.extra_conf"
}

@test "doctor: a keytab that is fine, and the ticket that it gives" {
  make_secure_conf
  make_keytab
  run "$DOCTOR" --edge-only "${TICKET[@]}"
  says ok keytab "etl@EXAMPLE.COM in $KEYTAB"
  says warn ticket "from the keytab; how long it lasts cannot be read"
  [ "$status" -eq 0 ]
}

@test "doctor: a keytab that is missing, open to all, or of somebody else" {
  make_keytab
  chmod 644 "$KEYTAB"
  run "$DOCTOR" --edge-only "${TICKET[@]}"
  [ "$status" -eq 2 ]
  says fix keytab "$KEYTAB is open to every user of this machine"
  [[ $output == *"→ chmod 600 $KEYTAB"* ]]
  chmod 640 "$KEYTAB"
  run "$DOCTOR" --edge-only "${TICKET[@]}"
  says warn keytab "etl@EXAMPLE.COM in $KEYTAB, which its group may read"
  run "$DOCTOR" --edge-only "${TICKET[@]}" --set kerberos.principal=tl@EXAMPLE.COM
  says fix keytab "$KEYTAB holds no key of tl@EXAMPLE.COM"
  says skip ticket "needs keytab"
  rm "$KEYTAB"
  run "$DOCTOR" --edge-only "${TICKET[@]}"
  says fix keytab "$KEYTAB is not there"
}

@test "doctor: a keytab that the KDC does not take, with the words of kinit" {
  make_keytab
  KINIT_SAYS="kinit: Preauthentication failed" run "$DOCTOR" --edge-only "${TICKET[@]}"
  [ "$status" -eq 2 ]
  says fix ticket "the KDC gives none to etl@EXAMPLE.COM: kinit: Preauthentication failed"
}

@test "doctor: no ticket where one is needed" {
  make_secure_conf
  stub klist 'exit 1'
  run "$DOCTOR" --edge-only
  [ "$status" -eq 2 ]
  says fix ticket "there is no valid one"
}

@test "doctor: a ticket that lasts, one that ends soon, and one in a form that nobody knows" {
  make_secure_conf
  it_is "2026-11-21 09:30:15"
  klist_says "11/21/2026 19:29:59" "11/23/2026 09:30:00"
  run "$DOCTOR" --edge-only
  says ok ticket "of this user, for 9 h 59 min, renewable for 47 h"
  klist_says "11/21/26 09:50:00"
  run "$DOCTOR" --edge-only
  [ "$status" -eq 0 ]
  says warn ticket "of this user, for 19 more minutes"
  klist_says "the day after"
  run "$DOCTOR" --edge-only
  says warn ticket "of this user; how long it lasts cannot be read from klist"
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
  chmod 644 "$KEYTAB"
  SUBMIT_CODE=8 run "$DOCTOR" "${TICKET[@]}"
  [ "$status" -eq 2 ]
  [ -e "$ARGV" ]
}

@test "doctor: with --json the job gets the findings of this machine and nothing else is printed" {
  run "$DOCTOR" --json
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  read_arrived
  arrived --edge-check
  arrived "ok java 17.0.15 at $JAVA_HOME/bin/java"
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
