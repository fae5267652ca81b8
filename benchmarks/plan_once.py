"""Plan one table in a process of its own: ``python -m benchmarks.plan_once PATH [FILTER]`` prints what it took."""

import json
import re
import resource
import sys
import time
from pathlib import Path


def main(path: str, question: str) -> None:
    """Import, open, plan; peak memory is that of the whole process."""
    start = time.perf_counter()
    from paimon_core import Table  # noqa: PLC0415 - importing is part of what is measured

    imported = time.perf_counter()
    cpu = time.process_time()
    plan = Table.open(path).scan(filter=question or None).plan()
    answer = {
        "wall": time.perf_counter() - imported,
        "cpu": time.process_time() - cpu,
        "import_seconds": round(imported - start, 3),
        "files": sum(len(split.files) for split in plan.splits),
        "manifests": plan.manifests,
        "manifests_read": plan.manifests_read,
        "peak_mb": _peak_mb(),
    }
    print(json.dumps(answer))


def _peak_mb() -> int:
    """Peak memory of this process. On Linux ``ru_maxrss`` starts from that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return round(int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024)  # type: ignore[index]
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
