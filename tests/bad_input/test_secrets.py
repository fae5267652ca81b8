"""A password in a URL is shown nowhere: not by reprs, not by errors and what caused them, not by logs and plans."""

import logging
import pickle
import traceback
import warnings

import pytest

from paimon_core import FileSystemCatalog
from paimon_core.commit.intents import Intents
from paimon_core.errors import (
    CorruptedError,
    MissingDependencyError,
    NotFoundError,
    PaimonError,
    UnsupportedError,
    hide_secrets,
)
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.remote import storage_errors
from paimon_core.options import warn_once
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, orders

SECRET = "S3CR3T"
ROOT = f"s3://KEY:{SECRET}@bucket/w/db.db/t"


def table_there(io: MemoryIO) -> Table:
    if not Schemas(io, ROOT).ids():
        create_table(io, ROOT, Schema(ORDERS, options={"deletion-vectors.enabled": "true"}))
    return Table(FileStore(io, ROOT, Schemas(io, ROOT).latest()).within(ROOT))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://KEY:SECRET@bucket/a", "s3://***@bucket/a"),
        ("s3://KEY:SE/CR+ET@bucket/a", "s3://***@bucket/a"),
        ("no table at s3://k:s@b/x: see s3://k:s@b/y", "no table at s3://***@b/x: see s3://***@b/y"),
        ("'hdfs://user@name:8020/a'", "'hdfs://***@name:8020/a'"),
        ("hdfs://name:8020/mail=a@b.com/c", "hdfs://name:8020/mail=a@b.com/c"),
        ("s3://bucket/mail=a@b.com", "s3://bucket/mail=a@b.com"),
        ("https://h/x?sv=1&sig=abc%2F&se=2", "https://h/x?sv=1&sig=***&se=2"),
        ("https://h/x?X-Amz-Signature=abc", "https://h/x?X-Amz-Signature=***"),
        ("/a/b@c", "/a/b@c"),
    ],
)
def test_secrets_are_hidden_in_texts(text, shown):
    assert hide_secrets(text) == shown
    assert str(NotFoundError(text)) == str(CorruptedError(text)) == str(MissingDependencyError(text)) == shown
    assert str(pickle.loads(pickle.dumps(UnsupportedError(text)))) == shown


def test_reprs_and_plans():
    io = MemoryIO()
    table = table_there(io)
    for i in range(2):
        table.write(orders((i, "a", 1)))
    table.delete("id = 1")
    store, scan = table.store, table.scan()
    plan = scan.plan()
    for shown in (
        table, store, scan, plan, plan.splits, table.snapshots(), table.reader(), store.snapshots, store.tags,
        store.manifests, store.schemas, store.trust, Changelogs(io, ROOT), Consumers(io, ROOT), Intents(io, ROOT, "me"),
        FileIO.of(ROOT), io.list(f"{ROOT}/snapshot"), FileSystemCatalog(ROOT), table.explain(), table.committer(),
    ):  # fmt: skip
        assert SECRET not in repr(shown), type(shown)
    assert SECRET not in table._repr_html_() + str(table.explain(analyze=True))


def test_errors_of_table(caplog):
    io = MemoryIO()
    table = table_there(io)
    for i in range(4):
        table.write(orders((i, "a", 1)))
    for path in [path for path in io.files if "/manifest/manifest-" in path and "list" not in path]:
        io.files[path] = b"damaged"

    def told(action) -> None:
        with pytest.raises(PaimonError) as caught:
            action()
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(caught.value)

    told(table.to_arrow)
    told(lambda: table.to_arrow(snapshot_id=9))
    told(lambda: table.to_arrow(tag="x"))
    told(lambda: table.to_arrow(["nothing"]))
    told(lambda: table.with_options({"path": f"s3://K:{SECRET}@other/t"}))
    with caplog.at_level(logging.INFO):
        keep_one = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
        table.with_options(keep_one).write(orders((9, "a", 1)))
    assert "were not expired" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "no such key", f"KEY:{SECRET}@bucket/x"),
        FileNotFoundError(f"KEY:{SECRET}@bucket/x"),
        RuntimeError(f"Invalid bucket name KEY:{SECRET}@bucket"),
        TypeError(f"KEY:{SECRET}@bucket"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_store_and_their_causes(error):
    def fail() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError as cause:
            raise error from cause

    with pytest.raises((OSError, TypeError)) as caught, storage_errors(ROOT):
        fail()
    assert SECRET not in "".join(traceback.format_exception(caught.value, chain=True))
    assert isinstance(caught.value, type(error) if not isinstance(error, RuntimeError) else OSError)


def test_store_in_memory():
    where = f"memory://KEY:{SECRET}@w/t"
    for action in (lambda: Table.open(where), lambda: FileIO.of(where).read(where + "/x")):
        with pytest.raises((PaimonError, OSError)) as caught:
            action()
        assert SECRET not in "".join(traceback.format_exception(caught.value, chain=True))


def test_warnings_hide_secrets():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_once(f"option 'x' of the table {ROOT} has no effect")
    assert [SECRET in str(one.message) for one in caught] == [False]
