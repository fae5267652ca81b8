"""Check that counters stay within the 64 bits that the format has for them: beyond, they would wrap around."""

from typing import Final

from paimon_core.errors import CorruptedError

LARGEST: Final = 2**63 - 1


def check_sequence_numbers(first: int, last: int, bucket: str) -> None:
    """Raise CorruptedError unless ``last`` is a sequence number. New rows are numbered from ``first`` to ``last``."""
    if last > LARGEST:
        raise CorruptedError(
            f"bucket {bucket} has rows with sequence numbers up to {first - 1}; the next rows would need numbers "
            f"beyond the largest one, {LARGEST}. The manifest entry of a file must be damaged. "
            "To begin again, overwrite the partition"
        )


def check_row_ids(first: int, rows: int, file_name: str) -> None:
    """Raise CorruptedError unless the ids of ``rows`` rows from ``first`` on are row ids."""
    if first + rows - 1 > LARGEST:
        raise CorruptedError(
            f"file {file_name} has {rows} rows with row ids from {first} on, but the largest row id is {LARGEST}: the "
            "manifest entry of a file, or 'nextRowId' of a snapshot, is damaged"
        )
