"""Plans of histories: a table, its clients and their operations, drawn from a seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.simulation.store import Flavour

DELAYS = (0.02, 0.05, 0.1, 0.2)
"""Chances of a delay at a step."""
FAULTS = (0.0, 0.0, 0.003, 0.01)
"""Chances of a fault at a step."""
NO_FAULTS = (0.0,)
MANY_FAULTS = (0.01, 0.03)
ALONE = frozenset({"fast_forward", "delete_branch"})
"""Kinds of operations that may not meet others: their documentation asks that writers rest."""
APART: frozenset[frozenset[str]] = frozenset()
"""Pairs of kinds that may not meet each other, because a rule breaks if they do: none is known."""
UNHURT = frozenset({"fast_forward"})
"""Kinds of operations that meet no faults: only another fast-forward makes a table whole that was killed during one."""


@dataclass(frozen=True, slots=True)
class Op:
    """An operation; ``pick`` and ``other``: numbers from 0 to 1 that choose its target."""

    id: int
    kind: str
    table: str = "t"
    pick: float = 0.0
    other: float = 0.0

    def __str__(self) -> str:
        return f"{self.id} {self.kind} {self.table} {self.pick:.2f} {self.other:.2f}"


@dataclass(frozen=True)
class Plan:
    """The operations of a history: first `setup` in order, then the clients at the same time.

    ``delays``, ``faults``: chances at a step. ``alone``: kinds of operations that run while no other one does.
    ``apart``: pairs of kinds that never run at the same time.
    ``unhurt``: kinds of operations that meet no faults.
    """

    seed: int
    table: str
    flavour: Flavour
    setup: tuple[Op, ...]
    clients: tuple[tuple[Op, ...], ...]
    delays: float
    faults: float
    alone: frozenset[str] = frozenset()
    apart: frozenset[frozenset[str]] = frozenset()
    unhurt: frozenset[str] = frozenset()

    @property
    def ops(self) -> list[Op]:
        """All operations of clients."""
        return [op for client in self.clients for op in client]

    def only(self, ids: set[int]) -> "Plan":
        """Return the plan with these operations alone."""
        clients = tuple(tuple(op for op in client if op.id in ids) for client in self.clients)
        return replace(self, clients=tuple(client for client in clients if client))

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: table {self.table!r} on a store of kind {self.flavour!r}"]
        lines += [f"  first:    {op}" for op in self.setup]
        lines += [f"  client {n}: {op}" for n, client in enumerate(self.clients) for op in client]
        return "\n".join(lines)


@dataclass(frozen=True)
class Profile:
    """The parts of histories: weights of operations, kinds of tables, and flavours of stores."""

    weights: Mapping[str, int]
    tables: Sequence[str]
    flavours: Sequence[Flavour] = ("local", "object")
    faults: Sequence[float] = FAULTS
    alone: frozenset[str] = ALONE
    apart: frozenset[frozenset[str]] = APART
    unhurt: frozenset[str] = UNHURT


def draw(seed: int, profile: Profile) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(f"plan {seed}")
    table, flavour = rng.choice(list(profile.tables)), rng.choice(list(profile.flavours))
    number = 0

    def op(kind: str) -> Op:
        nonlocal number
        number += 1
        return Op(number, kind, "t", rng.random(), rng.random())

    setup = [op("create"), *(op("write") for _ in range(rng.randint(1, 4)))]
    if rng.random() < 0.5:
        setup.append(op("tag"))
    kinds = list(profile.weights)
    chosen = rng.sample(kinds, rng.randint(min(2, len(kinds)), min(len(kinds), 6)))
    weights = [profile.weights[kind] for kind in chosen]
    counts = [rng.randint(1, 4) for _ in range(rng.randint(2, 4))]
    clients = [tuple(op(kind) for kind in rng.choices(chosen, weights, k=count)) for count in counts]
    delays, faults = rng.choice(DELAYS), rng.choice(list(profile.faults))
    rules = profile.alone, profile.apart, profile.unhurt
    return Plan(seed, table, flavour, tuple(setup), tuple(clients), delays, faults, *rules)
