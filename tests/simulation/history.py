"""One history: the plan of a seed is carried out, and the oracle checks it."""

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from paimon_core.catalog.filesystem import FileSystemCatalog
from tests.simulation.actors import perform
from tests.simulation.end import check_end
from tests.simulation.oracle import Oracle
from tests.simulation.plan import Op, Plan, Profile, draw
from tests.simulation.scheduler import Client, Decisions, Draw, Event, Listed, Scheduler
from tests.simulation.store import WAREHOUSES, Disk, SimulatedStorage
from tests.simulation.tables import World
from tests.simulation.world import simulated


@dataclass
class Outcome:
    """The result of a history."""

    plan: Plan
    events: list[Event]
    steps: int
    violation: str | None = None
    details: str = ""
    outcomes: dict[str, int] = field(default_factory=dict)
    trace: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        events = ", ".join(map(str, self.events)) or "none"
        log = "\n".join(f"  {line}" for line in self.log)
        return f"{self.plan}\n  events: {events}\noutcomes:\n{log}\n{self.violation}\n{self.details}"


class _NotingStorage(SimulatedStorage):
    """Notes which schema file an operation has read last."""

    world: World

    def inside(self, directories: Sequence[str]) -> SimulatedStorage:
        found = super().inside(directories)
        found.world = self.world
        return found

    def read(self, path: str) -> bytes:
        data = super().read(path)
        if "/schema/schema-" in path and path in self._disk.files:
            root = path.rpartition("/schema/")[0]
            self.world.seen_schemas[f"{self._stepper.operation} {root}"] = self._disk.files[path]
        return data


def run_seed(seed: int, profile: Profile) -> Outcome:
    """Run the history of a seed."""
    plan = draw(seed, profile)
    unhurt = {op.id for op in plan.ops if op.kind in plan.unhurt}
    return run(plan, Draw(seed, plan.delays, plan.faults, unhurt.__contains__))


def replay(plan: Plan, events: Iterable[Event]) -> Outcome:
    """Run a plan with listed events."""
    return run(plan, Listed(events))


def run(plan: Plan, decisions: Decisions) -> Outcome:
    """Run a plan under decisions; a violation is part of the outcome."""
    disk = Disk(plan.flavour)
    scheduler = Scheduler(Listed(()))
    storage = _NotingStorage(disk, scheduler)
    outcome = Outcome(plan, [], 0)
    with simulated(scheduler, storage):
        oracle = Oracle(disk, lambda: scheduler.time)
        world = World(scheduler, oracle, FileSystemCatalog(WAREHOUSES[plan.flavour]), plan.table)
        storage.world = world
        try:
            scheduler.run([lambda client: _set_up(world, client, plan)])
            scheduler.decisions = decisions
            scheduler.run([_client(world, ops, plan) for ops in plan.clients])
            outcome.steps = scheduler.steps
            scheduler.decisions = Listed(())
            check_end(world)
        except Exception as error:
            outcome.violation = f"{type(error).__name__}: {error}"
            outcome.details = "".join(traceback.format_exception(error)[-6:])
        outcome.steps = outcome.steps or scheduler.steps
        outcome.events = list(decisions.events)
        outcome.trace = scheduler.trace
        outcome.log = [str(record) for record in oracle.records.values()]
        for record in oracle.records.values():
            key = f"{record.op.kind} {record.outcome}"
            outcome.outcomes[key] = outcome.outcomes.get(key, 0) + 1
    return outcome


def _set_up(world: World, client: Client, plan: Plan) -> None:
    world.scheduler.begin(0)
    world.catalog.create_database("db")
    for op in plan.setup:
        world.scheduler.begin(op.id)
        perform(world, client, op)


def _client(world: World, ops: Iterable[Op], plan: Plan) -> Callable[[Client], None]:
    def run_all(client: Client) -> None:
        for op in ops:
            world.scheduler.begin(op.id, lambda op=op: _may_begin(world, op.kind, plan))
            perform(world, client, op)

    return run_all


def _may_begin(world: World, kind: str, plan: Plan) -> bool:
    """Return True if an operation of this kind may run with the running ones."""
    running = {record.op.kind for record in world.running.values()}
    if running and (kind in plan.alone or running & plan.alone):
        return False
    return not any(frozenset({kind, other}) in plan.apart for other in running)
