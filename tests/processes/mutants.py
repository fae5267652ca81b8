"""Engines without a guard: the checks of a run must find that its Python processes have one of them."""

from tests.simulation.mutants import MUTANTS as SIMULATED
from tests.support.edits import Edit

_OF_SIMULATION = {mutant.name: mutant.edits for mutant in SIMULATED}
MUTANTS = {
    "exclusive creation": [
        Edit(
            "paimon_core.fileio.local:LocalStorage.create_exclusive",
            "lambda: link_exclusive(target, data)",
            'lambda: open(target, "wb").write(data) > 0',
        )
    ],
    **{name: _OF_SIMULATION[name] for name in ("search of a repeated batch", "conflict of compactions")},
}
"""The edits of each, by the name of the missing guard."""
