"""One action in a process of its own: ``python -m benchmarks.once ACTION PATH [ARGUMENT ...]`` prints what it took.

With ``COUNT_CALLS`` in the environment, it also counts the calls to the storage, which takes time.
"""

import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]


def main(action: str, path: str, *arguments: str) -> None:
    """Import, open, act; measure the peak memory of the whole process."""
    start = time.perf_counter()
    from paimon_core import SystemTable, Table  # noqa: PLC0415 - importing is part of what is measured

    imported, cpu = time.perf_counter(), time.process_time()
    table = (SystemTable if "$" in path else Table).open(path)
    counted = _counted(table) if os.environ.get("COUNT_CALLS") else None
    answer = ACTIONS[action](table if counted is None else table.with_store(counted), *arguments)
    answer |= {
        "wall": time.perf_counter() - imported,
        "cpu": time.process_time() - cpu,
        "import_seconds": round(imported - start, 3),
        "peak_mb": _peak_mb(),
        "calls": None if counted is None else counted.io.calls,
    }
    print(json.dumps(answer))


def _counted(table: Any) -> Any:
    """Return the store of a table with a FileIO that counts its calls."""
    from paimon_core.fileio.fileio import FileIO  # noqa: PLC0415 - only for a process that measures no time
    from paimon_core.store.file_store import FileStore  # noqa: PLC0415
    from tests.support.faulty_io import FaultyIO  # noqa: PLC0415

    store = table._store
    return FileStore(FaultyIO(FileIO.of(store.root)), store.root, store.schema)


def _plan(table: Any, question: str) -> Answer:
    plan = table.scan(filter=question or None).plan()
    files = sum(len(split.files) for split in plan.splits)
    return {"rows": files, "manifests": plan.manifests, "manifests_read": plan.manifests_read}


def _get(table: Any) -> Answer:
    """Look up a key that is in no file's range, so that only metadata are read."""
    return {"rows": int(table.get({"dt": 7, "id": -5}) is None)}


def _read(table: Any, between: str = "") -> Answer:
    wanted = table.with_options({"incremental-between": between}) if between else table
    return {"rows": sum(batch.num_rows for batch in wanted.to_batches())}


def _expire(table: Any, retained: str) -> Answer:
    expired = table.maintenance.expire_snapshots(int(time.time() * 1000), retain_max=int(retained), retain_min=1)
    return {"rows": len(expired.snapshots), "files": expired.files}


def _orphans(table: Any, older_than: str) -> Answer:
    millis = int(time.time() * 1000) if older_than == "now" else int(older_than)
    return {"rows": table.maintenance.remove_orphan_files(millis, dry_run=True).count}


def _tags(table: Any, count: str, first: str, what: str) -> Answer:
    """Create tags for the snapshots from the first on, or delete them one by one, or both, or delete them at once."""
    names = [f"tag-{i}" for i in range(int(count))]
    for i, name in enumerate(names if "create" in what else ()):
        table.tags.create(name, int(first) + i)
    if what == "delete at once":
        table.tags.delete_several(names)
    else:
        for name in names if "delete" in what else ():
            table.tags.delete(name)
    return {"rows": int(count)}


def _commit(table: Any, partition: str) -> Answer:
    """Write and commit a row, whose key is less than all others."""
    import pyarrow as pa  # noqa: PLC0415 - the import is a part of the first write

    names = table.schema.names
    values = [pa.array([int(partition) if name == "dt" else -1], pa.int64()) for name in names]
    rows = pa.table([v if n != "v" else pa.array(["new"]) for n, v in zip(names, values, strict=True)], names=names)
    return {"rows": int(table.write(rows.cast(table.arrow_schema)) is not None)}


def _drop(table: Any, partition: str) -> Answer:
    return {"rows": int(table.drop_partitions([{"dt": int(partition)}]) is not None)}


def _tag(table: Any) -> Answer:
    """Create a tag and delete it."""
    table.tags.create("scale", table.snapshot().id)
    table.tags.delete("scale")
    return {"rows": 1}


def _verify(table: Any) -> Answer:
    """Verify the metadata: in tables of generated metadata, the files are missing, and each is a fault."""
    return {"rows": table.verify().files}


def _advice(table: Any) -> Answer:
    health = table.health()
    return {"rows": sum(health.buckets["files"].to_pylist()), "advice": len(health.advice)}


def _page(table: Any) -> Answer:
    """Make the HTML that a notebook shows; rows are the bars of the page."""
    text = table._repr_html_()
    return {"rows": text.count("<rect"), "kilobytes": len(text) >> 10}


ACTIONS: dict[str, Callable[..., Answer]] = {
    "plan": _plan,
    "get": _get,
    "read": _read,
    "expire": _expire,
    "orphans": _orphans,
    "tags": _tags,
    "commit": _commit,
    "drop": _drop,
    "tag": _tag,
    "verify": _verify,
    "advice": _advice,
    "page": _page,
}


def _peak_mb() -> int:
    """Peak memory of this process. On Linux, ``ru_maxrss`` starts at the parent's value."""
    status = Path("/proc/self/status")
    if status.exists():
        return round(int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024)  # type: ignore[index]
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20))


if __name__ == "__main__":
    main(*sys.argv[1:])
