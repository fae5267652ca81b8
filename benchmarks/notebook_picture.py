"""``python -m benchmarks.notebook_picture docs/assets/notebook.png``: the picture of a table's page, taken by Chromium.

The table is made up: its metadata are real commits of the engine, spread over some days. Live files do not exist, and
replaced files are empty on the disk.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from paimon_core import CommitMessage, FileSystemCatalog, Schema, Table
from paimon_core.inspect.html.render import summary_document
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.row.binary_row import serialize
from paimon_core.table import table_summary

_START = 1_767_225_600_000  # 2026-01-01
_HOUR = 3_600_000
_ROW = 90  # bytes
_KEYS = 40_000_000
COLUMNS = pa.schema(
    [
        pa.field("dt", pa.date32(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("customer", pa.string()),
        pa.field("amount", pa.decimal128(12, 2)),
        pa.field("updated", pa.timestamp("us")),
    ]
)


@dataclass
class Shop:
    """A table of orders, its clock (epoch ms), and the random numbers of its files."""

    table: Table
    like: DataFileMeta
    draw: np.random.Generator
    clock: int = _START
    files: int = 0

    def file(self, level: int, low: float, high: float, rows: int, deletes: int = 0) -> DataFileMeta:
        """Return the metadata of a file whose keys are in this part of all keys."""
        self.files += 1
        keys = [serialize((int(part * _KEYS),), self.table.schema.key_arrow) for part in (low, high)]
        return replace(
            self.like,
            file_name=f"data-{self.files:08x}-5c1e-4b7a-9d2f-0242ac120002-0.parquet",
            file_size=rows * _ROW,
            row_count=rows,
            min_key=keys[0],
            max_key=keys[1],
            min_sequence_number=self.files * 1000,
            max_sequence_number=self.files * 1000 + 999,
            level=level,
            creation_time=self.clock,
            delete_row_count=deletes,
            file_source=1 if level else 0,
        )

    def run(self, level: int, count: int, rows: int) -> tuple[DataFileMeta, ...]:
        """Return the files of a level over all keys."""
        ends = np.linspace(0.002, 0.998, count + 1)
        return tuple(self.file(level, a, b - 1e-7, rows) for a, b in itertools.pairwise(ends))

    def commit(self, kind: str, day: int, bucket: int, new: tuple[DataFileMeta, ...], old: tuple = ()) -> None:
        """Commit the files of one bucket of one day, an hour or more after the last commit."""
        self.commit_all([self.message(kind, day, bucket, new, old)])

    def message(self, kind: str, day: int, bucket: int, new: tuple, old: tuple = ()) -> CommitMessage:
        """Return the message of a writer, or of a compaction."""
        partition = serialize((20_454 + day,), self.table.schema.partition_arrow)
        if kind == "append":
            return CommitMessage(partition, bucket, 4, new_files=new)
        return CommitMessage(partition, bucket, 4, compact_before=old, compact_after=new)

    def commit_all(self, messages: list[CommitMessage]) -> None:
        """Commit messages together."""
        self.clock += int(self.draw.integers(1, 4)) * _HOUR
        clock = self.clock
        self.table.with_store(replace(self.table.store, now=lambda: clock)).committer().commit(messages)


def orders(warehouse: Path) -> Table:
    """Create the table: fourteen days with four buckets each; some buckets need a compaction."""
    catalog = FileSystemCatalog(str(warehouse))
    catalog.create_database("shop")
    options = {"bucket": "4", "write-only": "true", "target-file-size": "256 mb", "commit.sync": "false"}
    wish = Schema(COLUMNS, ["dt", "id"], ["dt"], options, "Orders of the web shop, one partition a day")
    table = catalog.create_table("shop.orders", wish)
    writer = table.writer()
    writer.write(COLUMNS.empty_table().from_pylist([{"dt": 0, "id": 0}], schema=COLUMNS))
    shop = Shop(table, writer.prepare_commit()[0].new_files[0], np.random.default_rng(7))
    shutil.rmtree(Path(table.path, "dt=0"))
    for day in range(14):
        weight = 1 + day / 6 + (day % 7 in (5, 6))
        files = [shop.run(5, 3, int(weight * 250_000)) for _ in range(4)]
        shop.commit_all([shop.message("append", day, bucket, files[bucket]) for bucket in range(4)])
        if day in (6, 12):
            table.tags.create(f"week-{day // 6}", table.snapshot().id)
    for turn in range(22):
        messages = []
        for bucket in range(4) if turn % 5 else (0, 2):
            day = 13 - int(min(13, shop.draw.geometric(0.45) - 1))
            low = float(shop.draw.uniform(0.01, 0.7))
            high = min(0.99, low + float(shop.draw.uniform(0.08, 0.5)))
            rows = int(shop.draw.integers(20_000, 160_000))
            new = shop.file(0, low, high, rows, rows // 50 if shop.draw.random() < 0.2 else 0)
            messages.append(shop.message("append", day, bucket, (new,)))
        shop.commit_all(messages)
        if turn in (6, 13):
            _compact(shop)
    table.branches.create("backfill", "week-2")
    table.consumers.reset("to-warehouse", table.snapshot().id)
    shown = shop.clock + 6 * 60_000
    return table.with_store(replace(table.store, now=lambda: shown))


def _compact(shop: Shop) -> None:
    """Merge the files of level 0 of every other bucket into level 4."""
    messages = []
    found: dict[tuple[int, int], list[DataFileMeta]] = {}
    for split in shop.table.scan().plan().splits:
        day = shop.table.store.partition_values(split.partition)[0] - 20_454
        found.setdefault((int(day), split.bucket), []).extend(f for f in split.files if f.level == 0)
    for (day, bucket), files in found.items():
        if len(files) > 1:
            rows = int(sum(f.row_count for f in files) * 0.9)
            ends = np.linspace(0.05, 0.9, 4)
            after = tuple(shop.file(4, a, b - 1e-7, rows // 3) for a, b in itertools.pairwise(ends))
            messages.append(shop.message("compact", day, bucket, after, tuple(files)))
            folder = Path(shop.table.path, f"dt={20_454 + day}", f"bucket-{bucket}")
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:  # without blocks on the disk
                with (folder / file.file_name).open("wb") as opened:
                    opened.truncate(file.file_size)
    shop.commit_all(messages)


def main(picture: str) -> None:
    """Make the table and its page, and take the picture."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or sys.exit("Chromium is missing: set CHROMIUM")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        table = orders(Path(folder) / "warehouse")
        text = summary_document(table_summary(table)).replace(folder, "s3://lake")
        page.write_text(text.replace("s3://lake/warehouse", "s3://lake"), encoding="utf-8")
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        view = ["--window-size=1108,1976", f"--user-data-dir={folder}/home", f"--screenshot={Path(picture).resolve()}"]
        subprocess.run([*command, *view, "--blink-settings=preferredColorScheme=1", page.as_uri()], check=True)
        with Image.open(picture) as taken:
            fewer = taken.convert("RGB").quantize(128)  # a third of the bytes
        fewer.save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
