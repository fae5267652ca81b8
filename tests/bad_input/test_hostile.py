"""Tables of untrusted origin: their metadata cannot make this process read or delete files of others."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paimon_core import FileSystemCatalog
from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileio.paths import are_file_names, is_file_name
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import HASH, IndexManifestEntry
from paimon_core.schema.change import SetOption
from paimon_core.schema.schema import Schema
from paimon_core.store.external_paths import NO_TRUST, Trust, check_external, is_inside
from paimon_core.table import Table
from tests.support.tables import ORDERS, append_table, keyed_table, orders

NAMES = ["../../victim", "/etc/passwd", "a/b", "..", ".", "", "a\0b"]
ALLOWED = "data-file.external-paths.allowed"
DECLARED = "data-file.external-paths"


def edit_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def set_stored(table: Table, **options: str) -> None:
    """Store options as another engine or an attacker would."""
    path = Path(table.path) / "schema" / f"schema-{table.schema.id}"
    edit_json(path, options={**json.loads(path.read_text())["options"], **options})


def forge(table: Table, change: Callable[[ManifestEntry], ManifestEntry]) -> None:
    """Let the newest snapshot say something else of the files it adds."""
    snapshot, manifests = table.snapshot(), table.store.manifests
    entries = [e for meta in manifests.read_list(snapshot.delta_manifest_list) for e in manifests.read(meta.file_name)]
    name, size = manifests.write_list(manifests.write(list(map(change, entries))))
    path = Path(table.store.snapshots.path(snapshot.id))
    edit_json(path, deltaManifestList=name, deltaManifestListSize=size)


def forge_file(table: Table, **values: Any) -> None:
    forge(table, lambda entry: replace(entry, file=replace(entry.file, **values)))


def moved_out(table: Table, root: Path | str) -> list[Path]:
    """Move the files of the newest snapshot below ``root``, as an engine that writes external paths leaves them."""
    moved = []

    def move(entry: ManifestEntry) -> ManifestEntry:
        old = Path(table.store.file_path(entry.bucket_ref, entry.file))
        new = Path(str(root).removeprefix("file://")) / old.relative_to(table.path)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
        moved.append(new)
        return replace(entry, file=replace(entry.file, external_path=f"file:{new}"))

    forge(table, move)
    return moved


# ---- names


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_paths_are_refused(name):
    assert not is_file_name(name)
    assert not are_file_names((name,))
    assert not are_file_names(("data-1", name, "data-2"))


def test_names_as_engines_make_them():
    assert are_file_names(
        ("data-1.parquet", "..a", "a..b", "changelog-x$0-1.cc-parquet", "x y\\z", "data--u-ü-s-0-w-1")
    )
    assert are_file_names(())


@pytest.mark.parametrize(("name", "many"), [*((name, False) for name in NAMES), ("../x", True), ("", True)])
@pytest.mark.parametrize("field", ["file_name", "extra_files"])
def test_manifest_cannot_name_files_outside_table(tmp_path, field, many, name):
    """However many entries it has: many are decoded in another way."""
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    value = name if field == "file_name" else ("x.index", name)
    snapshot, manifests = table.snapshot(), table.store.manifests
    (meta,) = manifests.read_list(snapshot.delta_manifest_list)
    (entry,) = manifests.read(meta.file_name)
    honest = [replace(entry, file=replace(entry.file, file_name=f"data-{i}")) for i in range(3200 if many else 1)]
    forged = manifests.write([*honest, replace(entry, file=replace(entry.file, **{field: value}))])
    with pytest.raises(CorruptedError, match=f"{forged[0].file_name} is damaged.*cannot be the name of a file"):
        manifests.read(forged[0].file_name)
    forge_file(table, **{field: value})
    for use in (table.to_arrow, lambda: table.compact(full=True), lambda: table.overwrite(orders((2, "b", 2)))):
        with pytest.raises(CorruptedError, match="cannot be the name of a file"):
            use()


@pytest.mark.parametrize("name", NAMES)
def test_manifest_lists_and_index_manifests_cannot_name_files_outside_table(tmp_path, name):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    manifests = table.store.manifests
    (meta,) = manifests.read_list(table.snapshot().delta_manifest_list)
    listed, _ = manifests.write_list([replace(meta, file_name=name)])
    with pytest.raises(CorruptedError, match=listed):
        manifests.read_list(listed)
    index = manifests.write_index([IndexManifestEntry(ADD, b"\0" * 12, 0, HASH, name, 1, 1)])
    with pytest.raises(CorruptedError, match=index):
        manifests.read_index(index)


@pytest.mark.parametrize(
    "key", ["baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest", "statistics"]
)
def test_snapshot_cannot_name_files_outside_table(tmp_path, key):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    edit_json(Path(table.store.snapshots.path(1)), **{key: "../../../etc/passwd"})
    with pytest.raises(CorruptedError, match=f"snapshot-1.*{key}"):
        table.to_arrow()


def test_two_ordinary_commits_delete_nothing_outside_table(tmp_path):
    """The files named are dead by the first commit, and expire after the second."""
    victim = tmp_path / "victim"
    for number, values in enumerate(
        [{"file_name": "../../victim"}, {"extra_files": ("../../victim",)}, {"external_path": str(victim)}]
    ):
        victim.write_text("precious")
        keep_two = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
        table = append_table(tmp_path / f"t{number}", **keep_two)
        for i in range(2):
            table.write(orders((i, "a", 1)))
        forge(table, lambda e, values=values: replace(e, kind=DELETE, file=replace(e.file, **values)))
        for i in range(3):
            table.write(orders((i, "a", 1)))
        assert victim.read_text() == "precious", values


def test_messages_with_paths_outside_are_refused(tmp_path):
    table = append_table(tmp_path / "t")
    with table.writer() as writer:
        writer.write(orders((1, "a", 1)))
        (message,) = writer.prepare_commit()
    forged = replace(message, new_files=tuple(replace(f, file_name="../../x") for f in message.new_files))
    with pytest.raises(InvalidInputError, match="truncated or damaged"):
        CommitMessage.from_bytes(forged.to_bytes())


@pytest.mark.parametrize("key", ["data-file.prefix", "changelog-file.prefix", "data-file.path-directory"])
def test_options_that_lead_out_of_table(tmp_path, key):
    """Set by a user or stored by another engine: nothing is read or written there."""
    text = "../../x" if key.endswith("directory") else "../x-"
    with pytest.raises(InvalidInputError, match=key):
        append_table(tmp_path / "new", **{key: text})
    table = keyed_table(tmp_path / "t", **{"changelog-producer": "input"})
    table.write(orders((1, "a", 1)))
    set_stored(table, **{key: text})
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInputError, match=key):
        Table.open(table.path).write(orders((2, "b", 2)))
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_user_whose_name_is_path(tmp_path):
    """Files of rows that wait for their bucket carry the name of who wrote them."""
    table = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    with table.writer("../../me") as writer:
        writer.write(orders((1, "a", 1)))
        messages = writer.prepare_commit()
    table.committer("../../me").commit(messages)
    assert {path.parent.name for path in tmp_path.rglob("data-*")} == {"bucket-postpone"}
    table.compact()
    assert table.to_arrow().num_rows == 1


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", " "])
def test_branch_must_be_a_name(tmp_path, name):
    table = append_table(tmp_path / "t")
    catalog = FileSystemCatalog(str(tmp_path))
    with pytest.raises(InvalidInputError, match="would leave its directory"):
        Table.open(table.path, branch=name)
    with pytest.raises(InvalidInputError, match="would leave its directory"):
        Table.open(table.path, options={"branch": name})
    with pytest.raises(InvalidInputError, match="would leave its directory"):
        catalog.table(f"db.`t$branch_{name}`")


# ---- external paths


ROOTS = [
    ("/a/b", "/a/b/c", True),
    ("file:///a/b", "/a/b/c", True),
    ("/a/b/", "file:/a/b/c/d", True),
    ("s3://b/x", "s3a://b/x/y", True),
    ("s3://b", "s3://b/x", True),
    ("/", "/x", True),
    ("/a/b", "/a/b", False),
    ("/a/b", "/a/bc", False),
    ("/a/b", "/a/b/../c", False),
    ("/a/b", "/a/b/./c", False),
    ("/a/b", "/a/b//c", False),
    ("/a/b", "a/b/c", False),
    ("/a/b", "file://a/b/c", False),
    ("s3://b/x", "s3://c/x/y", False),
    ("s3://b/x", "gs://b/x/y", False),
    ("s3://b", "s3://b/x::file:///etc/passwd", False),
    ("/a", "/a/b\\..\\c", False),
    ("/a/../b", "/a/../b/c", False),
    ("", "/x", False),
]


@pytest.mark.parametrize(("root", "path", "below"), ROOTS)
def test_paths_below_root(root, path, below):
    assert is_inside(path, (root,)) is below


def test_external_roots_of_table_are_trusted_only_on_object_stores():
    def read(path, *declared, trust=NO_TRUST):
        return check_external(path, declared, trust, "/w/db.db/t")

    assert read("s3://b/x/f", "s3://b/x") == "s3://b/x/f"
    assert read("/w/x/f", "/w/x", trust=Trust(warehouse="/w")) == "/w/x/f"
    assert read("/data/f", "/data", trust=Trust(("/data",))) == "/data/f"
    assert read("/data/f", trust=Trust(("/data",))) == "/data/f"
    for path, declared, trust in (
        ("/data/f", "/data", NO_TRUST),
        ("/w/x/f", "/w/x", NO_TRUST),
        ("/w/x/f", "/", Trust(warehouse="/w")),
        ("/etc/passwd", "/etc", Trust(warehouse="/w")),
        ("http://169.254.169.254/latest/f", "http://169.254.169.254/latest", NO_TRUST),
        ("hdfs://n/x/f", "hdfs://n/x", NO_TRUST),
    ):
        with pytest.raises(InvalidInputError, match=ALLOWED):
            read(path, declared, trust=trust)
    for path, declared in (("s3://b/y/f", "s3://b/x"), ("/etc/passwd", ""), ("s3://b/x/../f", "s3://b/x")):
        with pytest.raises(CorruptedError, match="below no root"):
            read(path, declared)


def test_file_of_process_is_not_shown(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("1,password,2\n")
    table = append_table(tmp_path / "t", **{"file.format": "csv"})
    table.write(orders((1, "a", 1)))
    forge_file(table, external_path=str(secret), file_size=secret.stat().st_size)
    with pytest.raises(CorruptedError, match=r"secret\.csv, which is below no root"):
        table.to_arrow()
    set_stored(table, **{DECLARED: str(tmp_path), ALLOWED: str(tmp_path)})
    with pytest.raises(InvalidInputError, match=ALLOWED):
        Table.open(table.path).to_arrow()


def test_index_outside_table_is_not_read(tmp_path):
    table = append_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.delete("id = 1")
    snapshot, manifests = table.snapshot(), table.store.manifests
    (entry,) = manifests.read_index(snapshot.index_manifest)
    forged = manifests.write_index([replace(entry, external_path=str(tmp_path / "elsewhere"))])
    edit_json(Path(table.store.snapshots.path(snapshot.id)), indexManifest=forged)
    with pytest.raises(CorruptedError, match="elsewhere, which is below no root"):
        table.to_arrow()


def test_declared_roots_are_read_by_word_of_call_or_catalog(tmp_path):
    warehouse, root = tmp_path / "w", tmp_path / "far"
    FileSystemCatalog(str(warehouse)).create_database("db")
    table = keyed_table(warehouse / "db.db" / "t")
    table.write(orders(*((i, "v", i) for i in range(9))))
    moved_out(table, root)
    set_stored(table, **{DECLARED: f"file://{root}"})
    rows = {"id": list(range(9))}

    def ids(found: Table) -> dict[str, list[int]]:
        return found.to_arrow(["id"]).sort_by("id").to_pydict()

    with pytest.raises(InvalidInputError, match=ALLOWED):
        Table.open(table.path).to_arrow()
    with pytest.raises(InvalidInputError, match=ALLOWED):
        FileSystemCatalog(str(warehouse)).table("db.t").to_arrow()
    assert ids(Table.open(table.path, options={ALLOWED: str(root)})) == rows
    assert ids(FileSystemCatalog(str(warehouse), options={ALLOWED: f"/nowhere,{root}"}).table("db.t")) == rows
    assert Table.open(table.path, options={ALLOWED: str(root)}).get({"id": 3}) == {"id": 3, "v": "v", "n": 3}
    with pytest.raises(InvalidInputError, match=ALLOWED):
        FileSystemCatalog(str(warehouse), options={ALLOWED: str(root)}).table("db.t", {ALLOWED: "/no"}).to_arrow()


def test_roots_within_warehouse_are_read(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema(ORDERS))
    table.write(orders((1, "a", 1)))
    moved_out(table, tmp_path / "near")
    set_stored(table, **{DECLARED: str(tmp_path / "near")})
    assert catalog.table("db.t").to_arrow().num_rows == 1
    with pytest.raises(InvalidInputError, match=ALLOWED):
        Table.open(table.path).to_arrow()


@pytest.mark.parametrize("allowed", [False, True])
def test_files_outside_are_deleted_below_root_of_caller_only(tmp_path, caplog, allowed):
    """A warehouse allows reads, not deletes: it contains other tables as well."""
    catalog = FileSystemCatalog(str(tmp_path), options={ALLOWED: str(tmp_path / "near")} if allowed else None)
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema(ORDERS))
    table.write(orders((1, "a", 1)))
    (outside,) = moved_out(table, tmp_path / "near")
    table.truncate()
    set_stored(table, **{DECLARED: str(tmp_path / "near")})
    with caplog.at_level(logging.WARNING):
        expired = catalog.table("db.t").maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert expired.snapshots == (1,)
    assert outside.exists() is not allowed
    assert ("are not deleted" in caplog.text) is not allowed


def test_table_cannot_allow_its_own_paths(tmp_path):
    with pytest.raises(InvalidInputError, match="a table cannot allow its own paths"):
        append_table(tmp_path / "new", **{ALLOWED: "/"})
    table = append_table(tmp_path / "t")
    with pytest.raises(InvalidInputError, match="a table cannot allow its own paths"):
        table.alter([SetOption(ALLOWED, "/")])
    opened = Table.open(table.path, options={ALLOWED: "/x"})
    assert ALLOWED not in opened.schema.options
    assert opened.store.trust.roots == ("/x",)
    assert opened.with_options({ALLOWED: None}).store.trust.roots == ()
    opened.alter([SetOption("file.format", "orc")])
    assert ALLOWED not in Table.open(table.path).schema.options
