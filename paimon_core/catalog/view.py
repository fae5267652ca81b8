"""Views and functions of a catalog, as values, with the JSON that Java's engine gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import DataField
from paimon_core.types.json_text import optional_text, parse_object, text_map
from paimon_core.types.parse import field_from_json, field_to_json

SPARK_DIALECT: Final = "spark"
"""The name of Spark's dialect of SQL, and of the definitions of functions for Spark, as in Java."""


@dataclass(frozen=True, slots=True)
class View:
    """A view: a query with a name in a catalog.

    Args:
        fields: the columns of the query, with the names and comments that the view gives them.
        query: the text of the query, for engines without a dialect of their own.
        dialects: the texts of the query in the dialects of engines, such as ``spark`` and ``flink``.
        comment: the comment; `None`: no comment.
        options: the properties.
    """

    fields: Sequence[DataField]
    query: str
    dialects: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def query_in(self, dialect: str) -> str:
        """Return the text of the query in a dialect, by default the text for all engines."""
        return self.dialects.get(dialect, self.query)

    def changed(
        self,
        options: Mapping[str, str | None] | None = None,
        dialects: Mapping[str, str | None] | None = None,
        comment: str | None = None,
    ) -> "View":
        """Return a view with other properties. Arguments as for `CatalogViews.alter_view`."""
        return replace(
            self,
            options=_merged(self.options, options),
            dialects=_merged(self.dialects, dialects),
            comment=self.comment if comment is None else comment or None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the view, without its name."""
        fields, _ = assign_ids(self.fields, 0)
        comment = {} if self.comment is None else {"comment": self.comment}
        return {
            "fields": [field_to_json(column) for column in fields],
            "query": self.query,
            "dialects": dict(self.dialects),
            **comment,
            "options": dict(self.options),
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any], name: str) -> "View":
        """Return the view that a JSON object describes.

        Args:
            stored: the object.
            name: the name of the view, for the error.

        Raises CorruptedError if a part is missing.
        """
        try:
            return View(
                tuple(map(field_from_json, stored.get("fields") or ())),
                str(stored["query"]),
                text_map(stored.get("dialects"), "dialects"),
                optional_text(stored.get("comment"), "comment"),
                text_map(stored.get("options"), "options"),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptedError(f"the catalog describes view {name!r} in an unknown way: {error!r}") from error

    @staticmethod
    def parse(text: str, name: str) -> "View":
        """Return the view that a ``text`` of `to_json` describes.

        ``name``: the name of the view, for the error. Raises CorruptedError if the text is damaged.
        """
        try:
            stored = parse_object(text)
        except ValueError as error:
            raise CorruptedError(f"the catalog describes view {name!r} in an unknown way: {error!r}") from error
        return View.from_json(stored, name)


@dataclass(frozen=True, slots=True)
class CatalogFunction:
    """A function of a catalog: its parameters, its result, and its definitions for engines.

    Args:
        parameters: the parameters.
        results: the result, as one field; none if the function does not declare one.
        definitions: the definitions by the names of engines, as JSON objects with ``type``: ``sql`` or ``lambda`` with
            the text ``definition``, or ``file`` with the classes of a jar.
        deterministic: True if equal arguments give equal results.
        comment: the comment; `None`: no comment.
        options: the properties.
    """

    parameters: Sequence[DataField]
    results: Sequence[DataField]
    definitions: Mapping[str, Mapping[str, Any]]
    deterministic: bool = True
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the function, without its name."""
        return {
            "inputParams": [field_to_json(column) for column in assign_ids(self.parameters, 0)[0]],
            "returnParams": [field_to_json(column) for column in assign_ids(self.results, 0)[0]],
            "deterministic": self.deterministic,
            "definitions": {name: dict(definition) for name, definition in self.definitions.items()},
            "comment": self.comment,
            "options": dict(self.options),
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any], name: str) -> "CatalogFunction":
        """Return the function that a JSON object describes.

        Args:
            stored: the object.
            name: the name of the function, for the error.

        Raises CorruptedError if a part is missing.
        """
        try:
            return CatalogFunction(
                parameters=tuple(map(field_from_json, stored.get("inputParams") or ())),
                results=tuple(map(field_from_json, stored.get("returnParams") or ())),
                definitions={str(name): dict(one) for name, one in (stored.get("definitions") or {}).items()},
                deterministic=bool(stored.get("deterministic")),
                comment=optional_text(stored.get("comment"), "comment"),
                options=text_map(stored.get("options"), "options"),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptedError(f"the catalog describes function {name!r} in an unknown way: {error!r}") from error


def _merged(old: Mapping[str, str], changes: Mapping[str, str | None] | None) -> dict[str, str]:
    merged = {**old, **(changes or {})}
    return {key: value for key, value in merged.items() if value is not None}


def check_dialects(view: View, dialects: Mapping[str, str | None], name: str) -> None:
    """Raise InvalidInputError for a dialect to remove that a view does not have. ``name``: its name, for the error."""
    missing = [dialect for dialect, text in dialects.items() if text is None and dialect not in view.dialects]
    if missing:
        has = ", ".join(sorted(view.dialects)) or "none"
        raise InvalidInputError(f"view {name!r} has no query in dialect {missing[0]!r}; its dialects: {has}")
