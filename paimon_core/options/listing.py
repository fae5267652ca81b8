"""The docs page with all options; ``python -m paimon_core.options.listing`` prints it."""

import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from paimon_core.options import ALL_OPTIONS, REMOVED, families
from paimon_core.options.option import Option
from paimon_core.options.tasks import TASKS, position

_HEAD = """# Table options

Find an option by task; each name links to itself. `paimon-spark options NAME` explains one in a terminal.

{tasks}

- Options in the sections by task are *used*: they have their effect.
- [Without effect here](#without-effect-here): accepted, and never has an effect, for the given reason. It warns once.
- [Not yet](#not-yet): accepted, and has no effect so far. It warns once.
- [Refused](#refused): reads, writes or the creation of a table fail with an error, because rows could be wrong.
- [Families](#families): names with a part that you choose, such as `fields.<column>.aggregate-function`.

A new table, or a change of a table, may also set properties of your own, such as `owner` or `note.mine`. They are
stored, shown, and have no effect. A name that is close to an option, or begins like options (`snapshot.*`, `file.*`,
`bucket*` ...), is refused, with the nearest known name. Names that begin with `user.` are never checked.

An unknown name in the options of a read, a write or a catalog is refused, and so is a storage option that is not an
option of a store. An unknown name that a table already stores is ignored; if it belongs to a family (`parquet.*`,
`fields.*` ...), it warns once.
"""
_TAIL = """
This page is generated from the declarations in `paimon_core/options/`:
`python -m paimon_core.options.listing > docs/reference/options.md`.
"""
KINDS = ("used", "without effect here", "not yet", "refused")
"""How this engine treats an option."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An option as listed: all fields are texts. ``effect``: the reason, for all kinds except *used*."""

    key: str
    old_keys: tuple[str, ...]
    default: str
    kind: str
    effect: str

    @staticmethod
    def of(option: Option[Any]) -> "Listed":
        """Return the texts of an option."""
        effect = option.mark.reason or option.doc
        return Listed(option.key, option.old_keys, _default(option.default), option.mark.kind, effect)


def listed() -> list[Listed]:
    """Return all options, sorted by key."""
    return [Listed.of(ALL_OPTIONS[key]) for key in sorted(ALL_OPTIONS)]


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD.format(tasks=", ".join(f"[{task}](#{_slug(task)})" for task in TASKS))]
    for task in TASKS:
        used = [one for one in listed() if one.kind == "used" and position(one.key)[0] == task]
        parts += _section(task, "effect", sorted(used, key=lambda one: position(one.key)[1]))
    for kind in KINDS[1:]:
        parts += _section(kind.capitalize(), "reason", [one for one in listed() if one.kind == kind])
    parts.append("\n## Families\n\nNames without a declaration; `<...>` stands for a name that you choose.\n")
    for what, names in (
        ("Used, or refused if they cannot be", families.EFFECTIVE),
        ("Refused, as are the features to which they belong", families.REFUSED),
        ("Without effect here: only other engines use them", families.ELSEWHERE),
        ("Refused, because newer releases of the Java engine have them and this engine does not", families.NEWER),
        ("Names of older releases, accepted and without effect", sorted(REMOVED)),
    ):
        parts.append(f"\n{what}: {', '.join(f'`{name}`' for name in names)}.\n")
    return "".join([*parts, _TAIL])


def _section(title: str, last: str, options: list[Listed]) -> list[str]:
    """Return a heading and a table; `last`: the title of its last column."""
    head = f"\n## {title}\n\n| option | default | {last} |\n|---|---|---|\n"
    return [head, *(f"| {_key(one)} | {_code(one.default)} | {_cell(one.effect)} |\n" for one in options)]


def _slug(heading: str) -> str:
    """Return the anchor that Markdown gives a heading of letters, spaces and commas."""
    return heading.lower().replace(",", "").replace(" ", "-")


def _key(option: Listed) -> str:
    """Return the name of an option as a link to itself, and its older names."""
    older = f" (also {', '.join(f'`{key}`' for key in option.old_keys)})" if option.old_keys else ""
    return f'<a id="{option.key}" href="#{option.key}">`{option.key}`</a>{older}'


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
            return ",".join(map(str, value))
    return ""


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
