"""Finds the programs for a test that becomes another user, who can't enter root's home, where the clone may be."""

import atexit
import functools
import os
import shutil
import stat
import tempfile


def open_to_all(path):
    """Whether every user may enter each folder down to `path`, and `path` itself."""
    path = os.path.realpath(path)
    while path != os.path.dirname(path):
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        path = os.path.dirname(path)
    return True


@functools.lru_cache
def for_all(folder):
    """A folder `bin` of a build whose programs every user can run: the folder itself, or a copy, which exists as long as this
    process. tests-bin is beside it, as in the build."""
    if open_to_all(folder):
        return folder
    place = next(place for place in (tempfile.gettempdir(), "/tmp", "/var/tmp") if os.path.isdir(place) and open_to_all(place))
    copy = tempfile.mkdtemp(prefix="fm-bin-", dir=place)
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    os.chmod(copy, 0o755)
    tests = os.path.join(folder, "..", "tests-bin")
    shutil.copytree(folder, os.path.join(copy, "bin"))
    os.mkdir(os.path.join(copy, "tests-bin"))
    for name in filter(lambda name: name.endswith("_driver"), os.listdir(tests)):
        shutil.copy(os.path.join(tests, name), os.path.join(copy, "tests-bin", name))
    return os.path.join(copy, "bin")
