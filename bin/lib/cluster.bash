# shellcheck shell=bash
# YARN's cluster mode: the driver's output comes back through a file on HDFS. Only functions.

# Run COMMAND in cluster mode and return what the driver would have returned here; sets STATUS. # SUBCOMMAND [OPTIONS]
run_on_cluster() {
  local at=$((1 + ${#SUBMIT_OPTIONS[@]})) application
  COMMAND=("${COMMAND[@]:0:at}" --conf "spark.yarn.appMasterEnv.HIVEKEEPER_DRIVER_OUTPUT=$DRIVER_OUTPUT" "${COMMAND[@]:at}")
  if [[ -z ${LOG_FILE:-} ]]; then
    LOG="$WORK/log"
    trap finish_copy EXIT
    begin_copy
  fi
  run_child "${COMMAND[@]}"
  # LOG holds all of spark-submit's output only once the copy has ended.
  end_copy
  begin_copy
  application="$(sed -n '/application_[0-9]*_[0-9]/{s/.*\(application_[0-9]*_[0-9]*\).*/\1/p;q}' "$LOG")"
  if [[ $RECEIVED -gt 0 ]]; then
    say_what_runs_on "$application"
    STATUS=$((128 + RECEIVED))
    return
  fi
  # The ticket may have expired.
  [[ -z $OWN_TICKET ]] || (get_ticket "$PRINCIPAL" "$KEYTAB") || true
  [[ -z $application ]] || was_refused "$application" || fetch_driver_output || fetch_container_log "$application"
  receive_driver_output "$@"
}

# Whether YARN did not accept it. With its id, and at the beginning of a line: elsewhere it may be a name that YARN quotes from the driver's
# log. For a proxy user it is a cause. # APPLICATION
was_refused() {
  grep -qE "^(Exception in thread \"main\"|Caused by:) [[:alnum:].]*: Failed to submit $1 " "$LOG"
}

# Like finish_log_file, when no log file is configured.
finish_copy() {
  end_copy
  remove_work_directory
}

# spark-submit was stopped, which does not stop the application. # APPLICATION
say_what_runs_on() {
  if [[ -n $1 ]]; then
    printf 'hivekeeper: interrupted; the application %s goes on in YARN\n' "$1" >&2
    printf '  state: its tables are at work; each one stays consistent\n' >&2
    printf '  next:  let it end, or stop it with: yarn application -kill %s; the next run recovers what was begun\n' "$1" >&2
  else
    printf 'hivekeeper: interrupted while the application was submitted\n' >&2
    printf '  state: it is not known whether it runs\n' >&2
    printf '  next:  see: yarn application -list\n' >&2
  fi
}

# Copy the driver's output into WORK; fails if there is none. The driver of a later run removes it.
fetch_driver_output() {
  if ! run_java org.apache.hadoop.fs.FsShell -get "$DRIVER_OUTPUT" "$WORK/driver-output" >/dev/null 2>"$WORK/fetch"; then
    printf 'hivekeeper: no output from the driver: %s\n' "$(grep -m 1 '^get: \|Exception' "$WORK/fetch" || tail -n 1 "$WORK/fetch")" >&2
    return 1
  fi
}

# Copy the part of the driver's log that YARN has into WORK; nothing if it keeps none. # APPLICATION
fetch_container_log() {
  run_java org.apache.hadoop.yarn.client.cli.LogsCLI -applicationId "$1" -am 1 -log_files stdout,stderr >"$WORK/container" 2>/dev/null || true
}

# Run a Hadoop class as the run's user; spark-submit has its configuration and can log in. # CLASS [ARGUMENTS]
run_java() {
  local class="$1" login=()
  shift
  if [[ -n $PROXY_USER ]]; then
    login=(--proxy-user "$PROXY_USER")
  elif [[ -n $PRINCIPAL ]]; then
    login=(--principal "$PRINCIPAL" --keytab "$KEYTAB")
  fi
  "$SPARK_SUBMIT" --master local --deploy-mode client ${login[@]+"${login[@]}"} --class "$class" spark-internal "$@" </dev/null
}

# Print and write what came back, or say what became of the run; sets STATUS. # SUBCOMMAND [OPTIONS]
receive_driver_output() {
  local ended="$STATUS"
  STATUS=0
  "$PYTHON" "$ARCHIVE" receive-driver-output "$WORK/driver-output" "$LOG" "$WORK/container" "$ended" -- "$@" || STATUS=$?
}
