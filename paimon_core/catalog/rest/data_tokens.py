"""Credentials for the files of one table, which the server of a REST catalog gives for some hours."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.api import RestApi
from paimon_core.catalog.rest.auth import RENEWAL_SECONDS
from paimon_core.catalog.rest.client import RestServerError
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.storage import Storage
from paimon_core.fileio.stores import is_storage_option

_MOST_MILLIS = 1 << 63


@dataclass(frozen=True, slots=True)
class DataToken:
    """Options of a file system with credentials. ``expires``: their end in epoch seconds."""

    options: Mapping[str, str] = field(repr=False)
    expires: float

    @staticmethod
    def from_json(answer: Mapping[str, Any], name: Identifier) -> "DataToken":
        """Parse the answer of the server. Raises RestServerError, without the answer, if a part is missing."""
        millis = answer.get("expiresAtMillis", answer.get("expiresAt"))
        options = answer.get("token")
        is_time = isinstance(millis, int | float) and not isinstance(millis, bool) and abs(millis) < _MOST_MILLIS
        if not isinstance(options, dict) or not is_time:
            raise RestServerError(
                f"the catalog's server gives credentials for the files of {str(name)!r} in a way that this engine does "
                "not know: expected 'token' and 'expiresAtMillis'"
            )
        return DataToken({str(key): str(value) for key, value in options.items()}, millis / 1000)


@dataclass(frozen=True, slots=True)
class TokenSource:
    """The source of the credentials of a table. It may be pickled.

    ``options``: the storage options of the catalog, which the credentials are added to.
    """

    api: RestApi
    name: Identifier
    options: Mapping[str, Any] = field(repr=False)
    oss_endpoint: str | None = None

    def load(self) -> DataToken:
        """Ask the server for credentials, and return them with the storage options of the catalog.

        Names that no store of this engine knows are left out, as by the Java engine.
        """
        token = DataToken.from_json(self.api.token(self.name), self.name)
        given = {key: value for key, value in token.options.items() if is_storage_option(key.lower())}
        endpoint = {} if self.oss_endpoint is None else {"fs.oss.endpoint": self.oss_endpoint}
        return DataToken({**self.options, **given, **endpoint}, token.expires)


class DataTokenIO(FileIO):
    """A FileIO whose credentials are renewed one hour before they end, in every process that has it.

    Args:
        url: the directory of the table.
        source: the source of the credentials.
        token: the current credentials.
        now: a function that returns the time in epoch seconds.
    """

    def __init__(self, url: str, source: TokenSource, token: DataToken, now: Callable[[], float] = time.time) -> None:
        super().__init__(url, token.options)
        self._source, self._token, self._now = source, token, now
        self._lock = threading.Lock()

    def _storage(self, path: str) -> Storage:
        if self._is_ending():
            with self._lock:
                if self._is_ending():
                    self._token = self._source.load()
                    self._options, self._storages = dict(self._token.options), {}
        return super()._storage(path)

    def _is_ending(self) -> bool:
        return self._token.expires - self._now() < RENEWAL_SECONDS

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "source": self._source, "token": self._token, "now": self._now}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._source, self._token, self._now = state["source"], state["token"], state["now"]
        self._lock = threading.Lock()
