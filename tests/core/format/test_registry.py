"""A file format is one module and one line: a copy of the engine gets both, and takes tables and files of it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paimon_core.errors import UnsupportedError
from paimon_core.format import FORMATS, TEXT_FORMATS, format_named
from paimon_core.format.blob_records import BlobFormat
from paimon_core.options.option import Options

ROOT = Path(__file__).parent.parent.parent.parent
LINE = "(ParquetFormat(), OrcFormat(), AvroFormat())"
SCRIPT = """
import os, sys
import pyarrow as pa
from paimon_core import FileSystemCatalog, InvalidInputError, Schema, UnsupportedError

catalog = FileSystemCatalog(sys.argv[1] + "/warehouse")
catalog.create_database("d")
columns = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())])
options = {"bucket": "1", "file.format": "arrow", "changelog-file.format": "arrow", "changelog-producer": "input"}
table = catalog.create_table("d.t", Schema(columns, primary_keys=["k"], options=options))
table.write(pa.table({"k": [1, 2], "v": ["a", "b"]}))
table.write(pa.table({"k": [2, 3], "v": ["B", "c"]}))
rows = {"k": [1, 2, 3], "v": ["a", "B", "c"]}
assert table.to_arrow().sort_by("k").to_pydict() == rows
table.maintenance.compact(full=True)
assert table.to_arrow().sort_by("k").to_pydict() == rows
names = [name for _, _, names in os.walk(sys.argv[1]) for name in names]
assert any(name.startswith("changelog-") and name.endswith(".arrow") for name in names), names

os.mkdir(sys.argv[1] + "/files")
with pa.OSFile(sys.argv[1] + "/files/f", "wb") as sink, pa.ipc.new_file(sink, pa.table(rows).schema) as writer:
    writer.write_table(pa.table(rows))
assert catalog.migrate(sys.argv[1] + "/files", "d.m").to_arrow().to_pydict() == rows
try:
    catalog.migrate(sys.argv[1] + "/files", "d.n", "xml")
except InvalidInputError as error:
    assert "parquet, orc, avro, arrow" in str(error), error
try:
    catalog.create_table("d.x", Schema(columns, options={"file.format": "xml"})).write(pa.table(rows, columns))
except UnsupportedError as error:
    assert "this engine writes parquet, orc, avro, arrow" in str(error), error
print("done")
"""


def test_format_of_one_line_takes_tables_and_files(tmp_path):
    copy = tmp_path / "code" / "paimon_core"
    shutil.copytree(ROOT / "paimon_core", copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "support" / "arrow_format.py", copy / "format" / "arrow_ipc.py")
    registry = copy / "format" / "__init__.py"
    text = registry.read_text()
    assert LINE in text
    added = text.replace(LINE, LINE.replace("AvroFormat()", "AvroFormat(), ArrowFormat()"))
    module = "from paimon_core.format.arrow_ipc import ArrowFormat\n"
    registry.write_text(
        added.replace("from paimon_core.format.avro_rows", module + "from paimon_core.format.avro_rows")
    )
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=copy.parent, capture_output=True, text=True, check=False
    )
    assert result.stdout == "done\n", result.stderr


def test_every_format_has_name_and_title():
    kinds = [*FORMATS.values(), *TEXT_FORMATS.values(), BlobFormat]
    assert [kind.title for kind in kinds] == ["Parquet", "ORC", "Avro", "CSV", "JSON", "blob"]
    assert [kind.name for kind in kinds if kind.writable] == [*FORMATS, *TEXT_FORMATS]
    magic = [kind.magic for kind in kinds if kind.magic]
    assert len(magic) == len(FORMATS)
    assert not any(a != b and a.startswith(b) for a in magic for b in magic)


def test_text_files_are_not_described():
    with pytest.raises(UnsupportedError, match=r"f\.json cannot be added.*json"):
        format_named("json", (), Options({})).describe(None, "f.json")
