"""HTML of table summaries, from the templates of this package. Every value is escaped; there is no script."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paimon_core.errors import MissingDependencyError
from paimon_core.inspect.html.section import described
from paimon_core.inspect.html.table_summary import TableSummary
from paimon_core.inspect.html.timeline_chart import KINDS
from paimon_core.types.human_text import count, printable, short

_MOST_OPEN_COLUMNS = 8  # of the list of columns that is open at first


def notebook_html(title: str, build: Callable[[], str | None]) -> str | None:
    """Return the result of ``build``, or an HTML element with its error, because a notebook's display must not fail.

    Return `None` without calling ``build`` if jinja2 is missing; notebooks then show the `repr`.
    """
    try:
        _environment()
    except MissingDependencyError:
        return None
    try:
        return build()
    except Exception as error:
        return _render("error.html", {"title": title, "error": described(error)})


def summary_html(page: TableSummary) -> str:
    """Return the summary as an HTML element for a notebook. Raises MissingDependencyError without jinja2."""
    return _render("page.html", _values(page))


def summary_document(page: TableSummary) -> str:
    """Return the summary as an HTML document. Raises MissingDependencyError without jinja2."""
    return _document("page.html", page.name, _values(page))


def _values(page: TableSummary) -> dict[str, Any]:
    return {"page": page, "kinds": KINDS, "most_open_columns": _MOST_OPEN_COLUMNS}


@dataclass(frozen=True, slots=True)
class TablePage:
    """The page of a table as it was at one moment; a notebook shows it on the last line of a cell.

    Args:
        summary: the numbers and charts of the page.
    """

    summary: TableSummary

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of the parts that cannot be read."""
        return self.summary.errors

    def html(self) -> str:
        """Return the page as an HTML document without scripts. Raises MissingDependencyError without jinja2."""
        return summary_document(self.summary)

    def write(self, file: str | Path) -> None:
        """Write the page to a local file, which a browser opens without a server. Errors: see `html`."""
        Path(file).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str | None:
        return notebook_html(self.summary.name, lambda: summary_html(self.summary))

    def __repr__(self) -> str:
        return f"TablePage({self.summary.name!r}, made {self.summary.made})"


def warehouse_html(state: object) -> str:
    """Return a `WarehouseState` as an HTML element for a notebook. Raises MissingDependencyError without jinja2."""
    return _render("warehouse.html", {"state": state})


def warehouse_document(state: Any) -> str:
    """Return a `WarehouseState` as an HTML document. Raises MissingDependencyError without jinja2."""
    return _document("warehouse.html", state.name, {"state": state})


def rows_html(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], more: bool) -> str:
    """Return rows as an HTML element for a notebook; ``more``: the result has further rows.

    Raises MissingDependencyError without jinja2.
    """
    return _render("rows.html", {"title": title, "names": names, "rows": rows, "more": more})


def _document(content: str, title: str, values: Mapping[str, Any]) -> str:
    """Return an HTML document; ``content``: the name of the template of its element."""
    return _render("document.html", {**values, "content": content, "title": title})


def _render(name: str, values: Mapping[str, Any]) -> str:
    text: str = _environment().get_template(name).render(values)
    return text


@cache
def _environment() -> Any:
    try:
        import jinja2  # noqa: PLC0415  an optional dependency
        from markupsafe import Markup  # noqa: PLC0415  it comes with jinja2
    except ImportError as error:
        raise MissingDependencyError(
            f"a page in HTML needs jinja2: pip install 'pyspark-paimon[notebook]' ({error})"
        ) from error

    def shown(value: Any) -> Any:
        """Escape control characters in each text that a template shows, except in its own markup."""
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("paimon_core.inspect.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    environment.filters.update(count=count, short=short)
    return environment
