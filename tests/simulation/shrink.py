"""Shrinking of a history that fails: operations and events are removed while it still fails."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.simulation.history import Outcome, replay
from tests.simulation.plan import Plan
from tests.simulation.scheduler import Event


def shrink(outcome: Outcome, most_runs: int = 400, run: Callable[..., Outcome] = replay) -> Outcome:
    """Return a smaller history that breaks a rule, too; the outcome itself if none is found.

    Args:
        outcome: the outcome of a failed history.
        most_runs: how many histories to try.
        run: carries out a plan with events.
    """
    best, left = outcome, most_runs

    def fails(plan: Plan, events: Sequence[Event]) -> bool:
        nonlocal best, left
        if left <= 0:
            return False
        left -= 1
        found = run(plan, events)
        if found.violation is None:
            return False
        best = replace(found, events=list(events))
        return True

    changed = True
    while changed and left > 0:
        size = len(best.plan.ops), len(best.plan.setup), len(best.events)
        _fewer(best.plan.ops, lambda ops: fails(_with_ops(best.plan, ops), _events_of(ops, best.events)))
        setup = best.plan.setup[1:]
        _fewer(setup, lambda ops: fails(replace(best.plan, setup=(best.plan.setup[0], *ops)), best.events))
        _fewer(best.events, lambda events: fails(best.plan, events))
        changed = (len(best.plan.ops), len(best.plan.setup), len(best.events)) < size
    return best


def _with_ops(plan: Plan, ops: Sequence[object]) -> Plan:
    return plan.only({op.id for op in ops})


def _events_of(ops: Sequence[object], events: Sequence[Event]) -> list[Event]:
    ids = {op.id for op in ops}
    return [event for event in events if event.operation in ids]


def _fewer(items: Sequence[object], fails: Callable[[list], bool]) -> None:
    """Remove parts of a list, halves first and single items last, while what remains fails."""
    items, size = list(items), max(1, len(items) // 2)
    while items:
        start = 0
        while start < len(items):
            fewer = items[:start] + items[start + size :]
            if len(fewer) < len(items) and fails(fewer):
                items = fewer
            else:
                start += size
        if size == 1:
            return
        size = max(1, size // 2)
