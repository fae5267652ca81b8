"""The corpus: inputs that found a fault or reach new code, in a text file for each target.

A line is ``fault`` or ``edge`` and the input, compressed and in Base64.
"""

import base64
import zlib
from collections.abc import Iterable
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 900
"""The bytes of compressed inputs of the kind ``edge`` that a target keeps."""


def stored(name: str) -> list[tuple[str, bytes]]:
    """Return the kind and the bytes of the inputs of a target."""
    path = CORPUS / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(kind, zlib.decompress(base64.b64decode(text))) for kind, text in (line.split() for line in lines)]


def keep(name: str, faults: Iterable[bytes], edges: Iterable[bytes]) -> None:
    """Add inputs to a target's corpus: all with faults, and the shortest ones that reach new code."""
    inputs = dict.fromkeys(data for kind, data in stored(name) if kind == "fault")
    inputs |= dict.fromkeys(faults)
    old = [data for kind, data in stored(name) if kind == "edge"]
    packed = {data: zlib.compress(data, 9) for data in dict.fromkeys([*old, *edges]) if data not in inputs}
    chosen, left = [], MOST_BYTES
    for data in sorted(packed, key=lambda one: len(packed[one])):
        left -= len(packed[data])
        if left < 0:
            break
        chosen.append(data)
    lines = [
        f"{kind} {base64.b64encode(zlib.compress(data, 9)).decode()}"
        for kind, group in (("fault", inputs), ("edge", chosen))
        for data in group
    ]
    if lines:
        CORPUS.mkdir(exist_ok=True)
        (CORPUS / f"{name}.txt").write_text("\n".join(lines) + "\n")
