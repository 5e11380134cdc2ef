"""Decide which rights the copy of a unit's files gets, so that nobody reads rows in it that they could not read before.

Pure: the rights that occur among the files in, those of the copy or a reason out. docs/permissions.md has the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Collection, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper.model import OWNER_ONLY, Attributes, FileInfo, FileRights, FilesByRights, Snapshot
from hivekeeper.plan.listings import data_files
from hivekeeper.plan.ownership import (
    STICKY,
    bits_of,
    is_narrower,
    lets_all_pass,
    lets_all_write,
    lets_fewer_write,
    list_access,
    symbols_of,
)
from hivekeeper.reasons import Code, Reason

# Of one unit's files; whoever may write there can make any number.
MOST_DIFFERENT = 100
READ, PASS, ALL = 0o4, 0o5, 0o7
OWNER = ALL << 6


@dataclass(frozen=True)
class _Access:
    """What each class of users may do with a file. `named` are the users and groups of its ACL."""

    user: int
    group: int
    other: int
    named: Mapping[Tuple[str, str], int]

    @classmethod
    def of(cls, rights: FileRights) -> _Access:
        """With an ACL the group bits of the mode are a mask."""
        mask, named, group = rights.mode >> 3 & ALL, {}, ALL
        for kind, name, allowed in list_access(rights.acl):
            if name:
                named[kind, name] = bits_of(allowed) & mask
            elif kind == "group":
                group = bits_of(allowed)
        return cls(rights.mode >> 6 & ALL, group & mask, rights.mode & ALL, named)

    @property
    def everybody(self) -> int:
        """What everybody may do for certain, whatever their groups."""
        return reduce(and_, self.named.values(), self.user & self.group & self.other)

    @property
    def strangers(self) -> int:
        """What somebody who is not in the group may do for certain, who may be in a group that is named."""
        return reduce(and_, (bits for (kind, _), bits in self.named.items() if kind == "group"), self.other)

    @property
    def anybody_else(self) -> int:
        """What anybody but the owner may do."""
        return reduce(or_, self.named.values(), self.group | self.other)


def share_rights(known: Attributes, found: Sequence[FileRights]) -> Union[Attributes, Reason]:
    """The attributes of the copy of files with these rights, or why there are none.

    `known` are the directory's, with the rights of its first data file.
    """
    if not found:
        return known
    if len(found) > MOST_DIFFERENT:
        return _refuse(f"they have more than {MOST_DIFFERENT} different owners, groups, modes and ACLs")
    rights = {one: _Access.of(one) for one in found}
    owner, group = _find_owner(known, rights), _find_group(known, rights)
    if len(found) == 1:
        mode, acl = found[0].mode, found[0].acl
    else:
        shared = _intersect(rights, owner, group)
        if not shared.anybody_else & READ and (owner == "" or all(access.anybody_else & READ for access in rights.values())):
            return _refuse(_describe(rights))
        mode, acl = _printed(shared)
    return replace(
        known,
        file_mode=mode,
        file_acl=acl,
        file_owner=None if owner == known.owner else owner,
        file_group=None if group == known.group else group,
    )


def are_of(known: Attributes, found: FilesByRights, seen: Snapshot) -> bool:
    """Whether these are the rights of a directory and its files as they were seen before. Somebody may have had open ones at the places of
    another table's closed ones while rights were read.
    """
    shown = {(file_id, rights[:3]) for rights, ids in found.items() for file_id in ids}
    is_that = seen.file_id == known.directory_id or 0 in (seen.file_id, known.directory_id)
    return is_that and (len(found) > MOST_DIFFERENT or all((file.file_id, _shown(file)) in shown for file in data_files(seen)))


def _refuse(why: str) -> Reason:
    return Reason(
        Code.MIXED_RIGHTS,
        f"no one copy of its files would be readable by just those who may read all of them: {why}",
        "give them one owner, group and mode, or leave the unit out with --where",
    )


def _describe(rights: Iterable[FileRights]) -> str:
    first, second = list(rights)[:2]
    return " and ".join(f"{one.owner}:{one.group} {one.mode:04o}{' with an ACL' if one.acl else ''}" for one in (first, second))


def _find_owner(known: Attributes, rights: Mapping[FileRights, _Access]) -> str:
    """The directory's owner if they may read every file anyway; else the files' own. If that is not one, "": it stays the user of the
    run, who reads all rows.
    """
    if all(one.owner == known.owner or access.everybody & READ for one, access in rights.items()):
        return known.owner
    owners = {one.owner for one in rights}
    return owners.pop() if len(owners) == 1 else ""


def _find_group(known: Attributes, rights: Mapping[FileRights, _Access]) -> str:
    """The directory's group, unless all files have another one, which may do more or less than others."""
    groups = {one.group for one in rights}
    counts = any({access.group, access.other} != {access.strangers} for access in rights.values())
    return groups.pop() if len(groups) == 1 and counts else known.group


def _intersect(rights: Mapping[FileRights, _Access], owner: str, group: str) -> _Access:
    """What each class of the copy's users may do with every file. A class that a file does not know counts as the least of its classes."""
    named: FrozenSet[Tuple[str, str]] = frozenset.intersection(*(frozenset(access.named) for access in rights.values()))
    of_group, of_others = ALL, ALL
    for one, access in rights.items():
        # Users whom not every ACL names are in one of the other classes of the copy. So is the file's owner.
        floor = reduce(and_, (bits for key, bits in access.named.items() if key not in named), ALL if one.owner == owner else access.user)
        of_group &= floor & access.group & (ALL if one.group == group else access.strangers)
        of_others &= floor & access.other & (ALL if one.group == group else access.group)
    shared: Dict[Tuple[str, str], int] = {key: reduce(and_, (access.named[key] for access in rights.values())) for key in sorted(named)}
    return _Access(reduce(and_, (access.user for access in rights.values())), of_group, of_others, shared)


def _printed(access: _Access) -> Tuple[int, Tuple[str, ...]]:
    """As mode and ACL, in Hadoop's order."""
    mask = reduce(or_, access.named.values(), access.group)
    mode = access.user << 6 | mask << 3 | access.other
    if not access.named:
        return mode, ()
    entries: List[Tuple[str, str, int]] = [(kind, name, bits) for (kind, name), bits in access.named.items()]
    entries += [("user", "", access.user), ("group", "", access.group), ("mask", "", mask), ("other", "", access.other)]
    return mode, tuple(sorted(f"{kind}:{name}:{symbols_of(bits)}" for kind, name, bits in entries))


def are_changed(before: Attributes, now: Attributes, planned: Iterable[FileInfo], entries: Iterable[FileInfo]) -> bool:
    """Whether a directory, or one of the files of which a copy was planned, has other rights since, or such a file is not there: who has
    closed it may only not be seen. Of a file's ACL only the mask shows.
    """
    if (now.owner, now.group, now.mode, now.acl) != (before.owner, before.group, before.mode, before.acl):
        return True
    present = {(entry.name, entry.file_id): _shown(entry) for entry in entries}
    return any(present.get((file.name, file.file_id)) != _shown(file) for file in planned)


def _shown(file: FileInfo) -> Tuple[str, str, int]:
    return file.owner, file.group, file.mode


def closed_since(former: Attributes, now: Attributes, believed: Collection[str]) -> Optional[Attributes]:
    """The rights that a directory must get before it takes the place of one that has these now: None if it may keep its own. What lies in
    the other one must not be opened to anybody who may not pass that, and what lies in this one neither.

    A copy that could be given neither the owner nor the group of its directory has fewer readers for that alone: it belongs to one of
    `believed`, the users of runs.
    """
    if not is_narrower(now, former):
        return None
    bare = without_group(former, True, False)
    is_like_bare = now.group != former.group and (now.mode, now.acl) == (bare.mode, bare.acl)
    if is_like_bare and now.owner != former.owner and now.owner in believed:
        return None
    if not is_narrower(former, now):
        return replace(former, mode=now.mode, acl=now.acl, group=now.group)
    ours, theirs = (FileRights(one.owner, one.group, one.mode, one.acl) for one in (former, now))
    before = _Access.of(ours)
    shared = _intersect({ours: before, theirs: _Access.of(theirs)}, former.owner, former.group)
    kept = [(before.group, shared.group), (before.other, shared.other)]
    kept += [(bits, shared.named.get(key, shared.group & shared.other)) for key, bits in before.named.items()]
    if all(bits & PASS & ~left == 0 for bits, left in kept):
        return None
    mode, acl = _printed(shared)
    return replace(former, mode=former.mode & STICKY | mode, acl=acl)


def find_kept_from_others(former: Attributes, now: Attributes, late: Sequence[FileInfo], believed: Collection[str]) -> Sequence[FileInfo]:
    """Which of the files that came to a directory with the rights of `now` must not go to one with those of `former`: more users might
    reach them there, or delete them. Of `believed` are the users of runs, who have read all, and own copies that could not be given away.

    In a directory with the sticky bit only their owners, and its own, may delete files.
    """
    is_sticky = bool(now.mode & STICKY)
    if closed_since(former, now, believed) is not None or (is_sticky and not former.mode & STICKY):
        return late
    if former.owner == now.owner or former.owner in believed:
        return ()
    if not (now.owner in believed or lets_all_pass(now)):
        return late
    return [file for file in late if file.owner != former.owner] if is_sticky else ()


def may_be_of_others(backup: Attributes, live: Attributes, believed: Collection[str]) -> bool:
    """Whether a file in a backup, with these rights, may be from somebody who may not write to live: that was closed to them since, or
    given to another owner. The file's own owner tells nothing: who may write to a backup may rename into it what others have made.

    A copy that could not be given away, and so belongs to one of `believed`, has fewer writers for that alone.
    """
    bare = backup if backup.group == live.group else without_group(backup, True, False)
    if live.owner in believed and (live.mode, live.acl) == (bare.mode, bare.acl):
        return False
    if backup.owner not in {live.owner, *believed} and not lets_all_write(live):
        return True
    return lets_fewer_write(live, backup)


def while_written(attributes: Attributes) -> Attributes:
    """Those of the directory in which copies are written: its policies say how their blocks are stored, for good. All else each copy is
    given when it is proved; until then it is for the user of the run alone. The group is the one that HDFS gives.
    What its owner may not do there, they may not do with the copies' own either: who may not write could never remove them again.
    """
    mode = attributes.mode & OWNER
    return Attributes("", "", mode, OWNER_ONLY, storage_policy=attributes.storage_policy, ec_policy=attributes.ec_policy)


def with_different_owners(wanted: Iterable[Attributes]) -> List[Attributes]:
    """So few of them that each owner and group, each set of policies, and all that an owner may do, is among them: what else they say the
    owner of a directory may give it anyway, and each partition may say something else.
    """
    found: Dict[object, Attributes] = {}
    for attributes in wanted:
        for one in filter(None, (with_owner_of_files(attributes), attributes)):
            found.setdefault((one.owner, one.group), one)
            found.setdefault(one.mode & OWNER, one)
            found.setdefault((one.storage_policy, one.ec_policy, one.own_storage_policy, one.own_ec_policy), one)
    return list(dict.fromkeys(replace(one, xattrs=()) for one in found.values()))


def without_group(attributes: Attributes, of_directory: bool, of_files: bool) -> Attributes:
    """The same for a directory, or files in it, that keep whatever group they have now: that may be anyone, and members of the wanted one
    count as others.
    """
    if of_directory:
        mode, acl = _for_any_group(attributes.mode, attributes.acl)
        attributes = replace(attributes, mode=mode, acl=acl)
    if of_files:
        mode, acl = _for_any_group(attributes.file_mode, attributes.file_acl)
        attributes = replace(attributes, file_mode=mode, file_acl=acl)
    return attributes


def _for_any_group(mode: int, acl: Tuple[str, ...]) -> Tuple[int, Tuple[str, ...]]:
    entries = {(kind, name): bits_of(rights) for kind, name, rights in (entry.rsplit(":", 2) for entry in acl)}
    # With default entries alone there is no mask, and the group bits of the mode are the group's.
    has_mask = any(name and not kind.startswith("default:") for kind, name in entries) or ("mask", "") in entries
    strangers, others = _least(entries, "", mode >> 3 & ALL, mode & ALL)
    mode = mode & ~(ALL if has_mask else ALL << 3 | ALL) | others | (0 if has_mask else strangers << 3)
    if entries:
        entries["group", ""], entries["other", ""] = strangers, others
    if any(kind.startswith("default:") for kind, _ in entries):
        entries["default:group", ""], entries["default:other", ""] = _least(entries, "default:", ALL, ALL)
    return mode, tuple(sorted(f"{kind}:{name}:{symbols_of(bits)}" for (kind, name), bits in entries.items()))


def _least(entries: Mapping[Tuple[str, str], int], scope: str, mask: int, others: int) -> Tuple[int, int]:
    """What both the group and others may do, for a group that may be anyone and for others. Somebody in that group may be in one that is
    named, too, and has the rights of each.
    """
    mask &= entries.get((f"{scope}mask", ""), ALL)
    others = others & entries.get((f"{scope}other", ""), ALL) & entries.get((f"{scope}group", ""), ALL) & mask
    named = (bits & mask for (kind, name), bits in entries.items() if kind == f"{scope}group" and name)
    return reduce(and_, named, others), others


def with_owner_of_files(attributes: Attributes) -> Optional[Attributes]:
    """The same for a directory that belongs to the owner and group of the files; None if these are the directory's."""
    if attributes.file_owner is None and attributes.file_group is None:
        return None
    owner = attributes.owner if attributes.file_owner is None else attributes.file_owner
    group = attributes.group if attributes.file_group is None else attributes.file_group
    return replace(attributes, owner=owner, group=group, file_owner=None, file_group=None)
