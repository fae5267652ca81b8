"""``python -m tests.fuzz --minutes 10``: run the decoders and parsers on hostile inputs, and print the faults."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.corpus import keep
from tests.fuzz.target import ROOT
from tests.fuzz.targets import MODULE_OF, TARGETS

_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)\s", re.MULTILINE)
_EDGES = re.compile(r"cov: (\d+)")


def main() -> int:
    """Run the targets one after another. Return 1 if one of them has a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="the time of all targets together")
    parser.add_argument("--target", action="append", help="only this target, or all whose names begin with it and *")
    parser.add_argument("--seed", type=int, default=1, help="the seed of random choices")
    parser.add_argument("--directory", type=Path, help="a directory for inputs and faults, to continue there later")
    parser.add_argument("--keep", action="store_true", help="add inputs with faults or new code to tests/fuzz/corpus")
    arguments = parser.parse_args()
    asked = arguments.target or ["*"]
    names = [n for n in TARGETS if any(n == a or (a.endswith("*") and n.startswith(a[:-1])) for a in asked)]
    if not names:
        parser.error(f"no target {asked}; there are {', '.join(TARGETS)}")
    root = arguments.directory or Path(tempfile.mkdtemp(prefix="fuzz-"))
    seconds = max(1, int(arguments.minutes * 60 / len(names)))
    total_executed = total_edges = total_faults = 0
    print(f"{'target':40} {'executions':>10} {'edges':>7} {'s':>5}  faults", flush=True)
    for name in names:
        begin = time.monotonic()
        executed, edges = run(name, root / name, seconds, arguments.seed)
        faults = faults_of(root / name)
        total_executed, total_edges, total_faults = (
            total_executed + executed,
            total_edges + edges,
            total_faults + len(faults),
        )
        print(
            f"{name:40} {executed:10,} {edges or '-':>7} {time.monotonic() - begin:5.0f}  {', '.join(faults)}",
            flush=True,
        )
        if arguments.keep:
            keep_inputs(name, root / name)
    print(
        f"{len(names)} targets, {total_executed:,} executions, {total_edges:,} edges, {total_faults} faults, in {root}"
    )
    return 1 if total_faults else 0


def faults_of(directory: Path) -> list[str]:
    """Return the names of the faults in the directory of a target."""
    return sorted(path.name.removesuffix(".bin") for path in (directory / "faults").glob("*") if path.suffix != ".txt")


def run(name: str, directory: Path, seconds: int, seed: int) -> tuple[int, int]:
    """Run a target for some seconds, again after a crash or a hang. Return the executions and the edges."""
    end, executed, edges = time.monotonic() + seconds, 0, 0
    (directory / "faults").mkdir(parents=True, exist_ok=True)
    while (left := int(end - time.monotonic())) > 0 or executed == 0:
        done = started(name, directory, str(max(1, left)), seed)
        text = done.stderr
        executed += max((int(a or b) for a, b in _EXECUTED.findall(text)), default=0)
        edges = max([edges, *map(int, _EDGES.findall(text))])
        (directory / "log.txt").write_text(text[-20_000:])
        if done.returncode == 0:
            break
        seed += 1
        crashed(directory, text, done.returncode)
        if executed == 0:
            break
    return executed, edges


def started(name: str, directory: Path, seconds: str, seed: int) -> "subprocess.CompletedProcess[str]":
    """Run a target in a process."""
    command = [sys.executable, "-m", "tests.fuzz.engine", MODULE_OF[name], name, str(directory), seconds, str(seed)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def crashed(directory: Path, text: str, code: int) -> None:
    """Keep the input that ended the process, and what it printed."""
    frames = re.findall(r'File "[^"]*(paimon_[^"]*)", line (\d+)', text[text.find("Fatal Python error") :])
    place = ("-".join(frames[0]) if frames else f"code{code}").replace("/", ".")
    current = directory / "current"
    artifacts = [
        p for kind in ("crash", "timeout", "oom") for p in (directory / "faults").glob(f"{kind}-*") if len(p.name) > 40
    ]
    for found in [*artifacts, *([current] if current.exists() else [])]:
        kind = found.name.partition("-")[0]
        target = directory / "faults" / f"{'crash' if kind == 'current' else kind}-{place}.bin"
        if not target.exists() or target.stat().st_size > found.stat().st_size:
            found.replace(target)
            target.with_suffix(".txt").write_text(text[-6000:])
        else:
            found.unlink()
    if not artifacts and not current.exists():
        (directory / "faults" / f"died-{place}.bin").write_bytes(b"")
        (directory / "faults" / f"died-{place}.txt").write_text(text[-6000:])


def keep_inputs(name: str, directory: Path) -> None:
    """Add the inputs of a run to the corpus: all with faults, and a few that together reach the most code."""
    started(name, directory, "minimise", 0)
    faults = [path.read_bytes() for path in (directory / "faults").glob("*.bin")]
    kept = directory / "kept"
    edges = [path.read_bytes() for path in kept.iterdir()] if kept.exists() else []
    seeds = set(TARGETS[name].seeds())
    keep(name, faults, [data for data in edges if data not in seeds])


if __name__ == "__main__":
    sys.exit(main())
