"""The translation of storage options under the names of Hadoop and Paimon to settings and arguments of a client."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paimon_core.errors import InvalidInputError

Kind = Literal["text", "flag", "number", "object"]
"""The type of an argument: options are often texts, clients require values. ``object``: a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNames:
    """The names of the options of a store.

    The prefixes are equivalent. After a prefix, case does not count, and dots and dashes are equivalent:
    ``s3.access-key`` is ``fs.s3a.access.key``. A leading ``spark.hadoop.`` is dropped.
    """

    title: str
    """The store's name in messages."""
    prefixes: tuple[str, ...]
    """The prefixes in lower case, such as ``fs.gs.``: longer ones before their beginnings."""
    shown: str
    """The prefix in messages."""
    names: Mapping[str, str]
    """The setting of each name, in lower case with dots and without a prefix."""
    tuning: re.Pattern[str]
    """The names of options that only tune Hadoop: they are accepted without effect."""
    arguments: Mapping[str, Kind] | None
    """The arguments of the client that are passed on; `None`: all, as text."""
    client: str
    """The name of the client in messages."""

    def split(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments of the client, and the settings by the values of `names`.

        Raises InvalidInputError, which omits the value, for an unknown name.
        """
        own: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        for key, value in options.items():
            plain = key.lower().removeprefix("spark.hadoop.")
            prefix = next((prefix for prefix in self.prefixes if plain.startswith(prefix)), None)
            if prefix is None:
                own[key] = self._own_value(key, value)
                continue
            setting = self.setting_of(plain.removeprefix(prefix).replace("-", "."))
            if setting is not None:
                settings[setting] = value
            elif not self.tuning.match(plain.removeprefix(prefix).replace("-", ".")):
                raise InvalidInputError(f"{self.title} option {key!r} is not supported; accepted: {self.accepted()}")
        return own, settings

    def setting_of(self, name: str) -> str | None:
        """Return the setting of a name without its prefix; `None`: the name is not known."""
        return self.names.get(name)

    def accepted(self) -> str:
        """Return the accepted options as text for a message."""
        return ", ".join(f"{self.shown}{name}" for name in self.names) + f", or {self._own_names()}"

    def _own_value(self, key: str, value: Any) -> Any:
        if self.arguments is None and "." not in key and "-" not in key:
            return value
        if self.arguments is None or key not in self.arguments:
            known = f"accepted: {self.accepted()}"
            raise InvalidInputError(f"storage option {key!r} is not known for {self.title}; {known}")
        return converted(key, value, self.arguments[key])

    def _own_names(self) -> str:
        return f"{self.client}'s own argument names" + (f": {', '.join(self.arguments)}" if self.arguments else "")


def converted(key: str, value: Any, kind: Kind) -> Any:
    """Return an option's value in the type that a client requires. InvalidInputError names the option only."""
    if not isinstance(value, str) or kind == "text":
        return value
    if kind == "flag":
        return flag(value, key)
    try:
        if kind == "number":
            return int(value)
        found = json.loads(value)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError(f"storage option {key!r} must be {'a number' if kind == 'number' else 'a JSON object'}")
    return found


def flag(value: Any, key: str) -> bool:
    """Return the boolean of an option's value. InvalidInputError names the option only."""
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidInputError(f"storage option {key!r} must be true or false")
    return text == "true"


def url_of(host: str, ssl: bool) -> str:
    """Return an address with its scheme, which may be missing."""
    return host if "://" in host else f"{'https' if ssl else 'http'}://{host}"
