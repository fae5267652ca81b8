"""The tables of procedures in docs/reference/sql/call.md, from the signatures and docstrings of the procedures.

``python -m tests.docs.procedure_tables`` writes them.
"""

from pathlib import Path

from paimon_core.procedures.procedure import RESULT, Parameter, Procedure
from paimon_core.procedures.procedure_registry import NEVER
from paimon_spark.procedures.session_procedures import CALL_PROCEDURES

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "sql" / "call.md"
BEGIN, END = "<!-- procedures: begin -->\n", "<!-- procedures: end -->\n"
TITLES = {
    "compaction": "Compaction and layout",
    "expiry": "Expiry and cleanup",
    "rollback": "Rollback",
    "tags": "Tags",
    "branches": "Branches",
    "consumers": "Consumers",
    "migration": "Import and copy",
    "copying": "Import and copy",
    "repair": "Verify and repair",
}
"""The section of the page by module of the procedures."""


def tables() -> str:
    """Return a section with a table for each kind of procedure, then the table of procedures that are not supported."""
    lines = []
    for title in dict.fromkeys(TITLES.values()):
        lines += [f"### {title}", "", "| procedure | effect | result |", "|---|---|---|"]
        lines += [_row(called) for called in CALL_PROCEDURES.values() if title_of(called) == title]
        lines.append("")
    lines += ["## Not supported", "", "| procedure | reason, or what to do |", "|---|---|"]
    lines += [f"| `{name}` | {reason.replace(chr(39), '`')} |" for name, reason in NEVER.items()]
    return "\n".join(lines) + "\n"


def title_of(called: Procedure) -> str:
    """Return the title of the section of a procedure."""
    return TITLES[called.run.__module__.rpartition(".")[2]]


def _row(called: Procedure) -> str:
    arguments = ", ".join(map(_argument, called.parameters))
    result = "" if called.result == RESULT else f"`{called.result}`"
    return f"| `{called.name}({arguments})` | {called.effect} | {result} |"


def _argument(parameter: Parameter) -> str:
    text = parameter.name if parameter.type == "STRING" else f"{parameter.name} {parameter.type}"
    return text if parameter.required else f"[{text}]"


def written() -> str:
    """Return the tables that the page has."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + tables() + END + rest.partition(END)[2])
