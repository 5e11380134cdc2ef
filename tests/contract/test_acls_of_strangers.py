"""ACLs with odd names: whoever may write to a table gives them to its directories and files. HDFS bounds only the number of entries."""

from __future__ import annotations

import pytest

from hivekeeper.plan import file_rights
from hivekeeper.ports import NoPermission

pytestmark = pytest.mark.jvm

# So many named users has an access ACL at most, besides the base entries (AclTransformation.MAX_ENTRIES).
NAMED = 28
FITS, LONG = 200, 300


@pytest.fixture
def hdfs(files_world):
    if files_world.kind != "hdfs":
        pytest.skip("only HDFS has ACLs")
    return files_world


def give_acl(gateway, path, length):
    jvm = gateway.jvm
    users = (f"user:{'n' * (length - 2)}{number:02d}:r-x" for number in range(NAMED))
    acl = jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(",".join(["user::rwx,group::r-x,mask::r-x,other::---", *users]), True)
    place = jvm.org.apache.hadoop.fs.Path(path)
    place.getFileSystem(gateway.hadoop_conf).setAcl(place, acl)


@pytest.mark.parametrize("part", ["directory", "file"])
def test_an_acl_that_is_too_long_to_be_kept_for_many_is_not_read(hdfs, gateway, part):
    """A table may have a hundred thousand directories, whose attributes are read in one call; each of their files may have another ACL."""
    top = hdfs.path("closed")
    hdfs.writer.make_directory(top)
    hdfs.writer.add(f"{top}/a", "x")
    place = top if part == "directory" else f"{top}/a"
    ids = {top: hdfs.files.stat(top).file_id}
    reads = [lambda: hdfs.files.attributes([top])]
    if part == "file":
        reads.append(lambda: hdfs.files.file_rights(ids, file_rights.MOST_DIFFERENT))
    give_acl(gateway, place, FITS)
    for read in reads:
        assert "n" * (FITS - 2) in str(read())
    give_acl(gateway, place, LONG)
    for read in reads:
        with pytest.raises(NoPermission, match=r"closed.*its ACL has more than 8192 characters"):
            read()


@pytest.mark.parametrize("name", ["mallory:rwx,user:nobody", "mallory:rwx,mask::rwx,user:nobody", "a,b", "a:b"])
@pytest.mark.parametrize("part", ["directory", "file"])
def test_nor_is_one_with_a_name_that_says_another_entry(hdfs, gateway, part, name):
    """What is made for the table, its control directory among it, would be open to `mallory`: the text of an ACL is read again there."""
    top = hdfs.path("crafted")
    hdfs.writer.make_directory(top)
    hdfs.writer.add(f"{top}/a", "x")
    jvm = gateway.jvm
    place = jvm.org.apache.hadoop.fs.Path(top if part == "directory" else f"{top}/a")
    entries = jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec("user::rwx,group::r-x,other::---,mask::r-x,user:x:r-x", True)
    kinds = jvm.org.apache.hadoop.fs.permission
    entry = kinds.AclEntry.Builder().setScope(kinds.AclEntryScope.ACCESS).setType(kinds.AclEntryType.USER).setName(name)
    entries.add(entry.setPermission(kinds.FsAction.READ_EXECUTE).build())
    place.getFileSystem(gateway.hadoop_conf).setAcl(place, entries)
    with pytest.raises(NoPermission, match="an entry that names no user or group"):
        hdfs.files.attributes([top])
