"""HTML of table summaries, from the templates of this package. Every value is escaped; there is no script."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from paimon_core.errors import MissingDependencyError
from paimon_core.inspect.html.section import described
from paimon_core.inspect.html.table_summary import TableSummary
from paimon_core.inspect.html.timeline_chart import KINDS
from paimon_core.types.human_text import count, printable, short


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
    return _render("page.html", {"page": page, "kinds": KINDS})


def summary_document(page: TableSummary) -> str:
    """Return the summary as an HTML document. Raises MissingDependencyError without jinja2."""
    return _render("document.html", {"page": page, "kinds": KINDS})


def rows_html(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], more: bool) -> str:
    """Return rows as an HTML element for a notebook; ``more``: the result has further rows.

    Raises MissingDependencyError without jinja2.
    """
    return _render("rows.html", {"title": title, "names": names, "rows": rows, "more": more})


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
