"""Golden tables in memory: the seeds of metadata and of whole tables. Their bytes never change."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"
HOME = "memory://w/db.db/t"
"""The table's directory in memory."""
OURS = sorted(path.name for path in (GOLDEN / "ours" / "0.1").iterdir())


@cache
def files(name: str) -> dict[str, bytes]:
    """Return the files of a golden table by their paths below the directory `HOME`."""
    home = GOLDEN / ("ours/0.1" if name in OURS else "cases") / name / "table"
    return {
        f"{HOME}/{path.relative_to(home).as_posix()}": path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def contents(*parts: str, most: int = 12) -> Callable[[], list[bytes]]:
    """Return a function that returns different files whose path has all these parts, spread over all tables."""

    def found() -> list[bytes]:
        of_all = [
            next((data for path, data in files(name).items() if all(part in path for part in parts)), None)
            for name in (*OURS, "keys_parquet", "types_avro", "evolution", "partitions")
        ]
        distinct = list(dict.fromkeys(data for data in of_all if data is not None))
        return distinct[:most]

    return found
