"""Decide whose records are trusted and which rights a control directory gets.

Pure. docs/permissions.md has the rules. If there is an ACL, its entries count: the group bits of the mode are then its mask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper import names, quoting
from hivekeeper.model import OWNER_ONLY, Attributes, Exposed, FileInfo, Guard
from hivekeeper.names import ControlPaths
from hivekeeper.reasons import Code, Reason

# Levels below the control directory: lock, log and runs; log entries and run directories; their contents.
LEVELS = 3
OWNER_AND_GROUP = 0o640
STICKY = 0o1000


@dataclass(frozen=True)
class Judgement:
    """Why records are not trusted; otherwise our own paths that others may write to, with the rights they must get."""

    why_not: Optional[Reason]
    tighten: Mapping[str, Guard]


def judge(control: ControlPaths, exposed: Iterable[Exposed], trusted: Collection[str]) -> Judgement:
    """Others may have changed a file that they may write to; in a directory that they may write to, each entry's owner tells."""
    tighten: Dict[str, Guard] = {}
    for one in exposed:
        if not _is_record(control, one.path):
            continue
        if not one.is_ours and one.owner not in trusted:
            return Judgement(_foreign(one), {})
        others = writers(one, trusted)
        if not others and not one.is_dir and one.path != control.lock and one.mode & 0o022:
            # Whoever reads the record sees only the mask, and nobody has a reason to change one.
            others = ["users of its ACL"]
        if others and one.is_ours and (one.is_dir or one.path == control.lock):
            tighten[one.path] = _tightened(one, trusted)
        elif others:
            return Judgement(_writable(control, one, others), {})
    return Judgement(None, tighten)


def _is_record(control: ControlPaths, path: str) -> bool:
    """Whether anything at this path is ever trusted; scratch directories of `doctor`, for example, are not."""
    below = path[len(control.top) :].strip("/").split("/")
    if below[0] == "runs" and len(below) > 1:
        return names.RUN_DIRECTORY.fullmatch(below[1]) is not None
    if below[0] == "log" and len(below) > 1:
        return len(below) == 2 and names.log_version(below[1]) is not None
    return below[0] in ("", names.LOCK, "log", "runs") or below in ([names.base(control.mark)], [names.SEAL])


def find_strangers(control: ControlPaths, entries: Iterable[FileInfo]) -> List[str]:
    """What no run puts into a control directory. A doctor may have been killed."""
    files = (control.seal, control.lock, control.mark, control.new_mark)
    known = {control.log: True, control.runs: True, **dict.fromkeys(files, False)}
    trial = names.trial_directory("")
    return [entry.path for entry in entries if known.get(entry.path) is not entry.is_dir and not entry.name.startswith(trial)]


def is_own(control: ControlPaths, entry: FileInfo) -> bool:
    """Whether something in a control directory, or in its directories of log and runs, has a name that only Hivekeeper gives. The lock's
    proves nothing: who takes it makes it.
    """
    if entry.path == control.seal:
        return not entry.is_dir
    if names.parent(entry.path) == control.runs:
        return entry.is_dir and names.RUN_DIRECTORY.fullmatch(entry.name) is not None
    is_numbered = names.log_version(entry.name) is not None or names.checkpoint_version(entry.name) is not None
    return names.parent(entry.path) == control.log and is_numbered and not entry.is_dir


def writers(one: Exposed, trusted: Collection[str]) -> List[str]:
    """Who may write besides the owner and trusted users."""
    found = ["everybody"] if one.mode & 0o002 else []
    if one.mode & 0o020 and not one.acl:
        found.append(f"the group {one.group}")
    elif one.mode & 0o020:
        known = {*trusted, one.owner}
        found += [_named(kind, name or one.group) for kind, name, rights in list_access(one.acl) if _gives_write(kind, name, rights, known)]
    return found


def why_exchangeable(way: Sequence[Exposed], user: str, trusted: Collection[str]) -> Optional[Reason]:
    """Why others may have another directory at the end of this way, which begins at the root; None if nobody may.

    The rule is that of the launcher for what it starts (docs/install.md): a directory with the sticky bit, in which nobody can rename what
    belongs to another user, may be on the way. Who owns the root can exchange everything anyway.
    """
    believed = {user, *trusted, *(root.owner for root in way[:1])}
    for one in way:
        if not one.is_ours and one.owner not in believed:
            return _owned_above(one)
        others = [] if one.mode & STICKY or _is_private(one) else writers(one, believed)
        if others:
            return _writable_above(one, others)
    return None


def _is_private(one: Exposed) -> bool:
    """Whether, as on many machines, a local directory's group has nobody else."""
    return one.path.startswith("file:") and one.group == one.owner and not one.mode & 0o002


def _owned_above(one: Exposed) -> Reason:
    return Reason(
        Code.RECORDS_OF_ANOTHER,
        f"{_owned_by(one)}, who may exchange what is in it",
        f"have it owned by the superuser or the user of the runs: hdfs dfs -chown USER {quoting.hdfs(one.path)}; or add {one.owner} to "
        "trusted_owners; or use another directory",
    )


def _writable_above(one: Exposed, others: List[str]) -> Reason:
    return Reason(
        Code.RECORDS_WRITABLE,
        f"{_written_by(one, others)}, who may exchange what is in it",
        f"take that right away: hdfs dfs -chmod go-w {quoting.hdfs(one.path)}; or let users rename only what is theirs: "
        f"hdfs dfs -chmod +t {quoting.hdfs(one.path)}; or use another directory",
    )


def _owned_by(one: Exposed) -> str:
    return f"{one.path} (mode {one.mode:04o}) belongs to {one.owner}"


def _written_by(one: Exposed, others: List[str]) -> str:
    return f"{one.path} (owner {one.owner}, mode {one.mode:04o}) may be written by {', '.join(others)}"


def _gives_write(kind: str, name: str, rights: str, trusted: Collection[str]) -> bool:
    if kind == "user":
        return name != "" and name not in trusted and "w" in rights
    return kind == "group" and "w" in rights


def _named(kind: str, name: str) -> str:
    return f"the {kind} {name}"


def list_access(acl: Iterable[str]) -> List[Tuple[str, str, str]]:
    """(kind, name, rights) of each access entry, from `user:etl:rwx` or `mask::r-x`; default entries are left out."""
    found = []
    for entry in acl:
        kind, name, rights = entry.rsplit(":", 2)
        if not entry.startswith("default:"):
            found.append((kind, name, rights))
    return found


def _foreign(one: Exposed) -> Reason:
    return Reason(
        Code.RECORDS_OF_ANOTHER,
        f"{_owned_by(one)}, so what it says may not be what a run of ours has recorded",
        f"find out who made it and why; if it is right, give it to the user of the runs (chown), or add {one.owner} to trusted_owners; "
        "else move it away",
    )


def _writable(control: ControlPaths, one: Exposed, others: List[str]) -> Reason:
    return Reason(
        Code.RECORDS_WRITABLE,
        _written_by(one, others),
        "find out whether somebody changed it; if not, take the right to write from all but the owner: hdfs dfs -chmod go-w "
        f"{quoting.hdfs(control.top)} {quoting.hdfs(control.top, '/{_*,log,runs,log/*,runs/*,runs/*/*}')}",
    )


def _tightened(one: Exposed, trusted: Collection[str]) -> Guard:
    return without_write(one.mode, one.acl, trusted)


def without_write(mode: int, acl: Iterable[str], trusted: Collection[str]) -> Guard:
    """Mode and access ACL without write for anyone but the owner and trusted named users."""
    kept = []
    for kind, name, rights in list_access(acl):
        if kind == "mask":
            continue
        is_allowed = kind == "user" and (name == "" or name in trusted)
        kept.append((kind, name, rights if is_allowed else rights.replace("w", "-")))
    if not any(name for _, name, _ in kept):
        group = next((rights for kind, _, rights in kept if kind == "group"), None)
        bits = mode >> 3 & 0o5 & (0o7 if group is None else bits_of(group))
        return Guard(mode & ~0o072 | bits << 3)
    # Keep the rights of the mask, but drop write if no entry has it.
    mask = mode >> 3 & 0o7
    if not any("w" in rights for kind, name, rights in kept if name or kind == "group"):
        mask &= ~0o2
    entries = [f"{kind}:{name}:{rights}" for kind, name, rights in kept] + [f"mask::{symbols_of(mask)}"]
    return Guard(mode & ~0o072 | mask << 3, acl=tuple(sorted(entries)))


def bits_of(rights: str) -> int:
    return sum(bit for bit, letter in zip((4, 2, 1), rights) if letter != "-")


def symbols_of(bits: int) -> str:
    return "".join(letter if bits & bit else "-" for bit, letter in zip((4, 2, 1), "rwx"))


def share(root: Attributes, group_reads: bool, trusted: Collection[str]) -> Guard:
    """The rights of the directories that lead to backups: those of the table without write for others.

    So exactly the users who may read the table reach its old files, which keep their own rights. Records are for the owner, and for the
    group too if it may read the table and everything ever recorded about it (`group_reads`).
    """
    guard = without_write(root.mode | 0o700, root.acl, trusted)
    acl = tuple(sorted("user::rwx" if entry.startswith("user::") else entry for entry in guard.acl))
    is_open = group_reads and is_read_by_group(root, root.group)
    return replace(guard, mode=guard.mode & 0o777, file_mode=OWNER_AND_GROUP if is_open else OWNER_ONLY, group=root.group, acl=acl)


def is_narrower(one: Attributes, root: Attributes) -> bool:
    """Whether somebody whom a table's root lets through may not list or pass this directory below it. With different ACLs, or one
    of two different groups, it counts as narrower unless it is open for everybody.
    """
    if lets_all_pass(one):
        return False
    own, known = set(_of_others(one.acl)), set(_of_others(root.acl))
    # Whom an ACL keeps out as a member of a named group, the directory's own group may let in.
    if own != known or (own and one.group != root.group):
        return True
    wanted, given = root.mode & 0o055, one.mode
    if one.group != root.group:
        # Who is in one group only has the rights of others in the other directory.
        most = (root.mode >> 3 | root.mode) & 0o5
        wanted, given = most << 3 | most, one.mode
    return wanted & ~given != 0


def lets_fewer_write(one: Attributes, other: Attributes) -> bool:
    """Whether somebody, besides the owners, who may write to the other directory may not write to this one. With different ACLs or groups,
    this one counts so unless everybody may write to it.
    """
    if lets_all_write(one) or not _writing(other.mode):
        return False
    own, known = _access_of_others(one.acl), _access_of_others(other.acl)
    return set(own) != set(known) or one.group != other.group or _writing(other.mode) & ~_writing(one.mode) != 0


def lets_all_write(one: Attributes) -> bool:
    return _writing(one.mode) == 0o022 and all(bits_of(rights) & 0o3 == 0o3 for _, _, rights in _access_of_others(one.acl))


def _access_of_others(acl: Sequence[str]) -> List[Tuple[str, str, str]]:
    """What an ACL lets others than the owner do; nothing where its other entries only repeat the mode, beside those by default."""
    found = list_access(acl)
    return _of_others(acl) if any(kind == "mask" for kind, _, _ in found) else []


def _writing(mode: int) -> int:
    """The bits of the group, or of all that an ACL names, and of others, if they may write to a directory: they must pass it, too."""
    return mode & mode << 1 & 0o022


def is_closed_to_others(directory: Union[Attributes, FileInfo], users: Collection[str]) -> bool:
    """Whether only these users may write to a directory. Of an ACL the mode has the mask."""
    return directory.owner in users and not directory.mode & 0o022


def lets_all_pass(one: Attributes) -> bool:
    return one.mode & 0o005 == 0o005 and lets_group_pass(one)


def lets_group_pass(one: Attributes) -> bool:
    """Whether the group, and everybody whom the ACL names, may list and pass a directory."""
    of_group = [rights for kind, _, rights in _of_others(one.acl) if kind != "other"]
    return one.mode & 0o050 == 0o050 and all(bits_of(rights) & 0o5 == 0o5 for rights in of_group)


def _of_others(acl: Iterable[str]) -> List[Tuple[str, str, str]]:
    return [(kind, name, rights) for kind, name, rights in list_access(acl) if kind != "user" or name]


def without_group(guard: Guard) -> Guard:
    """For a directory that cannot get the table's group: its group may be anyone, so it gets the rights of others. Whom the table's mode or
    ACL keeps out is one of the others now.
    """
    others = guard.mode & guard.mode >> 3 & 0o7
    for _, _, rights in _of_others(guard.acl):
        others &= bits_of(rights)
    return Guard(guard.mode & 0o700 | others << 3 | others, OWNER_ONLY)


def of_log(guard: Guard) -> Guard:
    """If entries are closed to the group, so is the log's directory; a later run recognises it by that."""
    return guard if guard.file_mode == OWNER_AND_GROUP else replace(guard, mode=0o700, acl=())


def is_closed(mode: int) -> bool:
    """Whether a directory is closed to its group."""
    return mode & 0o050 != 0o050


def is_read_by_group(attributes: Attributes, group: str) -> bool:
    """Whether this group may list a directory and read its data files."""
    of_files = attributes.group if attributes.file_group is None else attributes.file_group
    directory = _bits_for(group, attributes.group, attributes.mode, attributes.acl)
    files = _bits_for(group, of_files, attributes.file_mode, attributes.file_acl)
    return directory & 0o5 == 0o5 and bool(files & 0o4)


def _bits_for(group: str, owned_by: str, mode: int, acl: Tuple[str, ...]) -> int:
    """To what is another group's, the members of a group are others, unless the ACL names them."""
    if group == owned_by:
        return _group_bits(mode, acl)
    named = [bits_of(rights) for kind, name, rights in list_access(acl) if (kind, name) == ("group", group)]
    return named[0] & mode >> 3 if named else mode & 0o7


def _group_bits(mode: int, acl: Iterable[str]) -> int:
    own = [bits_of(rights) for kind, name, rights in list_access(acl) if kind == "group" and not name]
    return mode >> 3 & 0o7 & (own[0] if own else 0o7)
