#!/usr/bin/env bats
# The release bundle as a site gets it: unpacked by root, used by another user with an empty home, upgraded.

CHECKOUT="$(cd -P -- "$BATS_TEST_DIRNAME/../.." && pwd)"
NOBODY=65534

# Two bundles of different versions, built once from a checkout that contains the builder's own stray files.
setup_file() {
  local builder="${HIVEKEEPER_PYTHON:-$CHECKOUT/.venv/bin/python}"
  # Not below bats's own directory, which other users cannot enter.
  PLACE="$(mktemp -d /tmp/hivekeeper-bundle.XXXXXX)"
  export PLACE
  chmod 755 "$PLACE"
  mkdir "$PLACE/source"
  cp -R "$CHECKOUT"/{job,bin,conf,docs,packaging,pyproject.toml,README.md,CHANGELOG.md,LICENSE} "$PLACE/source"
  cd "$PLACE/source"
  printf 'spark: {queue: builders}\n' | tee conf/site.yaml conf/site.yaml~ conf/site.yaml.bak conf/site.prod.yaml >conf/tables.yaml
  mkdir dist bin/__pycache__
  touch dist/old.txt bin/.launcher.swp bin/__pycache__/x.pyc
  build_version "$builder" 90.1.0
  build_version "$builder" 90.2.0
}

teardown_file() {
  rm -rf -- "$PLACE"
}

# Build the archive and the bundle of a version. # PYTHON VERSION
build_version() {
  sed -i "s/^__version__ = .*/__version__ = \"$2\"/" job/hivekeeper/__init__.py
  "$1" packaging/build-zipapp
  "$1" packaging/build-bundle
}

# A separate site for each test: APP with both versions, and an empty home.
setup() {
  SITE="$PLACE/$BATS_TEST_NUMBER"
  APP="$SITE/opt/hivekeeper"
  mkdir -p "$APP" "$SITE/home" "$SITE/tmp"
  unpack 90.1.0
  unpack 90.2.0
  [ "$(id -u)" -ne 0 ] || chown "$NOBODY:$NOBODY" "$SITE/home" "$SITE/tmp"
}

unpack() {
  tar -xzf "$PLACE/source/dist/hivekeeper-$1.tar.gz" -C "$APP"
}

# Run a command as an unprivileged user with an empty home; as the current user if it is one. # COMMAND…
as_operator() {
  local drop=()
  [ "$(id -u)" -ne 0 ] || drop=(setpriv --reuid="$NOBODY" --regid="$NOBODY" --clear-groups)
  (cd "$SITE/home" && "${drop[@]}" env -i HOME="$SITE/home" TMPDIR="$SITE/tmp" PATH=/usr/local/bin:/usr/bin:/bin "$@")
}

# A system Python that this user can run.
need_python() {
  as_operator python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "NOT TESTED: no Python 3.9 for all users on this machine"
}

# Everything below the versions' directories: names, modes, owners, sizes, times.
picture() {
  find "$APP" -printf '%p %m %u %s %T@\n' | sort
}

@test "bundle: one directory on top, and only what belongs to the project" {
  run tar -tzf "$PLACE/source/dist/hivekeeper-90.1.0.tar.gz"
  [ "$status" -eq 0 ]
  local line
  for line in "${lines[@]}"; do
    [[ $line == hivekeeper-90.1.0/* ]]
  done
  for line in bin/hivekeeper conf/defaults.yaml conf/site.example.yaml docs/install.md lib/hivekeeper.py README.md CHANGELOG.md LICENSE; do
    [ -f "$APP/hivekeeper-90.1.0/$line" ]
  done
  [[ $output != *dist* ]]
  [[ $output != *conf/site.yaml* && $output != *conf/site.prod* && $output != *conf/tables.yaml* ]]
  [[ $output != *pycache* && $output != *.swp* ]]
}

@test "bundle: its checksums are right, and name every file" {
  (cd "$PLACE/source/dist" && sha256sum --quiet -c hivekeeper-90.1.0.tar.gz.sha256)
  cd "$APP/hivekeeper-90.1.0"
  sha256sum --quiet -c SHA256SUMS
  [ "$(sed 's/^[0-9a-f]*  //' SHA256SUMS | sort)" = "$(find . -type f ! -name SHA256SUMS -printf '%P\n' | sort)" ]
  printf 'x' >>conf/defaults.yaml
  run sha256sum --quiet -c SHA256SUMS
  [ "$status" -ne 0 ]
}

@test "bundle: nobody but its owner can write, and everybody can read and run it" {
  [ -z "$(find "$APP/hivekeeper-90.1.0" -perm /022)" ]
  [ -z "$(find "$APP/hivekeeper-90.1.0" -type f ! -perm -444)" ]
  [ -z "$(find "$APP/hivekeeper-90.1.0" -type d ! -perm -555)" ]
  [ -x "$APP/hivekeeper-90.1.0/bin/hivekeeper" ]
  tar -tvzf "$PLACE/source/dist/hivekeeper-90.1.0.tar.gz" >"$SITE/listing"
  run grep -v ' root/root ' "$SITE/listing"
  [ "$status" -eq 1 ]
}

@test "bundle: help and configuration work for a user with an empty home, and nothing is written beside them" {
  need_python
  local before
  before="$(picture)"
  run as_operator "$APP/hivekeeper-90.1.0/bin/hivekeeper" --help
  [ "$status" -eq 0 ]
  [[ $output == *compact-swap* ]]
  run as_operator "$APP/hivekeeper-90.1.0/bin/hivekeeper" config
  [ "$status" -eq 0 ]
  [[ $output == *block_size* ]]
  [ "${lines[-1]}" = "site.yaml: none" ]
  [ "$(picture)" = "$before" ]
  [ -z "$(ls -A "$SITE/home")" ]
}

@test "bundle: works through a link to the launcher and through a link to its directory" {
  need_python
  mkdir "$SITE/bin"
  ln -s "$APP/hivekeeper-90.1.0/bin/hivekeeper" "$SITE/bin/hivekeeper"
  ln -s hivekeeper-90.1.0 "$APP/current"
  run as_operator "$SITE/bin/hivekeeper" --help
  [[ $status -eq 0 && $output == *compact-swap* ]]
  run as_operator "$APP/current/bin/hivekeeper" --version
  [[ $status -eq 0 && $output == "hivekeeper 90.1.0" ]]
}

@test "bundle: analyze runs on a local Spark for a user with an empty home" {
  need_python
  local spark java
  spark="$(echo "$CHECKOUT"/.venv/lib/python3*/site-packages/pyspark)"
  java="$(readlink -f -- "$(type -P "${JAVA_HOME:+$JAVA_HOME/bin/}java")")" || skip "NOT TESTED: no Java on this machine"
  as_operator test -x "$spark/bin/spark-submit" -a -x "$java" || skip "NOT TESTED: other users cannot run this machine's Spark or Java"
  local before
  before="$(picture)"
  run as_operator SPARK_HOME="$spark" JAVA_HOME="${java%/bin/java}" SPARK_LOCAL_IP=127.0.0.1 \
    "$APP/hivekeeper-90.1.0/bin/hivekeeper" analyze --database default --json
  printf '%s\n' "$output"
  [ "$status" -eq 0 ]
  [[ $output == *'"hivekeeper": "90.1.0"'* ]]
  [ "$(picture)" = "$before" ]
}

@test "configuration: conf/ beside the versions comes before the bundle's own, and HIVEKEEPER_CONF_DIR before both" {
  need_python
  local launcher="$APP/hivekeeper-90.1.0/bin/hivekeeper"
  printf 'spark: {queue: own}\n' >"$APP/hivekeeper-90.1.0/conf/site.yaml"
  run as_operator "$launcher" config
  [ "${lines[-1]}" = "site.yaml: $APP/hivekeeper-90.1.0/conf/site.yaml" ]
  mkdir "$APP/conf" "$SITE/named"
  run as_operator "$launcher" config
  [ "${lines[-1]}" = "site.yaml: $APP/hivekeeper-90.1.0/conf/site.yaml" ]
  printf 'spark: {queue: beside}\n' >"$APP/conf/site.yaml"
  run as_operator "$launcher" config
  [ "${lines[-1]}" = "site.yaml: $APP/conf/site.yaml" ]
  [[ $output == *"spark.queue "*" beside "* ]]
  run as_operator HIVEKEEPER_CONF_DIR="$SITE/named" "$launcher" config
  [ "${lines[-1]}" = "site.yaml: none" ]
  run as_operator HIVEKEEPER_CONF_DIR="$SITE/absent" "$launcher" config
  [ "$status" -eq 2 ]
  [[ $output == *"HIVEKEEPER_CONF_DIR is $SITE/absent, which is not a directory"* ]]
}

@test "configuration: /etc/hivekeeper comes between conf/ beside the versions and the bundle's own" {
  need_python
  unshare --mount true 2>/dev/null || skip "NOT TESTED: only root can put another /etc in place"
  mkdir -p "$SITE/etc/hivekeeper" "$APP/conf"
  cp -R /etc/passwd /etc/group /etc/ld.so.cache "$SITE/etc"
  printf 'spark: {queue: etc}\n' | tee "$SITE/etc/hivekeeper/site.yaml" >"$APP/hivekeeper-90.1.0/conf/site.yaml"
  run with_etc "$APP/hivekeeper-90.1.0/bin/hivekeeper" config
  [ "${lines[-1]}" = "site.yaml: /etc/hivekeeper/site.yaml" ]
  printf 'spark: {queue: beside}\n' >"$APP/conf/site.yaml"
  run with_etc "$APP/hivekeeper-90.1.0/bin/hivekeeper" config
  [ "${lines[-1]}" = "site.yaml: $APP/conf/site.yaml" ]
}

# Run a command as the operator with SITE/etc in place of /etc. # COMMAND…
with_etc() {
  export -f as_operator
  export SITE NOBODY
  unshare --mount bash -c 'mount --bind "$SITE/etc" /etc && as_operator "$@"' with_etc "$@"
}

@test "configuration: a directory that the operator cannot enter is an error, not a reason to run without it" {
  need_python
  [ "$(id -u)" -eq 0 ] || skip "NOT TESTED: only root can make a directory that another user cannot enter"
  mkdir -m 700 "$APP/conf"
  printf 'spark: {queue: beside}\n' >"$APP/conf/site.yaml"
  run as_operator "$APP/hivekeeper-90.1.0/bin/hivekeeper" config
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: $APP/conf cannot be entered by "* ]]
  [ "${#lines[@]}" -eq 3 ]
}

@test "configuration: a link to nothing is an error, too" {
  need_python
  mkdir "$APP/conf"
  ln -s "$APP/not-mounted/site.yaml" "$APP/conf/site.yaml"
  run as_operator "$APP/hivekeeper-90.1.0/bin/hivekeeper" config
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == *"$APP/conf/site.yaml: the configuration file cannot be read: No such file"* ]]
}

@test "configuration: so is a directory that is one, as other rules than the site's would count" {
  need_python
  printf 'spark: {queue: bundled}\n' >"$APP/hivekeeper-90.1.0/conf/site.yaml"
  ln -s "$APP/not-mounted/conf" "$APP/conf"
  run as_operator "$APP/hivekeeper-90.1.0/bin/hivekeeper" config
  [ "$status" -eq 2 ]
  [[ ${lines[0]} == "hivekeeper: $APP/conf is a link to nothing" ]]
}

@test "upgrade: the next version finds the site's configuration, and so does the last one after a step back" {
  need_python
  mkdir "$APP/conf"
  printf 'spark: {queue: etl}\n' >"$APP/conf/site.yaml"
  local version
  for version in 90.1.0 90.2.0 90.1.0; do
    ln -sfn "hivekeeper-$version" "$APP/current"
    run as_operator "$APP/current/bin/hivekeeper" --version
    [ "$output" = "hivekeeper $version" ]
    run as_operator "$APP/current/bin/hivekeeper" config
    [ "${lines[-1]}" = "site.yaml: $APP/conf/site.yaml" ]
    [[ $output == *"spark.queue "*" etl "* ]]
  done
}

@test "two versions: one user with one home runs them in turn and at once, each unpacks its own" {
  need_python
  local version turn children=() child
  for version in 90.1.0 90.2.0 90.1.0 90.2.0; do
    run as_operator "$APP/hivekeeper-$version/bin/hivekeeper" --version
    [ "$output" = "hivekeeper $version" ]
  done
  [ "$(find "$SITE/tmp" -mindepth 2 -maxdepth 2 -type d -name 'hivekeeper.py_*' | wc -l)" -eq 2 ]
  rm -rf "$SITE"/tmp/*
  for turn in 1 2 3; do
    for version in 90.1.0 90.2.0; do
      as_operator "$APP/hivekeeper-$version/bin/hivekeeper" --version >"$SITE/said.$version.$turn" &
      children+=("$!")
    done
  done
  for child in "${children[@]}"; do
    wait "$child"
  done
  for version in 90.1.0 90.2.0; do
    [ "$(cat "$SITE"/said."$version".*)" = "$(printf "hivekeeper $version\n%.0s" 1 2 3)" ]
  done
}

@test "bundle: the same sources give the same bytes, whoever builds them" {
  mkdir "$SITE/again"
  cp -R "$PLACE/source" "$SITE/again"
  cd "$SITE/again/source"
  find . -exec touch -d '2001-01-01' {} +
  chmod -R go-rwx .
  rm dist/*.tar.gz*
  python3 packaging/build-bundle
  cmp dist/hivekeeper-90.2.0.tar.gz "$PLACE/source/dist/hivekeeper-90.2.0.tar.gz"
}

@test "bundle: a link among the files is refused, and a missing archive says how to build it" {
  mkdir "$SITE/again"
  cp -R "$PLACE/source" "$SITE/again"
  cd "$SITE/again/source"
  ln -s /etc/passwd conf/passwd
  run python3 packaging/build-bundle
  [ "$status" -ne 0 ]
  [[ $output == *"conf/passwd is a link"* ]]
  rm dist/hivekeeper.py
  run python3 packaging/build-bundle
  [ "$status" -ne 0 ]
  [[ $output == *"build it with: make dist"* ]]
}
