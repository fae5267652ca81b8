"""A check: a kind of advice, and the function that finds where it applies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paimon_core.inspect.advice.report import Advice, Measure, Remedy, Scope
from paimon_core.inspect.advice.table_facts import Facts

NO_REMEDY = Remedy()


@dataclass(frozen=True, slots=True)
class Found:
    """A finding of a check: advice without its kind."""

    severity: str
    scope: Scope
    text: str
    measure: Measure
    remedy: Remedy = NO_REMEDY


@dataclass(frozen=True, slots=True)
class Check:
    """A check of tables. ``kind``: the stable name of its advice; ``find``: yields where it applies, and why."""

    kind: str
    find: Callable[[Facts], Iterator[Found]]

    def advice(self, facts: Facts) -> Iterator[Advice]:
        """Yield the advice that applies to a table."""
        for finding in self.find(facts):
            remedy = finding.remedy
            yield Advice(
                self.kind,
                finding.severity,
                finding.scope,
                finding.text,
                finding.measure,
                remedy.command,
                remedy.sql,
                remedy.python,
            )
