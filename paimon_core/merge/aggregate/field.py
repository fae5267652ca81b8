"""An aggregated column: its name, its type, and the options of its aggregate function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from paimon_core.errors import InvalidInputError
from paimon_core.options.merge import FIELDS_DEFAULT_AGGREGATE_FUNCTION
from paimon_core.options.option import Option, Options
from paimon_core.options.parse import MAX_INT, boolean, number
from paimon_core.options.per_field import field_option, split_list
from paimon_core.types.datatype import AtomicType, DataType

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """A column and its options, as the makers of aggregate functions read them.

    Every property raises InvalidInputError if its option cannot be parsed.
    """

    name: str
    type: DataType
    options: Options

    def text(self, option: str, default: str) -> str:
        """Return the text of ``fields.<name>.<option>``."""
        return self.options.get(field_option(self.name, option), default)

    @property
    def function(self) -> str | None:
        """Name of the column's aggregate function, by default the table's; `None`: neither option is set."""
        name = self.options.get(field_option(self.name, "aggregate-function"))
        return name if name is not None else self.options.value(FIELDS_DEFAULT_AGGREGATE_FUNCTION)

    @property
    def ignore_retract(self) -> bool:
        """True if rows that retract leave the column unchanged."""
        return self._parsed("ignore-retract", boolean, False)

    @property
    def distinct(self) -> bool:
        """True if repeated elements count once."""
        return self._parsed("distinct", boolean, False)

    @property
    def delimiter(self) -> str:
        """The delimiter between the texts that listagg joins."""
        return self.text("list-agg-delimiter", ",")

    @property
    def nested_key(self) -> tuple[str, ...]:
        """The columns that identify a row inside an array of rows."""
        return tuple(split_list(self.text("nested-key", "")))

    @property
    def nested_sequence(self) -> tuple[str, ...]:
        """The columns of an inner row that choose the newest row of a nested key."""
        return tuple(split_list(self.text("nested-sequence-field", "")))

    @property
    def count_limit(self) -> int:
        """The largest number of rows of a nested array."""
        return self._parsed("count-limit", number(), MAX_INT)

    def check_type(self, function: str, fits: bool, accepted: str) -> None:
        """Raise InvalidInputError unless ``fits``; the message names the column and the types ``accepted``."""
        if not fits:
            raise InvalidInputError(
                f"column {self.name!r} has type {self.type}, but the aggregate function {function} takes {accepted}: "
                f"set 'fields.{self.name}.aggregate-function' to another function"
            )

    def check_root(self, function: str, *roots: str) -> None:
        """Raise InvalidInputError, like :meth:`check_type`, unless the column's type is in ``roots``."""
        self.check_type(function, isinstance(self.type, AtomicType) and self.type.root in roots, ", ".join(roots))

    def _parsed(self, option: str, parse: Callable[[str], T], default: T) -> T:
        return self.options.value(Option(field_option(self.name, option), parse, default, ""))
