"""Damaged files: the right rows or an error that names the file, never other rows.

What the formats can notice. JSON and Avro metadata, cut anywhere: always. Data files cut anywhere: always (Parquet and
ORC end in a footer; the metadata of an Avro file contain its row count). One flipped byte: Parquet pages and Avro
blocks have checksums, as written here. A change outside of them (column names and statistics in a header or footer) may
pass unseen. ORC has no checksums, so a flipped byte can change a value there.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import CorruptedError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import points
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, orders, rows_of

ROOT = "memory://w/t"
FORMATS = ["parquet", "orc", "avro"]


def open_table(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def base(format_: str = "parquet", keyed: bool = True, rows: int = 12) -> MemoryIO:
    io = MemoryIO()
    options = {"file.format": format_, **({"bucket": "1"} if keyed else {})}
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"] if keyed else [], options=options))
    for start in (0, 5):
        open_table(io).write(orders(*((i, f"value {i + start}", i) for i in range(start, start + rows))))
    return io


def read(io: FileIO, **how) -> list[dict]:
    return rows_of(open_table(io).to_arrow(**how), ("id", "v"))


def outcome(io: MemoryIO, path: str, expected: list[dict], **how) -> str:
    """ "right" or "refused"; anything else fails here."""
    try:
        rows = read(io, **how)
    except CorruptedError as error:
        refused = str(error)
    except PaimonError:
        return "refused"
    else:
        refused = None
    if refused is not None:
        assert path.rsplit("/", 1)[1] in refused
        return "refused"
    assert rows == expected, f"silently wrong after damage to {path}"
    return "right"


def paths_of(io: MemoryIO, part: str) -> list[str]:
    return sorted(p for p in io.files if part in p)


@pytest.mark.drawn
@pytest.mark.parametrize("part", ["/schema/schema-", "/snapshot/snapshot-2", "/manifest/"])
def test_metadata_cut_at_any_length(part):
    io = base()
    expected = read(io)
    needed = 0
    for path in paths_of(io, part):
        whole = io.files[path]
        outcomes = []
        for length in sorted({*points(range(0, len(whole), 1 if len(whole) < 1000 else 3)), *block_ends(whole)}):
            io.files[path] = whole[:length]
            outcomes.append(outcome(io, path, expected))
        io.files[path] = whole
        assert len(set(outcomes)) == 1, f"{path}: some lengths are noticed, others are not"
        needed += outcomes[0] == "refused"
    assert needed  # files only older snapshots refer to are not looked at


@pytest.mark.parametrize("part", ["/schema/schema-", "/snapshot/snapshot-2", "/manifest/"])
@pytest.mark.parametrize("garbage", [b"", b"\0" * 100, b"garbage", b"{}", b"[]", b"null", b"Obj\x01" + b"\xff" * 50])
def test_garbage_in_metadata_is_an_error_or_harmless(part, garbage):
    io = base()
    expected = read(io)
    for path in paths_of(io, part):
        whole = io.files[path]
        io.files[path] = garbage
        outcome(io, path, expected)
        io.files[path] = whole


@pytest.mark.drawn
def test_changed_byte_of_metadata_is_paimon_error_or_harmless():
    """Any failure is one of our errors: no KeyError or similar comes through."""
    io = base(rows=3)
    for part in ("/schema/schema-", "/snapshot/snapshot-2", "/manifest/"):
        for path in paths_of(io, part):
            whole = io.files[path]
            for at in points(range(0, len(whole), 1 if len(whole) < 1000 else 3)):
                io.files[path] = whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]
                try:
                    open_table(io).to_arrow()
                except PaimonError:
                    continue
            io.files[path] = whole


def block_ends(data: bytes) -> list[int]:
    """Where an Avro file could be cut and still look whole: behind its sync markers."""
    marker = data[-16:]
    return [at + 16 for at in range(len(data) - 16) if data.startswith(marker, at)]


@pytest.mark.cases(6)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("how", [{}, {"filter": "n >= 0"}], ids=["all", "filtered"])
def test_data_cut_at_any_length(format_, keyed, how):
    io = base(format_, keyed)
    expected = read(io)
    for path in paths_of(io, "/bucket-"):
        whole = io.files[path]
        for length in sorted({*range(0, len(whole), 17), *block_ends(whole), len(whole) - 1}):
            io.files[path] = whole[:length]
            assert outcome(io, path, expected, **how) == "refused", length
        io.files[path] = whole


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("garbage", [b"", b"\0" * 64, b"garbage" * 9, b"PAR1" * 3, b"ORC" * 9, b"Obj\x01"])
def test_garbage_in_data_file_is_an_error_that_names_it(format_, garbage):
    io = base(format_)
    path = paths_of(io, "/bucket-")[0]
    io.files[path] = garbage
    with pytest.raises(CorruptedError, match=path.rsplit("/", 1)[1]):
        read(io)


@pytest.mark.parametrize("format_", FORMATS)
def test_data_file_of_another_format_under_this_name(format_):
    io, other = base(format_), base("avro" if format_ == "parquet" else "parquet")
    path = paths_of(io, "/bucket-")[0]
    io.files[path] = other.files[paths_of(other, "/bucket-")[0]]
    with pytest.raises(CorruptedError, match=path.rsplit("/", 1)[1]):
        read(io)


@pytest.mark.parametrize("format_", ["parquet", "avro"])
def test_flipped_byte_in_values_is_noticed(format_):
    """For the formats with checksums: rows stay right or the file is refused, for any byte of its first half."""
    io = base(format_, keyed=False, rows=50)
    expected = read(io)
    path = paths_of(io, "/bucket-")[0]
    whole = io.files[path]
    end = _pages_end(whole) if format_ == "parquet" else len(whole)
    start = whole.index(b"\0", whole.index(b"avro.codec")) if format_ == "avro" else 4
    for at in range(start, end, 3):
        io.files[path] = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        outcome(io, path, expected)


def _pages_end(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.parametrize("format_", FORMATS)
def test_flipped_byte_is_paimon_error_or_harmless(format_):
    """For any byte, the read returns rows or raises one of our errors."""
    io = base(format_, keyed=False, rows=10)
    path = paths_of(io, "/bucket-")[0]
    whole = io.files[path]
    for at in range(0, len(whole), 5):
        io.files[path] = whole[:at] + bytes([whole[at] ^ 0x24]) + whole[at + 1 :]
        try:
            open_table(io).to_arrow()
        except PaimonError:
            continue


@pytest.mark.parametrize("format_", FORMATS)
def test_data_file_with_other_rows_than_promised(format_):
    """A file of the right format and columns, but of another length than the manifest says."""
    io, other = base(format_, keyed=False, rows=4), base(format_, keyed=False, rows=5)
    path = paths_of(io, "/bucket-")[0]
    io.files[path] = other.files[paths_of(other, "/bucket-")[0]]
    with pytest.raises(CorruptedError, match=Path(path).name):
        read(io)
    with pytest.raises(CorruptedError, match=Path(path).name):
        read(io, filter="n >= 0")


def test_run_that_is_not_sorted_is_refused():
    io = base(keyed=True)
    path = paths_of(io, "/bucket-")[0]
    rows = pq.read_table(pa.BufferReader(io.files[path]))
    sink = pa.BufferOutputStream()
    pq.write_table(rows.take(pa.array(range(rows.num_rows))[::-1]), sink)
    io.files[path] = sink.getvalue().to_pybytes()
    with pytest.raises(CorruptedError, match="sorted"):
        read(io)
