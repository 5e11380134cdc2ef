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
    walk_path judge_path "$file" "$file"
  done
}

# Let JUDGE check each directory from the root down; a link is checked, then followed. # JUDGE PATH ABOUT
walk_path() {
  local judge="$1" at='' rest="$2" about="$3" part target links=0
  while [[ -n $rest ]]; do
    rest="${rest#/}" part="${rest%%/*}"
    # The directory that contains part.
    if [[ $rest == */* ]]; then
      "$judge" "${at:-/}" "$about" above
      rest="${rest#*/}"
    else
      "$judge" "${at:-/}" "$about" last
      rest=''
    fi
    case "$part" in
      '' | .) continue ;;
      ..) at="${at%/*}"; continue ;;
    esac
    if [[ -L $at/$part ]]; then
      "$judge" "$at/$part" "$about" link
      links=$((links + 1))
      [[ $links -lt 40 ]] || return 0
      target="$(readlink -- "$at/$part")"
      [[ $target != /* ]] || at=''
      rest="${target#/}${rest:+/$rest}"
    else
      at="$at/$part"
    fi
  done
  "$judge" "${at:-/}" "$about" itself
}

# Remember user, group, mode and the names of both, from a single stat; fails if there is nothing. # PATH
look_at_path() {
  [[ -n ${LOOKED[$1]:-} ]] || LOOKED[$1]="$(stat -c '%u %g %a %U %G' -- "$1" 2>/dev/null)"
}

# Check one path on the way to a file; a missing path is left to its reader. # PATH FILE above|last|link|itself
judge_path() {
  local path="$1" about="$2" uid gid mode owner group
  look_at_path "$path" || return 0
  read -r uid gid mode owner group <<<"${LOOKED[$path]}"
  [[ $TRUSTED == *" $uid "* ]] ||
    refuse_path "$about" "$path belongs to $owner" "have it owned by root or $(id -un), or set HIVEKEEPER_RELEASE_OWNERS=$owner"
  [[ ! -L $path ]] || return 0
  if ((8#$mode & 8#2)); then
    [[ -d $path && -k $path ]] || refuse_path "$about" "everybody may write to $path (mode $mode)" "chmod o-w $(printf '%q' "$path")"
    [[ $3 != last ]] || refuse_path "$about" "everybody may put files into $path (mode $mode)" "use a directory that only you can write to"
  elif ((8#$mode & 8#20)); then
    is_private_group "$gid" "$owner" "$group" "$path" ||
      refuse_path "$about" "the group $group, or users of its ACL, may write to $path (mode $mode)" "chmod g-w $(printf '%q' "$path")"
  fi
}

# Exit if somebody else could put another file in the place of ours in this directory, or another directory in its place or that of one above;
# a missing one is left to its user. # DIRECTORY WHAT-IT-IS
require_sole_use() {
  local path="$1"
  [[ $path == /* ]] || path="$PWD/$path"
  walk_path judge_exchange "$path" "$2 $1"
}

# Check one path on the way to such a directory. With the sticky bit only the owner of a directory can. A group that may write above it is
# left to the administrator: Debian lets one do so in /var/log. # PATH ABOUT above|last|link|itself
judge_exchange() {
  local path="$1" about="$2" uid gid mode owner group who='' its=the where="$1"
  look_at_path "$path" || return 0
  read -r uid gid mode owner group <<<"${LOOKED[$path]}"
  [[ $about != *" $path" ]] || its=its where=it
  if [[ $TRUSTED != *" $uid "* ]]; then
    die 2 "$about: $its owner $owner may exchange files in $where" "have it owned by root or $(id -un), or set HIVEKEEPER_RELEASE_OWNERS=$owner"
  elif [[ -L $path ]] || ((8#$mode & 8#1000)); then
    return 0
  elif ((8#$mode & 8#2)); then
    who=everyone
  elif [[ $3 == itself ]] && ((8#$mode & 8#20)) && ! is_private_group "$gid" "$owner" "$group" "$path"; then
    who="the group $group, or users of its ACL,"
  fi
  [[ -z $who ]] || die 2 "$about: $who may exchange files in $where" "take that right away, or: chmod +t -- $(printf '%q' "$path")"
}

# Whether the group has the owner's name and no other member, and no ACL lets others write. # GID OWNER GROUP PATH
is_private_group() {
  local members
  [[ $3 == "$2" && $(ls -ld -- "$4") != ??????????+* ]] || return 1
  members="$(getent group "$1")" || return 1
  members="${members##*:}"
  [[ -z $members || $members == "$2" ]]
}

# Exit because of this path. # FILE WHAT NEXT
refuse_path() {
  die 2 "$1 is not used, as somebody else could change it: $2 [untrusted-file]" "$3"
}
