"""The cache of compiled Java classes: it returns exactly what was stored, or nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paimon_spark.sql.bridge import compiler
from paimon_spark.sql.bridge.class_cache import VARIABLE, ClassCache, cache_directory, class_key
from paimon_spark.sql.bridge.compiler import _delegates, add_classes
from paimon_spark.sql.bridge.jvm import CATALOG_CLASS
from tests.spark.conftest import MODE, ROOT

SOURCES = {"A.java": "class A {}", "B.java": "class B {}"}
KEY = class_key(SOURCES, ["4.1.0", "17"])
CLASSES = bytes(range(256)) * 50
AS_ROOT = os.geteuid() == 0


@pytest.fixture
def cache(tmp_path):
    """A cache with one entry."""
    cache = ClassCache(tmp_path / "cache" / "java-classes")
    cache.store(KEY, CLASSES)
    assert cache.load(KEY) == CLASSES
    return cache


def entry(cache):
    return cache.directory / f"{KEY}.classes"


def test_cache_is_private_to_user(cache):
    assert cache.directory.stat().st_mode & 0o777 == 0o700
    assert entry(cache).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("sources", "runtime"),
    [
        (SOURCES, ["4.2.0", "17"]),
        (SOURCES, ["4.1.0", "21"]),
        (SOURCES, ["4.1.01", "7"]),
        ({**SOURCES, "B.java": "class B { }"}, ["4.1.0", "17"]),
        ({"A.java": "class A {}", "C.java": "class B {}"}, ["4.1.0", "17"]),
    ],
    ids=["other Spark", "other Java", "shifted text", "other source", "other file name"],
)
def test_other_sources_and_versions_have_other_keys(cache, sources, runtime):
    assert cache.load(class_key(sources, runtime)) is None


def test_key_ignores_order_of_files():
    assert class_key(dict(reversed(SOURCES.items())), ["4.1.0", "17"]) == KEY


@pytest.mark.parametrize("size", [0, 1, 80, 146, 147, 148, len(CLASSES)])
def test_truncated_entry_is_not_loaded(cache, size):
    entry(cache).write_bytes(entry(cache).read_bytes()[:size])
    assert cache.load(KEY) is None
    cache.store(KEY, CLASSES)
    assert cache.load(KEY) == CLASSES


@pytest.mark.parametrize("position", [0, 20, 100, 146, 147, 5000, -1])
def test_entry_with_changed_byte_is_not_loaded(cache, position):
    data = bytearray(entry(cache).read_bytes())
    data[position] ^= 1
    entry(cache).write_bytes(data)
    assert cache.load(KEY) is None


def test_entry_with_more_bytes_is_not_loaded(cache):
    entry(cache).write_bytes(entry(cache).read_bytes() + b"\0")
    assert cache.load(KEY) is None


def test_entry_of_other_key_is_not_loaded(cache):
    other = class_key(SOURCES, ["4.2.0", "17"])
    entry(cache).rename(cache.directory / f"{other}.classes")
    assert cache.load(other) is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_entry_that_others_may_write_is_not_loaded(cache, mode):
    entry(cache).chmod(mode)
    assert cache.load(KEY) is None
    cache.store(KEY, CLASSES)
    assert cache.load(KEY) == CLASSES


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_directory_that_others_may_write_is_not_used(cache, mode):
    cache.directory.chmod(mode)
    assert cache.load(KEY) is None
    other = class_key(SOURCES, ["4.2.0", "17"])
    cache.store(other, CLASSES)
    assert [path.name for path in cache.directory.iterdir()] == [entry(cache).name]


def test_directory_of_other_user_is_not_used(cache, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: cache.directory.stat().st_uid + 1)
    assert cache.load(KEY) is None
    cache.store(class_key({}, []), CLASSES)
    assert [path.name for path in cache.directory.iterdir()] == [entry(cache).name]


@pytest.mark.skipif(not AS_ROOT, reason="only root can give a file to another user")
def test_entry_of_other_user_is_not_loaded(cache):
    os.chown(entry(cache), 12345, -1)
    assert cache.load(KEY) is None


def test_links_are_not_followed(cache, tmp_path):
    moved = tmp_path / "moved"
    entry(cache).rename(moved)
    entry(cache).symlink_to(moved)
    assert cache.load(KEY) is None
    cache.store(KEY, CLASSES)
    assert cache.load(KEY) == CLASSES
    assert not entry(cache).is_symlink()
    cache.directory.rename(tmp_path / "folder")
    cache.directory.symlink_to(tmp_path / "folder")
    assert cache.load(KEY) is None


def test_pipe_in_place_of_entry_is_no_error(cache):
    entry(cache).unlink()
    os.mkfifo(entry(cache))
    assert cache.load(KEY) is None


def test_directory_that_cannot_be_created_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    cache = ClassCache(tmp_path / "file" / "cache")
    cache.store(KEY, CLASSES)
    assert cache.load(KEY) is None


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_read_only_directory_is_no_error(cache):
    cache.directory.chmod(0o500)
    cache.store(class_key({}, []), CLASSES)
    assert cache.load(KEY) == CLASSES
    cache.directory.chmod(0o700)


def test_failed_write_leaves_no_file(cache, monkeypatch):
    def full(*arguments, **names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.store(class_key({}, []), CLASSES)
    assert [path.name for path in cache.directory.iterdir()] == [entry(cache).name]


def test_least_recently_used_entries_are_removed(cache):
    keys = [KEY, *(class_key(SOURCES, [str(i)]) for i in range(8))]
    past = time.time() - 1000
    for i, key in enumerate(keys[:-1]):
        cache.store(key, CLASSES)
        os.utime(cache.directory / f"{key}.classes", (past + i, past + i))
    (cache.directory / "other").write_text("")
    assert cache.load(KEY) == CLASSES  # used now
    cache.store(keys[-1], CLASSES)
    assert cache.load(keys[1]) is None
    assert all(cache.load(key) == CLASSES for key in (KEY, *keys[2:]))
    assert (cache.directory / "other").exists()


def test_partial_files_are_removed_after_an_hour(cache):
    old, new = (cache.directory / f"{KEY}.{number:016x}.partial" for number in (1, 2))
    old.write_text("")
    new.write_text("")
    os.utime(old, (time.time() - 3700,) * 2)
    cache.store(KEY, CLASSES)
    assert not old.exists()
    assert new.exists()


WRITER = """
import sys
from pathlib import Path
from paimon_spark.sql.bridge.class_cache import ClassCache
directory, key, byte = sys.argv[1:]
for number in range(300):
    ClassCache(Path(directory)).store(key, byte.encode() * (100_000 + number))
"""


def test_two_writers_never_leave_half_an_entry(tmp_path):
    directory = tmp_path / "cache"
    command = [sys.executable, "-c", WRITER, str(directory), KEY]
    writers = [subprocess.Popen([*command, byte], cwd=ROOT) for byte in "ab"]
    loaded = set()
    while any(writer.poll() is None for writer in writers):
        classes = ClassCache(directory).load(KEY)
        assert classes is not None or not loaded
        if classes is not None:
            assert set(classes) in ({ord("a")}, {ord("b")})
            loaded.add(classes[0])
    assert loaded
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [path.name for path in directory.iterdir()] == [f"{KEY}.classes"]


@pytest.mark.parametrize(
    ("environment", "platform", "directory"),
    [
        ({"HOME": "/home/a"}, "linux", "/home/a/.cache/pyspark-paimon/java-classes"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "/c"}, "linux", "/c/pyspark-paimon/java-classes"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "c"}, "linux", "/home/a/.cache/pyspark-paimon/java-classes"),
        ({"HOME": "/Users/a"}, "darwin", "/Users/a/Library/Caches/pyspark-paimon/java-classes"),
        ({"HOME": "/home/a", VARIABLE: "/d"}, "linux", "/d/java-classes"),
        ({"HOME": "/home/a", VARIABLE: "OFF"}, "linux", None),
        ({"HOME": "/home/a", VARIABLE: ""}, "linux", "/home/a/.cache/pyspark-paimon/java-classes"),
        ({VARIABLE: "d"}, "linux", os.path.abspath("d/java-classes")),
        ({}, "linux", None),
        ({"HOME": "/home/a"}, "win32", None),
    ],
)
def test_environment_chooses_directory(environment, platform, directory):
    assert cache_directory(environment, platform) == (None if directory is None else Path(directory))


def defined(loader):
    """Return the methods of the catalog's class, which this very loader must have defined."""
    loaded = loader.loadClass(CATALOG_CLASS)
    assert loaded.getClassLoader().equals(loader)
    return tuple(sorted(str(method.getName()) for method in loaded.getDeclaredMethods()))


def inaccessible(view):
    """Return a function that fails as in a JVM that gives no access to ``java.lang``."""

    def define(*arguments):
        field = view.java.lang.Class.forName("jdk.internal.misc.Unsafe").getDeclaredFields()[0]
        field.setAccessible(True)

    return define


@pytest.mark.spark
@pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")
def test_second_session_loads_classes_that_first_compiled(spark, tmp_path, monkeypatch):
    """Each class loader has no class of the connector, like the class loader of a new session."""
    view, gateway = spark.sparkContext._jvm, spark.sparkContext._gateway
    parent = view.java.lang.ClassLoader.getPlatformClassLoader()
    paths = str(view.java.lang.System.getProperty("java.class.path")).split(os.pathsep)
    urls = gateway.new_array(view.java.net.URL, len(paths))
    for i, path in enumerate(paths):
        urls[i] = view.java.io.File(path).toURI().toURL()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    loaders = [view.org.apache.spark.util.MutableURLClassLoader(urls, parent) for _ in range(3)]
    names = set()
    for loader in loaders[:2]:
        add_classes(view, gateway, loader, None, spark.version)
        names.add(defined(loader))
        monkeypatch.setattr(compiler, "_compiled", None)  # the second session has the classes of the first
    monkeypatch.setattr(compiler, "_define", inaccessible(view))
    add_classes(view, gateway, loaders[0], loaders[2], spark.version)
    names.add(defined(loaders[2]))
    assert len(names) == 1
    assert len(list((tmp_path / "java-classes").iterdir())) == 1
    methods = _delegates(view).splitlines()
    assert methods == sorted(methods), "each JVM returns them in another order, and would have another key"
