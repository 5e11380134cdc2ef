# shellcheck shell=bash
# Check that nobody else can change what runs from here, by owners and modes. The rule is that of job/hivekeeper/launch/trusted_files.py, for
# everything that runs before Python. Only functions.

# Exit if somebody else could change one of these files, or a directory above one. # FILE…
require_trusted() {
  local file
  declare -gA LOOKED=()
  TRUSTED=" 0 $EUID "
  for file in ${HIVEKEEPER_RELEASE_OWNERS:-}; do
    TRUSTED+="$(id -u -- "$file" 2>/dev/null) " || die 2 "HIVEKEEPER_RELEASE_OWNERS names $file, which is not a user of this machine" "correct or unset it"
  done
  for file in "$@"; do
    require_trusted_file "$file"
  done
}

# Check each directory from the root down; a link is checked, then followed. # FILE
require_trusted_file() {
  local file="$1" at='' rest="$1" part target links=0
  while [[ -n $rest ]]; do
    rest="${rest#/}" part="${rest%%/*}"
    # The directory that contains part.
    if [[ $rest == */* ]]; then
      judge_path "${at:-/}" "$file" ''
      rest="${rest#*/}"
    else
      judge_path "${at:-/}" "$file" last
      rest=''
    fi
    case "$part" in
      '' | .) continue ;;
      ..) at="${at%/*}"; continue ;;
    esac
    if [[ -L $at/$part ]]; then
      judge_path "$at/$part" "$file" ''
      links=$((links + 1))
      [[ $links -lt 40 ]] || return 0
      target="$(readlink -- "$at/$part")"
      [[ $target != /* ]] || at=''
      rest="${target#/}${rest:+/$rest}"
    else
      at="$at/$part"
    fi
  done
  judge_path "$at" "$file" ''
}

# Check one path, with a single stat; a missing path is left to its reader. # PATH FILE [last]
judge_path() {
  local path="$1" about="$2" last="$3" found uid gid mode owner group
  found="${LOOKED[$path]:-}"
  if [[ -z $found ]]; then
    found="$(stat -c '%u %g %a %U %G' -- "$path" 2>/dev/null)" || return 0
    LOOKED[$path]="$found"
  fi
  read -r uid gid mode owner group <<<"$found"
  [[ $TRUSTED == *" $uid "* ]] ||
    refuse_path "$about" "$path belongs to $owner" "have it owned by root or $(id -un), or set HIVEKEEPER_RELEASE_OWNERS=$owner"
  [[ ! -L $path ]] || return 0
  if ((8#$mode & 8#2)); then
    [[ -d $path && -k $path ]] || refuse_path "$about" "everybody may write to $path (mode $mode)" "chmod o-w $path"
    [[ -z $last ]] || refuse_path "$about" "everybody may put files into $path (mode $mode)" "use a directory that only you can write to"
  elif ((8#$mode & 8#20)); then
    is_private_group "$gid" "$owner" "$group" && [[ $(ls -ld -- "$path") != ??????????+* ]] ||
      refuse_path "$about" "the group $group, or users of its ACL, may write to $path (mode $mode)" "chmod g-w $path"
  fi
}

# Exit if somebody else could put another file in the place of ours in this directory; a missing one is left to its user. With the sticky bit
# only the owner of a directory can. # DIRECTORY WHAT-IT-IS
require_sole_use() {
  local found uid gid mode owner group who=''
  found="$(stat -L -c '%u %g %a %U %G' -- "$1" 2>/dev/null)" || return 0
  read -r uid gid mode owner group <<<"$found"
  if [[ $TRUSTED != *" $uid "* ]]; then
    die 2 "$2 $1: its owner $owner may exchange files in it" "have it owned by root or $(id -un), or set HIVEKEEPER_RELEASE_OWNERS=$owner"
  elif ((8#$mode & 8#1000)); then
    return 0
  elif ((8#$mode & 8#2)); then
    who=everyone
  elif ((8#$mode & 8#20)) && ! is_private_group "$gid" "$owner" "$group"; then
    who="the group $group"
  fi
  [[ -z $who ]] || die 2 "$2 $1: $who may exchange files in it" "take that right away, or: chmod +t -- $(printf '%q' "$1")"
}

# Whether the group has the owner's name and no other member. # GID OWNER GROUP
is_private_group() {
  local members
  [[ $3 == "$2" ]] || return 1
  members="$(getent group "$1")" || return 1
  members="${members##*:}"
  [[ -z $members || $members == "$2" ]]
}

# Exit because of this path. # FILE WHAT NEXT
refuse_path() {
  die 2 "$1 is not used, as somebody else could change it: $2 [untrusted-file]" "$3"
}
