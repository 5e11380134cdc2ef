"""The archive's entry point: refuses an old Python, chooses where to unpack, hands over to shiv.

Touches only the user's own directory; never HOME. Python 2 must be able to read this file.
"""

# ruff: noqa: UP031 (Python 2 has no f-strings)

import os
import stat
import sys

OLDEST = (3, 9)


def refuse_old_python():
    if sys.version_info < OLDEST:
        version = ".".join(str(part) for part in sys.version_info[:3])
        sys.stderr.write(
            "hivekeeper: Python 3.9 or newer is needed, this is %s (%s)\n"
            "  state: nothing was started\n"
            "  next:  set HIVEKEEPER_PYTHON, or PYSPARK_DRIVER_PYTHON with spark-submit, to a newer one\n" % (version, sys.executable)
        )
        sys.exit(2)


def choose_root():
    """The directory to unpack into: the user's own below the temporary directory, else one for this run only."""
    for place in (os.environ.get("TMPDIR"), "/tmp", os.getcwd()):
        # Links lead elsewhere once somebody has exchanged them.
        parent = os.path.realpath(place) if place else ""
        if not parent or others_may_exchange(parent):
            continue
        shared = os.path.join(parent, "hivekeeper-%d" % os.getuid())
        try:
            os.mkdir(shared, 0o700)
        except FileExistsError:
            pass
        except OSError:
            continue
        return shared if is_private(shared) else make_own(parent)
    sys.stderr.write(
        "hivekeeper: there is no directory to unpack into that only this user can write to\n"
        "  state: nothing was started\n"
        "  next:  set TMPDIR to one\n"
    )
    sys.exit(2)


def others_may_exchange(directory):
    """Whether another user could put something else in the place of what we make there, or of a directory above, by the rule of
    bin/lib/trust.bash. A missing directory is left to its user.
    """
    above, writers, trusted = os.path.dirname(directory), 0o022, trusted_users()
    while True:
        try:
            seen = os.stat(directory)
        except OSError:
            return False
        if seen.st_uid not in trusted or (seen.st_mode & writers and not seen.st_mode & stat.S_ISVTX):
            return True
        if directory == above:
            return False
        directory, above, writers = above, os.path.dirname(above), 0o002


def trusted_users():
    """Those who may exchange files of ours. In a YARN container the NodeManager's user is one."""
    import contextlib
    import pwd

    users = {0, os.getuid()}
    for name in os.environ.get("HIVEKEEPER_RELEASE_OWNERS", "").split():
        # If there is no such user, the program says so.
        with contextlib.suppress(KeyError):
            users.add(pwd.getpwnam(name).pw_uid)
    return users


def is_private(path):
    """Whether only we can have put anything there: everybody knows the name, so another user may have created it first."""
    try:
        seen = os.lstat(path)
    except OSError:
        # Theirs is gone again; ours would still be there.
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not stat.S_IMODE(seen.st_mode) & 0o077


def make_own(parent):
    """A directory that is removed when this process ends."""
    import atexit
    import shutil
    import tempfile

    own = tempfile.mkdtemp(prefix="hivekeeper-", dir=parent)
    atexit.register(shutil.rmtree, own, True)
    return own


def put_back(archive, root):
    """Put back those unpacked files that are gone: systems remove old files from temporary directories. Each one by a rename, and all
    others stay as they are: another command may load them just now.
    """
    import json
    import tempfile
    import zipfile

    with zipfile.ZipFile(archive) as content:
        build = json.loads(content.read("environment.json").decode())["build_id"]
        top = os.path.join(root, "%s_%s" % (os.path.basename(os.path.realpath(archive)), build))
        if not os.path.isdir(top):
            return
        for name in content.namelist():
            path = os.path.join(top, name)
            if name.startswith("site-packages/") and not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                handle, written = tempfile.mkstemp(dir=os.path.dirname(path))
                with os.fdopen(handle, "wb") as file:
                    file.write(content.read(name))
                os.chmod(written, content.getinfo(name).external_attr >> 16)
                os.replace(written, path)


def main():
    refuse_old_python()
    # Settings meant for other shiv archives must not redirect this one.
    for name in [name for name in os.environ if name.startswith("SHIV_") and name != "SHIV_ROOT"]:
        del os.environ[name]
    if not os.environ.get("SHIV_ROOT"):
        os.environ["SHIV_ROOT"] = choose_root()
    put_back(sys.argv[0], os.environ["SHIV_ROOT"])

    import _bootstrap

    _bootstrap.bootstrap()


if __name__ == "__main__":
    main()
