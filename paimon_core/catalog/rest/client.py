"""The HTTP client of a REST catalog: authenticated JSON requests, retries, pages, and errors of the engine."""

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any, Final

from paimon_core.catalog.rest.auth import Authenticator, Request, authenticator_of, url_encoded
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    MissingDependencyError,
    NotFoundError,
    PaimonError,
    PermissionDeniedError,
    UnsupportedError,
    hide_secrets,
)
from paimon_core.types.json_text import parse_object

MAX_RETRIES: Final = 5
LONGEST_WAIT: Final = 64.0
"""The most seconds to wait before a request is repeated, whatever the server asks for."""
_CONNECT_SECONDS: Final = 30.0
_ANSWER_SECONDS: Final = 180.0
_IDEMPOTENT: Final = ("GET", "DELETE")
_BUSY: Final = (429, 503)
_SHOWN: Final = 500  # characters of a message of the server
_HEADER: Final = "header."
_REPEATED: Final = "request_was_repeated"  # the attribute that marks an error


class RestNotFoundError(NotFoundError):
    """An object that the server does not have. ``kind``: its type, such as DATABASE or SNAPSHOT; may be empty."""

    def __init__(self, message: str, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind, self.name = kind, name


class RestServerError(OSError):
    """A failure of the server, or no answer: the request may have been done, unless it only reads."""


class RestClient:
    """A client of one server. It may be pickled; each process opens its own connections.

    Args:
        uri: the address of the server, with or without ``http://``.
        options: the options of the catalog, for the authentication and the headers ``header.X``.
        sleep: the function that waits before a request is repeated; `None`: `time.sleep`.
    """

    def __init__(self, uri: str, options: Mapping[str, str], sleep: Callable[[float], None] | None = None) -> None:
        if not uri:
            raise InvalidInputError("a REST catalog needs the option 'uri': the address of its server")
        uri = uri.rstrip("/")
        self.uri = uri if uri.startswith(("http://", "https://")) else f"http://{uri}"
        self._options = {**options, "uri": self.uri}
        self._headers = {k.removeprefix(_HEADER): v for k, v in options.items() if k.startswith(_HEADER)}
        self._sleep = sleep or (lambda seconds: time.sleep(seconds))
        self._auth: Authenticator = authenticator_of(self._options, self._fetch)
        self._session: Any = None
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.uri, self._options)

    def __repr__(self) -> str:
        return f"RestClient({hide_secrets(self.uri)!r})"

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at a path. Errors as for `request`."""
        return self.request("GET", path, query)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a JSON object, and return the JSON object of the answer; an empty one without an answer."""
        return self.request("POST", path, None, body)

    def delete(self, path: str) -> None:
        """Delete what a path names. Errors as for `request`."""
        self.request("DELETE", path)

    def pages(
        self, path: str, key: str, query: Mapping[str, str] | None = None, *, all_pages: bool = False
    ) -> Iterator[Any]:
        """Yield the elements of a list that the server returns in pages, under ``key`` of each page.

        ``all_pages``: True if pages may follow a page without elements; False if it is the last one, as in Java.
        """
        parameters, seen = dict(query or {}), set()
        while True:
            page = self.get(path, parameters)
            elements, following = page.get(key) or [], page.get("nextPageToken")
            if not isinstance(elements, list) or not isinstance(following, str | None):
                raise RestServerError(f"{self._shown(path)} answered with a page without a list {key!r}")
            yield from elements
            if not following or not (elements or all_pages):
                return
            seen.add(parameters.get("pageToken"))
            if following in seen:
                raise RestServerError(f"{self._shown(path)} answered the same page token twice: the list has no end")
            parameters["pageToken"] = following

    def names(self, path: str, key: str) -> list[str]:
        """Return the names that the server lists in pages. Errors as for `request`."""
        found = list(self.pages(path, key))
        if not all(isinstance(name, str) for name in found):
            raise RestServerError(f"{self._shown(path)} answered with {key!r} that are not a list of names")
        return found

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request and return the JSON object of the answer.

        A request that only reads or deletes is repeated if its connection breaks. Every request is repeated if the
        server is busy (429 and 503), after the time that the server asks for: so the server may have done a POST
        whose repetition is refused.

        Raises RestNotFoundError (404), AlreadyExistsError (409), InvalidInputError (400), PermissionDeniedError (401
        and 403), UnsupportedError (501), and RestServerError, an OSError, for all other failures.
        """
        text = None if body is None else json.dumps(body, ensure_ascii=False)
        sent = Request(method, path, dict(query or {}), text)
        for attempt in range(MAX_RETRIES + 1):
            last = attempt == MAX_RETRIES
            try:
                answer = self._send(sent)
            except _requests().exceptions.RequestException as error:
                if last or method not in _IDEMPOTENT or not _is_broken(error):
                    raise RestServerError(
                        f"{method} {self._shown(path)} got no answer: {self._hide(type(error).__name__)}; check that "
                        "the server at option 'uri' runs and can be reached"
                    ) from None  # the message of the cause may contain the signed URL
                self._sleep(_wait(attempt, None))
                continue
            if answer.status_code in _BUSY and not last:
                self._sleep(_wait(attempt, answer.headers.get("Retry-After")))
                continue
            try:
                return self._result(method, path, answer)
            except PaimonError as error:
                if attempt and method not in _IDEMPOTENT:
                    setattr(error, _REPEATED, True)
                raise
        raise AssertionError("the last attempt returns or raises")

    # ---- inside

    def _send(self, request: Request) -> Any:
        headers = {**self._headers, "Content-Type": "application/json"} if request.body is not None else self._headers
        return self._connection().request(
            request.method,
            self.uri + request.path,
            params=request.query,
            data=None if request.body is None else request.body.encode(),
            headers={**headers, **self._auth.headers(request)},
            auth=_unchanged,
            timeout=(_CONNECT_SECONDS, _ANSWER_SECONDS),
            allow_redirects=False,
        )

    def _fetch(self, url: str) -> str:
        """Return the body of a GET without authentication."""
        try:
            answer = self._connection().get(url, timeout=(_CONNECT_SECONDS, _CONNECT_SECONDS), auth=_unchanged)
        except _requests().exceptions.RequestException as error:
            raise RestServerError(f"GET {hide_secrets(url)} got no answer: {type(error).__name__}") from None
        if answer.status_code != 200:
            raise RestServerError(f"GET {hide_secrets(url)} answered with status {answer.status_code}")
        return str(answer.text)

    def _connection(self) -> Any:
        if self._session is None or self._process != os.getpid():
            self._session, self._process = _requests().Session(), os.getpid()
        return self._session

    def _result(self, method: str, path: str, answer: Any) -> dict[str, Any]:
        if answer.status_code in (200, 202, 204):
            if not answer.content:
                return {}
            try:
                return parse_object(answer.content)
            except ValueError:  # the text is not shown: it may hold credentials
                raise RestServerError(
                    f"{method} {self._shown(path)} answered with text that is not a JSON object"
                ) from None
        raise self._error(method, path, answer)

    def _error(self, method: str, path: str, answer: Any) -> Exception:
        try:
            said = parse_object(answer.content)
        except ValueError:
            said = {}
        code = said.get("code")
        status = code if isinstance(code, int) else answer.status_code
        text = self._hide(str(said.get("message") or "no message"))[:_SHOWN]
        request_id = next((v for k, v in answer.headers.items() if "request-id" in k.lower()), None)
        where = f"{method} {self._shown(path)}" + (f", request {request_id}" if request_id else "")
        message = f"{text} (status {status} of {where})"
        match status:
            case 400:
                return InvalidInputError(f"the catalog's server refuses the request: {message}")
            case 401:
                return PermissionDeniedError(
                    f"the catalog's server does not accept the credentials: {message}; check the options "
                    "'token.provider', 'token' and 'dlf.*' of the catalog"
                )
            case 403:
                return PermissionDeniedError(f"the catalog's server denies the permission: {message}")
            case 404:
                return RestNotFoundError(message, str(said.get("resourceType") or ""), str(said.get("resourceName")))
            case 409:
                return AlreadyExistsError(message)
            case 501:
                return UnsupportedError(f"the catalog's server does not support the request: {message}")
        return RestServerError(self._hide(f"the catalog's server failed: {message}"))

    def _shown(self, path: str) -> str:
        return hide_secrets(self.uri) + path

    def _hide(self, text: str) -> str:
        for secret in self._auth.secrets():
            text = text.replace(secret, "***")
        return hide_secrets(text)


def encoded(*names: str) -> str:
    """Return names as the parts of a path, such as ``/databases/a+b``."""
    return "".join("/" + url_encoded(name) for name in names)


def was_repeated(error: BaseException) -> bool:
    """Return True if the server refused a request only when it was repeated: the first one may have been done."""
    return bool(getattr(error, _REPEATED, False))


def _requests() -> ModuleType:
    try:
        import requests  # noqa: PLC0415  an optional dependency
    except ImportError as missing:
        raise MissingDependencyError(
            "a REST catalog needs the package requests: pip install 'pyspark-paimon[rest]'"
        ) from missing
    module: ModuleType = requests
    return module


def _unchanged(request: Any) -> Any:
    """Keep the headers of a request: without this function, a ``.netrc`` would replace ``Authorization``."""
    return request


def _is_broken(error: Exception) -> bool:
    """Return True if a connection broke. A server that cannot be reached or answers too late is not asked again."""
    kinds = _requests().exceptions
    if isinstance(error, kinds.Timeout | kinds.SSLError):
        return False
    return isinstance(error, kinds.ConnectionError) and "NewConnectionError" not in repr(error)


def _wait(attempt: int, retry_after: str | None) -> float:
    """Return the seconds before the next attempt: what the server asks for, else 1, 2, 4 ... with a jitter of 10 %."""
    if retry_after:
        try:
            asked = float(retry_after)
        except ValueError:
            try:
                asked = parsedate_to_datetime(retry_after).timestamp() - time.time()
            except (ValueError, TypeError, OverflowError):
                asked = 0.0
        if asked > 0:
            return min(asked, LONGEST_WAIT)
    return float(min(2.0**attempt * (1 + 0.1 * random.random()), LONGEST_WAIT))
