# shellcheck shell=bash
# A copy of everything a run writes to stderr, in a file; old files are removed. Only functions.

# Create this run's file in LOG_DIR, remove the oldest ones, and start the copy. # SUBCOMMAND
open_log_file() {
  local stamp
  stamp="$(date -u +%Y%m%dT%H%M%SZ)"
  LOG="$LOG_DIR/hivekeeper-$1-$stamp-$$.log"
  (umask 027 && mkdir -p -- "$LOG_DIR") 2>/dev/null || die_without_log
  # Exchanged for a link before it is opened, the log would be appended to any file of ours.
  require_sole_use "$LOG_DIR" log_dir
  (umask 027 && make_log_file) 2>/dev/null || die_without_log
  rotate_logs
  LOG_FILE="$LOG"
  trap finish_log_file EXIT
  begin_copy
}

# For when the log, or its directory, cannot be made.
die_without_log() {
  die 2 "the log $LOG cannot be written" "correct log_dir, or the permissions of that directory"
}

# Never use anything that is there already, whoever created it. A redirection, even with noclobber, opens a pipe of another user who has
# guessed the name, and waits for its reader.
make_log_file() {
  local new status=0
  new="$(mktemp "$LOG_DIR/.hivekeeper.XXXXXX")"
  chmod 640 -- "$new" && ln -T -- "$new" "$LOG" || status=$?
  rm -f -- "$new"
  return "$status"
}

# Remove all but the newest LOG_KEEP logs: only this user's plain files, named as in open_log_file, of runs that have ended.
rotate_logs() {
  local file name kept=0
  while read -r name; do
    file="$LOG_DIR/${name#* }"
    [[ -f $file && ! -L $file && -O $file ]] || continue
    kept=$((kept + 1))
    [[ $kept -le $LOG_KEEP ]] || file_is_written "$file" || rm -f -- "$file"
  done < <(list_logs | LC_ALL=C sort -r)
}

# Print TIMESTAMP-PID and name of each log, one per line.
list_logs() {
  local file name pattern='^hivekeeper-[a-z-]+-([0-9]{8}T[0-9]{6}Z-[0-9]+)\.log$'
  for file in "$LOG_DIR"/hivekeeper-*.log; do
    name="${file##*/}"
    [[ ! $name =~ $pattern ]] || printf '%s %s\n' "${BASH_REMATCH[1]}" "$name"
  done
}

# Whether a log's run is still active. # FILE
file_is_written() {
  local pid="${1##*-}"
  kill -0 "${pid%.log}" 2>/dev/null
}

# Copy stderr, our own included, into LOG until end_copy.
begin_copy() {
  rm -f -- "$WORK/stderr"
  mkfifo -m 600 -- "$WORK/stderr"
  # A signal to the whole group must not truncate the log: tee ends when the last writer has.
  (trap '' TERM INT HUP; exec tee -a -- "$LOG" <"$WORK/stderr" >&2) &
  READER=$!
  exec {STDERR}>&2 2>"$WORK/stderr"
}

# End the copy; LOG is complete then.
end_copy() {
  exec 2>&"$STDERR" {STDERR}>&-
  wait "$READER" || true
}

# At the end of the script: if the run failed, say where the log is; complete it, and remove WORK.
finish_log_file() {
  local status=$?
  [[ $status -eq 0 ]] || printf 'hivekeeper: the log of this run is %s\n' "$LOG_FILE" >&2
  end_copy
  remove_work_directory
}
