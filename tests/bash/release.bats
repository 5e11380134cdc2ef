#!/usr/bin/env bats
# packaging/release in its own repository: what it refuses, what it changes, that a failure leaves nothing. The builds are stubs;
# bundle.bats has the real ones.

CHECKOUT="$(cd -P -- "$BATS_TEST_DIRNAME/../.." && pwd)"

setup() {
  REPOSITORY="$BATS_TEST_TMPDIR/the repository"
  mkdir -p "$REPOSITORY/packaging" "$REPOSITORY/job/hivekeeper"
  cd "$REPOSITORY"
  cp "$CHECKOUT/packaging/release" "$CHECKOUT/packaging/common.bash" packaging
  cp "$CHECKOUT/.gitignore" .
  printf '"""Hivekeeper."""\n\n__version__ = "0.1.0"\n' >job/hivekeeper/__init__.py
  printf '# Changelog\n\n## Unreleased\n\n### Added\n- `one`: thing\n\n## 0.0.9 – 2025-01-01\n- older\n' >CHANGELOG.md
  stub_builds
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com
  export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
  git init --quiet
  git add .
  git commit --quiet --message begin
}

# A stub of in-venv that creates what the real builds create, with the version in the sources.
stub_builds() {
  cat >packaging/in-venv <<'EOF'
#!/usr/bin/env bash
version="$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' job/hivekeeper/__init__.py)"
mkdir -p dist
case "$*" in
  *build-zipapp) exit "${BUILD_STATUS:-0}" ;;
  *build-bundle) cd dist && echo bundle >"hivekeeper-$version.tar.gz" && sha256sum "hivekeeper-$version.tar.gz" >"hivekeeper-$version.tar.gz.sha256" ;;
  *--version) echo "hivekeeper ${SAID_VERSION:-$version}" ;;
esac
EOF
  chmod +x packaging/in-venv
}

# Whether a refusal says this and left the tree alone. # TEXT
refused_with() {
  printf '%s\n' "$output"
  [ "$status" -eq 2 ]
  [[ $output == *"$1"* ]]
  [ -z "$(git tag)" ]
  [ ! -e dist ]
}

@test "release: the section gets version and date, and the bundle is built of it" {
  run packaging/release
  printf '%s\n' "$output"
  [ "$status" -eq 0 ]
  grep -qxE '## 0\.1\.0 – [0-9]{4}-[0-9]{2}-[0-9]{2}' CHANGELOG.md
  [ "$(grep -c '^## Unreleased$' CHANGELOG.md)" -eq 1 ]
  [ "$(sed -n '/^## Unreleased$/,/^## 0.1.0/p' CHANGELOG.md | grep -c '^- ')" -eq 0 ]
  [ -f dist/hivekeeper-0.1.0.tar.gz ]
  (cd dist && sha256sum --check --quiet hivekeeper-0.1.0.tar.gz.sha256)
  [ "$(<dist/hivekeeper-0.1.0.notes.md)" = $'### Added\n- `one`: thing' ]
}

@test "release: a section that is longer than a pipe holds is no empty one" {
  local line
  for line in {1..20000}; do echo "- line $line"; done >lines
  sed -i -e '/^- `one`/r lines' CHANGELOG.md
  rm lines
  git commit --quiet --all --message more
  run packaging/release
  printf '%s\n' "$output"
  [ "$status" -eq 0 ]
}

@test "release: nothing is committed, tagged or pushed unless it was wanted" {
  packaging/release
  [ "$(git rev-list --count HEAD)" -eq 1 ]
  [ -z "$(git tag)" ]
}

@test "release: with --tag it commits the two files and makes the annotated tag with the notes" {
  packaging/release --tag 0.2.0
  [ -z "$(git status --porcelain)" ]
  [ "$(git log -1 --format=%s)" = "Release 0.2.0" ]
  [ "$(git cat-file -t v0.2.0)" = tag ]
  [[ $(git tag -l --format='%(contents)' v0.2.0) == *'### Added'*'`one`: thing'* ]]
  grep -qx '__version__ = "0.2.0"' job/hivekeeper/__init__.py
}

@test "release: a tree with changes is refused, also with files that git does not know" {
  echo more >>CHANGELOG.md
  run packaging/release
  refused_with "the tree has changes"
  git checkout --quiet CHANGELOG.md
  touch stray
  run packaging/release
  refused_with "the tree has changes"
}

@test "release: a file that git ignores is refused where it could be packed" {
  mkdir -p conf job/hivekeeper/__pycache__
  touch conf/etl.keytab job/hivekeeper/__pycache__/x.pyc
  echo '*.keytab' >.git/info/exclude
  run packaging/release
  refused_with "conf/etl.keytab is not in git"
  rm conf/etl.keytab
  packaging/release
}

@test "release: an Unreleased section without a line is refused" {
  sed -i '/^- `one`/d' CHANGELOG.md
  git commit --quiet --all --message "empty"
  run packaging/release
  refused_with "nothing to release"
}

@test "release: a changelog without the section is refused" {
  sed -i 's/^## Unreleased$/## Later/' CHANGELOG.md
  git commit --quiet --all --message "renamed"
  run packaging/release
  refused_with "no section Unreleased"
}

@test "release: a version that was released already is refused, by its section and by its tag" {
  run packaging/release 0.0.9
  refused_with "has a section 0.0.9"
  git tag v0.3.0
  run packaging/release 0.3.0
  [ "$status" -eq 2 ]
  [[ $output == *"tagged already"* ]]
}

@test "release: what is not a version is refused" {
  local version
  for version in 1.2 v0.2.0 0.02.0 '0.2.0 ' 'x/y'; do
    run packaging/release "$version"
    refused_with "is not like 0.2.0"
  done
}

@test "release: a build that fails puts version and changelog back" {
  BUILD_STATUS=1 run packaging/release 0.2.0
  printf '%s\n' "$output"
  [ "$status" -ne 0 ]
  [[ $output == *"are as they were"* ]]
  [ -z "$(git status --porcelain)" ]
}

@test "release: an archive of another version is not released" {
  SAID_VERSION=0.0.1 run packaging/release
  [ "$status" -ne 0 ]
  [[ $output == *"the archive says"* ]]
  [ -z "$(git status --porcelain)" ]
}
