"""The list of all options as a page of the docs; ``python -m paimon_core.options.listing`` prints it."""

import sys
from datetime import timedelta
from typing import Any

from paimon_core.options import ALL_OPTIONS, REMOVED, families
from paimon_core.options.option import Option

_HEAD = """# Options

Every option of a table that this engine knows, by what becomes of it. The list comes from the declarations in
`paimon_core/options/`; `python -m paimon_core.options.listing > docs/options.md` writes it anew.

- *used*: the option has its effect.
- *without effect here*: it is accepted and will never do anything, for the reason given. Who gives it is warned once.
- *not yet*: it is accepted and does nothing so far. Who gives it is warned once.
- *refused*: reads, writes or the making of a table stop with an error, for rows could be wrong without it.

An unknown name is refused with the nearest known one where a user gives it: to a new table, a change of one, or a call.
What a table stores already stops nothing; an unknown name of a family (`parquet.*`, `fields.*` ...) warns once.
"""
_KINDS = ("used", "without effect here", "not yet", "refused")


def page() -> str:
    """Return the whole page as Markdown."""
    parts = [_HEAD]
    for kind in _KINDS:
        options = sorted((o for o in ALL_OPTIONS.values() if o.mark.kind == kind), key=lambda o: o.key)
        last = "what it is for" if kind == "used" else "why"
        parts.append(f"\n## {kind.capitalize()}\n\n| option | default | {last} |\n|---|---|---|\n")
        parts += [f"| {_key(o)} | {_default(o.default)} | {_cell(o.mark.reason or o.doc)} |\n" for o in options]
    parts.append("\n## Families\n\nNames without a declaration each; `<...>` stands for a name of yours.\n")
    for what, names in (
        ("Followed, or refused where they cannot be", families.EFFECTIVE),
        ("Refused with the feature they belong to", families.REFUSED),
        ("Without effect here: only other engines follow them", families.ELSEWHERE),
        ("Of older releases: accepted and without effect", sorted(REMOVED)),
    ):
        parts.append(f"\n{what}: {', '.join(f'`{name}`' for name in names)}.\n")
    return "".join(parts)


def _key(option: Option[Any]) -> str:
    older = f" (also {', '.join(f'`{key}`' for key in option.old_keys)})" if option.old_keys else ""
    return f"`{option.key}`{older}"


def _default(value: object) -> str:
    match value:
        case None | () | "":
            return ""
        case bool():
            return str(value).lower()
        case timedelta():
            return f"{value.total_seconds():g} s"
        case int() if value >= 1 << 20 and value % (1 << 20) == 0:
            return f"{value >> 20} mb"
        case int() | float() | str():
            return str(value)
        case tuple():
            return _cell(",".join(map(str, value)))
    return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
