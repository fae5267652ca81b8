"""Stable sorting and grouping by normalized keys (words): sort a packed prefix, then refine only the rows that tie.

The leading bits of the words are packed into one integer per row. Bits that are equal in all rows are left out, so a
composite key, a timestamp or a string of digits usually fits whole. Rows with equal integers are tied. The next bits
are compared for tied rows only, until the rows differ or no bit is left. The result is exact for any input; the packing
affects only the speed.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paimon_core.errors import CorruptedError
from paimon_core.merge.normalized_keys import U64, KeyWord
from paimon_core.types.selection import Positions

_WORTH_A_WORD = 8  # with fewer free bits the next word is computed only for rows that are still tied
_WORTH_SQUEEZING = 12  # with this many constant bits inside a word, removing them pays if the word does not fit
_WORTH_THE_NEXT = 20  # the same if the word fits, to make room for the next word


def sort_groups(
    key: Sequence[KeyWord], then: Sequence[KeyWord], count: int, *, runs: Positions | None
) -> tuple[Positions | None, Positions]:
    """Return the stable order by (key, then), `None` if the rows are in order, and the start of each distinct key.

    Raises CorruptedError for a run that proves to be out of order.

    Args:
        key: words of the key.
        then: words that order the rows of one key.
        count: number of rows, at least one.
        runs: start positions of a few consecutive runs, each sorted by key; `None`: rows in any order. This selects the
            algorithm and never changes the result.
    """
    ties = _Ties(count, runs)
    ties.refine(key)
    ties.runs_by_key = None
    starts = np.flatnonzero(~ties.same)
    if then and len(starts) < count:
        ties.refine(then)
    return ties.order, starts


class _Ties:
    """A permutation under refinement; `same[i]`: its row i equals row i - 1 in all bits compared so far."""

    def __init__(self, count: int, runs: Positions | None) -> None:
        self.order: Positions | None = None
        self.same = np.ones(count, bool)
        self.same[0] = False
        self.merging = runs is not None
        self.runs_by_key = runs

    def refine(self, words: Sequence[KeyWord]) -> None:
        """Order tied rows by these words."""
        packing = _Packing(words)
        while packing.more and self.same.any():
            tied = self._tied()
            rows, group, bits, count = self.order, None, 0, len(self.same)
            if tied is not None:
                rows, count = tied if self.order is None else self.order[tied], len(tied)
                group = np.cumsum(~self.same[tied]).astype(np.uint64)
                bits = int(group[-1]).bit_length()
            room = 64 if self.merging else 64 - (count - 1).bit_length()
            prefix = packing.prefix(rows, count, (group, bits), room)
            order = None
            if (descents := prefix[1:] < prefix[:-1]).any():
                if tied is None and self.order is None and self.runs_by_key is not None:
                    _check_runs(descents, self.runs_by_key)
                order, prefix = (_merged if self.merging else _sorted)(prefix)
            same = np.zeros(count, bool)
            np.equal(prefix[1:], prefix[:-1], out=same[1:])
            self._move(tied, rows, order)
            if tied is None:
                self.same = same
            else:
                self.same[tied] = same

    def _tied(self) -> Positions | None:
        """Return the positions of tied rows; `None`: all rows are one tie."""
        if self.same[1:].all():
            return None
        tied = self.same.copy()
        tied[:-1] |= self.same[1:]
        return np.flatnonzero(tied)

    def _move(self, tied: Positions | None, rows: Positions | None, order: Positions | None) -> None:
        if order is None:
            return
        moved = order if rows is None else rows[order]
        if tied is None:
            self.order = moved
            return
        if self.order is None:
            self.order = np.arange(len(self.same))
        self.order[tied] = moved


def _check_runs(descents: npt.NDArray[np.bool_], runs: Positions) -> None:
    """Raise CorruptedError if a row is below the row before it and does not start a run."""
    wrong = np.setdiff1d(np.flatnonzero(descents) + 1, runs)
    if len(wrong):
        first = runs[np.searchsorted(runs, wrong[0], "right") - 1]
        raise CorruptedError(
            f"One of {len(runs)} runs to merge is not sorted by key: row {wrong[0] - first} of its buffered rows is "
            "below the row before it. Every file of a run must be sorted and hold a key once."
        )


def _merged(prefix: U64) -> tuple[Positions, U64]:
    """Return the stable order of a few runs, and the sorted values; numpy's stable sort merges sorted parts."""
    order: Positions = np.argsort(prefix, kind="stable")
    return order, prefix[order]


def _sorted(prefix: U64) -> tuple[Positions, U64]:
    """Return the stable order of rows in any order, and the sorted values.

    Integers with their position in the low bits sort fastest. REQUIRES: these bits are free in ``prefix``.
    """
    bits = np.uint64((len(prefix) - 1).bit_length())
    packed = prefix << bits
    packed |= np.arange(len(prefix), dtype=np.uint64)
    packed.sort()
    return (packed & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64), packed >> bits


class _Packing:
    """A cursor over the bits of words: words before ``at`` are used, and the bits from ``low`` up of word ``at``."""

    def __init__(self, words: Sequence[KeyWord]) -> None:
        self.words, self.at, self.low = words, 0, 64

    @property
    def more(self) -> bool:
        return self.at < len(self.words)

    def prefix(self, rows: Positions | None, count: int, group: tuple[U64 | None, int], room: int) -> U64:
        """Return the group's number followed by the next bits of the words, together at most ``room`` bits.

        Args:
            rows: positions of the rows; `None`: all rows.
            count: number of rows.
            group: number of each row's tie (`None`: one tie), and its width in bits.
            room: maximum number of bits in the result.
        """
        packed, used = group
        free, seen = room - used, False
        while self.more and (free >= _WORTH_A_WORD or not seen):
            word = self.words[self.at](rows)
            if self.low < 64:
                word = word & np.uint64((1 << self.low) - 1)
            varying = int(np.bitwise_or.reduce(word) ^ np.bitwise_and.reduce(word))
            if varying:
                seen = True
                packed, free = self._append(packed, free, word, varying)
            else:
                self._pass(0)
        return np.zeros(count, np.uint64) if packed is None else packed

    def _pass(self, low: int) -> None:
        self.at, self.low = (self.at, low) if low else (self.at + 1, 64)

    def _append(self, packed: U64 | None, free: int, word: U64, varying: int) -> tuple[U64, int]:
        width = varying.bit_length()
        tight = varying.bit_count()
        more = self.at + 1 < len(self.words)
        squeeze = width - tight >= (_WORTH_SQUEEZING if width > free else _WORTH_THE_NEXT if more else 64)
        if squeeze:
            word, width = _squeezed(word, varying), tight
        elif width < 64:
            word = word & np.uint64((1 << width) - 1)
        left = max(0, width - free)
        taken = width - left
        if left:
            word = word >> np.uint64(left)
        self._pass(_bit_position(varying, left) if squeeze and left else left)
        return word if packed is None else (packed << np.uint64(taken)) | word, free - taken


def _bit_position(mask: int, number: int) -> int:
    """Return the position of a mask's set bit with this number; the lowest one is 0."""
    for _ in range(number):
        mask &= mask - 1
    return (mask & -mask).bit_length() - 1


def _squeezed(word: U64, mask: int) -> U64:
    """Move the bits under the mask to the low end, in order, in six rounds of moves by powers of two."""
    ones = (1 << 64) - 1
    result: npt.NDArray[np.uint64] = word & np.uint64(mask)
    vacant = (~mask << 1) & ones
    for step in (1, 2, 4, 8, 16, 32):
        odd = vacant
        for shift in (1, 2, 4, 8, 16, 32):
            odd ^= (odd << shift) & ones
        moved = odd & mask
        if moved:
            bits = result & np.uint64(moved)
            result ^= bits
            result |= bits >> np.uint64(step)
        mask = (mask ^ moved) | (moved >> step)
        vacant &= ~odd
    return result
