# shellcheck shell=bash
# The checks of this machine, made before any Java is started. Only functions. Each check reports one line and never ends the script.

# Forget all findings.
begin_findings() {
  declare -gA LEVELS=()
  FINDINGS=() MACHINE_WRONG=no STATUS=0
  DEPLOY_MODE='' PRINCIPAL='' KEYTAB='' SPARK_SUBMIT='' SPARK_VERSION='' SUBMIT_OPTIONS=()
}

# Make every check of this machine, in an order in which each one knows what it needs. # [OPTIONS]
check_machine() {
  check_bash
  check_archive
  check_python
  check_temp_dir
  check_configuration "$@"
  check_spark
  check_java
  check_hadoop_conf
  check_yarn_conf
  check_hive_conf
  check_keytab
  check_ticket
  check_log_dir
  check_files
}

# Note one finding and, unless a document is wanted, print it. # LEVEL NAME WHAT [NEXT]
report() {
  LEVELS[$2]="$1"
  FINDINGS+=(--edge-check "$1 $2 $3${4:+ → $4}")
  [[ $1 != fix ]] || MACHINE_WRONG=yes
  [[ $AS_JSON == no ]] || return 0
  printf '%-5s %-16s %s\n' "$1" "$2" "$3"
  [[ -z ${4:-} ]] || printf '      → %s\n' "$4"
}

# Whether these checks found nothing that must be fixed. # NAME…
all_fit() {
  local name
  for name in "$@"; do
    case "${LEVELS[$name]:-}" in
      ok | warn) ;;
      *) return 1 ;;
    esac
  done
}

# Report skip, and succeed, where a check that this one builds on failed. # NAME NEEDED…
skip_without() {
  local name="$1" needed
  shift
  for needed in "$@"; do
    if ! all_fit "$needed"; then
      report skip "$name" "needs $needed"
      return 0
    fi
  done
  return 1
}

# Call a function that may die; first in a subshell. Where it dies, set WRONG and REMEDY to its words. # FUNCTION [ARGUMENTS]
attempt() {
  local said
  WRONG='' REMEDY=''
  if said="$("$@" 2>&1 >/dev/null)"; then
    "$@" >/dev/null
    return
  fi
  # Other programs may have spoken before.
  WRONG="${said##*hivekeeper: }"
  WRONG="${WRONG%%$'\n'*}"
  [[ $said != *'next:  '* ]] || REMEDY="${said##*next:  }"
  return 1
}

# bash 4.2 is what RHEL 7 has.
check_bash() {
  if ((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 2))); then
    report ok bash "${BASH_VERSION%%(*}"
  else
    report fix bash "$BASH_VERSION is too old" "install bash 4.2 or newer and put it first on PATH"
  fi
}

check_archive() {
  if attempt find_archive; then
    report ok archive "$ARCHIVE"
  else
    report fix archive "$WRONG" "$REMEDY"
  fi
}

check_python() {
  local version
  if ! attempt find_python; then
    report fix python "$WRONG" "$REMEDY"
  elif ! version="$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3]); sys.exit(sys.version_info < (3, 9))' 2>/dev/null)"; then
    report fix python "${version:-no version} at $PYTHON" "set HIVEKEEPER_PYTHON to Python 3.9 or newer"
  else
    report ok python "$version at $PYTHON"
  fi
}

# Also makes WORK, which reading the configuration needs.
check_temp_dir() {
  if attempt make_work_directory; then
    report ok temp-dir "${TMPDIR:-/tmp}"
  else
    report fix temp-dir "$WRONG" "$REMEDY"
  fi
}

# Fills SUBMIT_OPTIONS and its like, as for a run. # [OPTIONS]
check_configuration() {
  if skip_without configuration archive python temp-dir; then
    return
  fi
  if ! attempt set_conf_dir || ! attempt read_launch_words doctor "$@"; then
    report fix configuration "$WRONG" "$REMEDY"
    return
  fi
  report ok configuration "spark.master $MASTER${DEPLOY_MODE:+, deploy mode $DEPLOY_MODE}; conf directory ${HIVEKEEPER_CONF_DIR:-none}"
}

check_spark() {
  if skip_without spark configuration; then
    return
  fi
  if ! attempt find_spark_submit; then
    report fix spark "$WRONG" "$REMEDY"
    return
  fi
  find_spark_version
  case "$SPARK_VERSION" in
    3.3* | 3.5* | 4.*) report ok spark "$SPARK_VERSION at $SPARK_SUBMIT" ;;
    3.4*) report warn spark "$SPARK_VERSION at $SPARK_SUBMIT is not one that is tested" "prefer Spark 3.3, 3.5 or 4" ;;
    '') report warn spark "the version of $SPARK_SUBMIT cannot be found out" "see that it is Spark 3.3, 3.5 or 4: $SPARK_SUBMIT --version" ;;
    *) report fix spark "$SPARK_VERSION at $SPARK_SUBMIT is not supported" "point SPARK_HOME or spark.submit_command to Spark 3.3, 3.5 or 4" ;;
  esac
}

# Print where this Spark is installed.
find_spark_home() {
  if [[ -n ${SPARK_HOME:-} ]]; then
    printf '%s' "$SPARK_HOME"
  else
    dirname -- "$(dirname -- "$(readlink -f -- "$SPARK_SUBMIT")")"
  fi
}

# Set SPARK_VERSION, empty where nothing tells it: the RELEASE file, the name of a jar, or spark-submit itself, the slowest.
find_spark_version() {
  local home jar
  home="$(find_spark_home)"
  SPARK_VERSION=''
  if [[ -r $home/RELEASE && "$(<"$home/RELEASE")" =~ Spark\ ([0-9]+\.[0-9]+[^[:space:]]*) ]]; then
    SPARK_VERSION="${BASH_REMATCH[1]}"
    return
  fi
  for jar in "$home"/jars/spark-core_*.jar; do
    if [[ -e $jar && ${jar##*/} =~ ^spark-core_[0-9.]+-([0-9].*)\.jar$ ]]; then
      SPARK_VERSION="${BASH_REMATCH[1]}"
      return
    fi
  done
  SPARK_VERSION="$("$SPARK_SUBMIT" --version 2>&1 </dev/null | sed -n 's/.* version \([0-9][0-9]*\.[0-9][^ ]*\).*/\1/p' | head -n 1)" || true
}

# Java must be one that this Spark runs on.
check_java() {
  local java version major wanted
  if ! attempt find_java; then
    report fix java "$WRONG" "$REMEDY"
    return
  fi
  java="$(type -P -- "${JAVA_HOME:+$JAVA_HOME/bin/}java")"
  version="$(find_java_version "$java")"
  major="${version#1.}"
  major="${major%%[!0-9]*}"
  case "$SPARK_VERSION" in
    4.*) wanted='17 or 21' ;;
    *) wanted='8, 11 or 17' ;;
  esac
  if [[ -z $major ]]; then
    report fix java "$java does not tell its version" "set JAVA_HOME or spark.java_home to Java $wanted"
  elif ! all_fit spark; then
    report ok java "$version at $java (whether it fits depends on the Spark)"
  elif [[ " ${wanted//,/} " == *" $major "* ]]; then
    report ok java "$version at $java"
  else
    report fix java "$version at $java does not fit Spark $SPARK_VERSION" "set JAVA_HOME or spark.java_home to Java $wanted"
  fi
}

# Print the version of a Java, from its release file where it has one. # JAVA
find_java_version() {
  local home release
  home="$(dirname -- "$(dirname -- "$(readlink -f -- "$1")")")"
  for release in "$home/release" "${home%/jre}/release"; do
    if [[ -r $release && "$(<"$release")" =~ JAVA_VERSION=\"([^\"]+)\" ]]; then
      printf '%s' "${BASH_REMATCH[1]}"
      return
    fi
  done
  "$1" -version 2>&1 </dev/null | sed -n 's/.* version "\([^"]*\)".*/\1/p' | head -n 1 || true
}

# Whether HADOOP_CONF_DIR or YARN_CONF_DIR leads to a cluster's files.
check_hadoop_conf() {
  local name directory core default_fs remedy="set HADOOP_CONF_DIR to the directory of the cluster's client configuration, such as /etc/hadoop/conf"
  if skip_without hadoop-conf configuration; then
    return
  fi
  for name in HADOOP_CONF_DIR YARN_CONF_DIR; do
    directory="${!name:-}"
    if [[ -n $directory && ! -d $directory ]]; then
      report fix hadoop-conf "$name is $directory, which is not a directory" "$remedy"
      return
    fi
  done
  if [[ -z ${HADOOP_CONF_DIR:-}${YARN_CONF_DIR:-} ]]; then
    report_no_hadoop_conf "$remedy"
    return
  fi
  core="$(find_conf_file core-site.xml)"
  if [[ -z $core || -z $(find_conf_file hdfs-site.xml) ]]; then
    report fix hadoop-conf "${HADOOP_CONF_DIR:-$YARN_CONF_DIR} holds no ${core:+hdfs-site.xml}${core:-core-site.xml}" "$remedy"
    return
  fi
  default_fs="$(read_property "$core" fs.defaultFS fs.default.name)"
  case "$MASTER,$default_fs" in
    yarn, | yarn,file:*) report fix hadoop-conf "$core: fs.defaultFS is ${default_fs:-not set}, so paths would mean local files" "$remedy" ;;
    *, | *,file:*) report warn hadoop-conf "$core: fs.defaultFS is ${default_fs:-not set}: paths mean local files" "$remedy" ;;
    *) report ok hadoop-conf "$default_fs, from $core" ;;
  esac
}

# Nothing is set: right for local files only, or spark-env.sh does it. # REMEDY
report_no_hadoop_conf() {
  local env="${SPARK_CONF_DIR:-}"
  if [[ -z $env ]] && all_fit spark; then
    env="$(find_spark_home)/conf"
  fi
  if [[ -r $env/spark-env.sh && "$(<"$env/spark-env.sh")" == *HADOOP_CONF_DIR=* ]]; then
    report ok hadoop-conf "left to $env/spark-env.sh; its files are not looked into here"
  elif [[ $MASTER == yarn ]]; then
    report fix hadoop-conf "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set" "$1"
  else
    report ok hadoop-conf "not set: spark.master $MASTER works on local files"
  fi
}

# Print the path of a file in HADOOP_CONF_DIR or YARN_CONF_DIR, nothing where it is not there. # NAME
find_conf_file() {
  local directory
  for directory in "${HADOOP_CONF_DIR:-}" "${YARN_CONF_DIR:-}"; do
    if [[ -n $directory && -r $directory/$1 ]]; then
      printf '%s' "$directory/$1"
      return
    fi
  done
}

# Print the value of the first of these properties that a Hadoop XML file sets. # FILE NAME…
read_property() {
  local file="$1" name value
  shift
  for name in "$@"; do
    # One property a line, comments out: \001 and \002 stand for their ends, which sed could not match otherwise.
    value="$(tr '\n\r\t' '   ' <"$file" |
      sed -e 's/<!--/\x01/g; s/-->/\x02/g; s/\x01[^\x02]*\x02//g; s#</property>#\n#g' |
      sed -n "s#.*<name> *${name//./\\.} *</name>.*#&#; T; s#.*<value> *\\([^<]*[^< ]\\) *</value>.*#\\1#p" | tail -n 1)"
    if [[ -n $value ]]; then
      printf '%s' "$value"
      return
    fi
  done
}

# Without an address of the ResourceManager its clients ask 0.0.0.0:8032 for ever.
check_yarn_conf() {
  local file address
  if skip_without yarn-conf configuration; then
    return
  fi
  if [[ $MASTER != yarn ]]; then
    report ok yarn-conf "not needed: spark.master is $MASTER"
    return
  fi
  if skip_without yarn-conf hadoop-conf; then
    return
  fi
  if [[ -z ${HADOOP_CONF_DIR:-}${YARN_CONF_DIR:-} ]]; then
    report ok yarn-conf "left to spark-env.sh"
    return
  fi
  file="$(find_conf_file yarn-site.xml)"
  if [[ -z $file ]]; then
    report fix yarn-conf "${HADOOP_CONF_DIR:-$YARN_CONF_DIR} holds no yarn-site.xml" "copy it from the cluster, or correct HADOOP_CONF_DIR"
    return
  fi
  address="$(read_property "$file" yarn.resourcemanager.ha.rm-ids yarn.resourcemanager.address yarn.resourcemanager.hostname)"
  if [[ -z $address ]]; then
    report fix yarn-conf "$file names no ResourceManager" "set yarn.resourcemanager.address there; without it 0.0.0.0:8032 is asked"
  else
    report ok yarn-conf "ResourceManager $address, from $file"
  fi
}

# Spark reads hive-site.xml from its own conf directory and from the Hadoop one.
check_hive_conf() {
  local directory file='' uris
  if skip_without hive-conf spark; then
    return
  fi
  uris="$(find_hive_uris_in_options)"
  for directory in "${HADOOP_CONF_DIR:-}" "${SPARK_CONF_DIR:-}" "$(find_spark_home)/conf"; do
    if [[ -z $uris && -n $directory && -r $directory/hive-site.xml ]]; then
      file="$directory/hive-site.xml"
      uris="$(read_property "$file" hive.metastore.uris)"
    fi
  done
  if [[ -n $uris ]]; then
    report ok hive-conf "$uris, from ${file:-spark.extra_conf}"
  elif [[ $MASTER == yarn ]]; then
    report fix hive-conf "${file:-no hive-site.xml}${file:+ does not set hive.metastore.uris}" \
      "put a hive-site.xml with hive.metastore.uris into HADOOP_CONF_DIR or Spark's conf directory"
  else
    report warn hive-conf "no hive.metastore.uris: Spark uses an embedded metastore of its own" \
      "for a cluster put its hive-site.xml into HADOOP_CONF_DIR"
  fi
}

# Print the metastore that --conf names.
find_hive_uris_in_options() {
  local word
  for word in "${SUBMIT_OPTIONS[@]}"; do
    if [[ $word == spark.hadoop.hive.metastore.uris=* ]]; then
      printf '%s' "${word#*=}"
    fi
  done
}

check_keytab() {
  local listed mode
  if skip_without keytab configuration; then
    return
  fi
  if [[ -z $KEYTAB ]]; then
    report ok keytab "none configured: the ticket at hand is used"
  elif [[ ! -f $KEYTAB ]]; then
    report fix keytab "$KEYTAB is not there" "correct kerberos.keytab"
  elif [[ ! -r $KEYTAB ]]; then
    report fix keytab "$KEYTAB cannot be read by $(id -un)" "correct its owner and permissions, or kerberos.keytab"
  elif mode="$(ls -ldL -- "$KEYTAB")" && [[ ${mode:7:3} != --- ]]; then
    report fix keytab "$KEYTAB is open to every user of this machine (${mode%% *})" "chmod 600 $KEYTAB"
  elif ! type -P klist >/dev/null; then
    report fix keytab "klist is not on PATH, so what $KEYTAB holds is not known" "install the Kerberos client (krb5-workstation, krb5-user)"
  elif ! listed="$(LC_ALL=C klist -kt "$KEYTAB" 2>&1)"; then
    report fix keytab "$KEYTAB: ${listed##*$'\n'}" "fetch it again from the KDC (ktutil, kadmin)"
  elif ! holds_principal "$listed" "$PRINCIPAL"; then
    report fix keytab "$KEYTAB holds no key of $PRINCIPAL" "correct kerberos.principal; klist -kt $KEYTAB lists what it holds"
  elif [[ ${mode:4:3} != --- ]]; then
    report warn keytab "$PRINCIPAL in $KEYTAB, which its group may read (${mode%% *})" "chmod 600 $KEYTAB unless that is meant"
  else
    report ok keytab "$PRINCIPAL in $KEYTAB"
  fi
}

# Whether a list of keys has this principal, whose realm may be left out. # LIST PRINCIPAL
holds_principal() {
  local line word
  while read -r line; do
    for word in $line; do
      if [[ $word == "$2" || ($2 != *@* && $word == "$2"@*) ]]; then
        return 0
      fi
    done
  done <<<"$1"
  return 1
}

# The ticket at hand, or one that the keytab gives now.
check_ticket() {
  local core answer
  if skip_without ticket configuration; then
    return
  fi
  core="$(find_conf_file core-site.xml)"
  if [[ -z $KEYTAB && -n $core && $(read_property "$core" hadoop.security.authentication) != kerberos ]]; then
    report ok ticket "not needed: hadoop.security.authentication in $core is not kerberos"
  elif [[ -z $KEYTAB && -z ${HADOOP_CONF_DIR:-}${YARN_CONF_DIR:-} && $MASTER != yarn ]]; then
    report ok ticket "not needed: spark.master $MASTER works on local files"
  elif [[ -z $KEYTAB ]]; then
    check_own_ticket
  elif skip_without ticket keytab; then
    return
  elif ! type -P kinit >/dev/null; then
    report fix ticket "kinit is not on PATH" "install the Kerberos client (krb5-workstation, krb5-user)"
  elif ! answer="$(KRB5CCNAME="FILE:$WORK/doctor" LC_ALL=C kinit -k -t "$KEYTAB" "$PRINCIPAL" 2>&1)"; then
    report fix ticket "the KDC gives none to $PRINCIPAL: ${answer##*$'\n'}" \
      "fetch the keytab again (a new password makes the old one invalid), or fix krb5.conf"
  else
    KRB5CCNAME="FILE:$WORK/doctor" report_ticket "from the keytab" 0
  fi
}

# Nobody renews the user's own ticket: it must last for the run.
check_own_ticket() {
  if ! type -P klist >/dev/null; then
    report fix ticket "klist is not on PATH" "install the Kerberos client (krb5-workstation, krb5-user)"
  elif ! LC_ALL=C klist -s; then
    report fix ticket "there is no valid one" "run kinit, or set kerberos.principal and kerberos.keytab"
  else
    report_ticket "of this user" 3600
  fi
}

# Say how long the ticket in KRB5CCNAME lasts; warn where it is less than so many seconds. # WHOSE SECONDS
report_ticket() {
  local line ends='' renews='' left
  while read -r line; do
    case "$line" in
      *" krbtgt/"*) [[ -n $ends ]] || ends="$(read_klist_time 3 "$line")" ;;
      "renew until "*) [[ -n $renews ]] || renews="$(read_klist_time 3 "$line")" ;;
    esac
  done < <(LC_ALL=C klist 2>/dev/null)
  if [[ -z $ends ]]; then
    report warn ticket "$1; how long it lasts cannot be read from klist" "look yourself: klist"
    return
  fi
  left=$((ends - $(date +%s)))
  if ((left < $2)); then
    report warn ticket "$1, for $((left / 60)) more minutes${renews:+, renewable for $(((renews - ends + left) / 3600)) hours}" \
      "kinit -R or kinit before a longer run, or configure a keytab, from which Spark gets new ones"
  else
    report ok ticket "$1, for $((left / 3600)) h $((left % 3600 / 60)) min${renews:+, renewable for $(((renews - ends + left) / 3600)) h}"
  fi
}

# Print, in seconds since 1970, the date and time that begin at a word of a line of klist. # WORD LINE
read_klist_time() {
  local words
  read -r -a words <<<"$2"
  LC_ALL=C date -d "${words[$1 - 1]} ${words[$1]%,}" +%s 2>/dev/null || true
}

check_log_dir() {
  if skip_without log-dir configuration; then
    return
  fi
  if [[ -z ${LOG_DIR:-} ]]; then
    report ok log-dir "none configured: the log goes to stderr"
  elif [[ -d $LOG_DIR && -w $LOG_DIR && -x $LOG_DIR ]] || [[ ! -e $LOG_DIR && -w $(dirname -- "$LOG_DIR") ]]; then
    report ok log-dir "$LOG_DIR"
  else
    report fix log-dir "$LOG_DIR cannot be written to by $(id -un)" "make it a directory of this user, or correct log_dir"
  fi
}

# What the configuration ships with the job must be there. Paths of the cluster are looked for by the job.
check_files() {
  if skip_without files configuration; then
    return
  fi
  find_shipped
  if ((${#MISSING[@]} > 0)); then
    report fix files "cannot be read: ${MISSING[*]}" \
      "correct spark.python_env, spark.archives, spark.extra_files, spark.py_files or spark.archive"
  else
    report ok files "${#SHIPPED[@]} local ones to be shipped with the job"
  fi
}

# Run the checks of the cluster; their lines follow ours, or one document has both. # [OPTIONS]
ask_cluster() {
  local handed=()
  [[ $AS_JSON == no ]] || handed=("${FINDINGS[@]}")
  run_child "$HERE/hivekeeper" doctor "$@" ${handed[@]+"${handed[@]}"}
}

# Print the document of our own findings, or say why there is none. # [OPTIONS]
print_document() {
  if ! all_fit archive python; then
    die 2 "without the archive and a usable Python there is no document" "run it without --json to see what to fix"
  fi
  "$PYTHON" "$ARCHIVE" doctor --json --edge-only "${FINDINGS[@]}" || true
}
