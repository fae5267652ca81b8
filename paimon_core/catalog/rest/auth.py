"""Authentication of requests to a REST catalog: a bearer token, or the signatures of Alibaba's Data Lake Formation.

Providers and options have the names of Paimon's Java engine: ``token.provider=bear`` with ``token``, and
``token.provider=dlf`` with ``dlf.*``.
"""

import base64
import hashlib
import hmac
import re
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote_plus, unquote_plus

from paimon_core.errors import InvalidInputError, nearest_name
from paimon_core.types.json_text import parse_object

RENEWAL_SECONDS: Final = 3600.0
"""Credentials are renewed if they end within this time, as in the Java engine."""

_ECS_URL: Final = "http://100.100.100.200/latest/meta-data/Ram/security-credentials/"
_READ_ATTEMPTS: Final = 5  # of a token file, which another process may be replacing
_REGION: Final = re.compile(r"(?:pre-)?([a-z]+-[a-z]+(?:-\d+)?)")
_JSON: Final = "application/json"

Fetch = Callable[[str], str]
"""A function that returns the body of a GET request without authentication."""


@dataclass(frozen=True, slots=True)
class Request:
    """The parts of a request that a signature covers.

    ``path`` is encoded, the values of ``query`` are not. ``body``: the JSON text; `None`: no body.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: str | None = field(default=None, repr=False)


class Authenticator(Protocol):
    """The source of the headers that authenticate a request."""

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers of a request."""
        ...

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""
        ...


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A constant token in the header ``Authorization``."""

    token: str = field(repr=False)

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers of a request."""
        return {"Authorization": f"Bearer {self.token}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""
        return (self.token,)


@dataclass(frozen=True, slots=True)
class DlfKey:
    """An access key. ``expires``: the end of its validity in epoch seconds; `None`: it does not expire."""

    key_id: str
    secret: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)
    expires: float | None = None

    @staticmethod
    def from_json(text: str, source: str) -> "DlfKey":
        """Parse the text of a token file or of the ECS service. InvalidInputError names ``source``, not the text."""
        try:
            values = parse_object(text)
            expiration = values.get("Expiration")
            expires = None if expiration is None else _utc(expiration)
            return DlfKey(values["AccessKeyId"], values["AccessKeySecret"], values.get("SecurityToken"), expires)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInputError(
                f"the credentials from {source} cannot be read: expected a JSON object with AccessKeyId, "
                "AccessKeySecret, SecurityToken and Expiration (yyyy-MM-ddTHH:mm:ssZ)"
            ) from None


def _utc(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()


class DlfSigner(Protocol):
    """An algorithm that signs a request with an access key at a time."""

    def sign(self, request: Request, key: DlfKey, now: datetime) -> dict[str, str]:
        """Return the signed headers and the header ``Authorization``."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultSigner:
    """The signature ``DLF4-HMAC-SHA256`` of the endpoints in a private network."""

    region: str

    def sign(self, request: Request, key: DlfKey, now: datetime) -> dict[str, str]:
        """Return the signed headers and the header ``Authorization``."""
        moment = now.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        signed = {"x-dlf-date": moment, "x-dlf-content-sha256": "UNSIGNED-PAYLOAD", "x-dlf-version": "v1"}
        if request.body:
            signed |= {"Content-Type": _JSON, "Content-MD5": _md5(request.body)}
        if key.security_token is not None:
            signed["x-dlf-security-token"] = key.security_token
        query = "&".join(
            f"{name}={url_encoded(value)}" if value else name for name, value in sorted(request.query.items())
        )
        lines = sorted(f"{name.lower()}:{value.strip()}" for name, value in signed.items())
        canonical = "\n".join([request.method, request.path, query, *lines, "UNSIGNED-PAYLOAD"])
        scope = (moment[:8], self.region, "DlfNext", "aliyun_v4_request")
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = "\n".join(["DLF4-HMAC-SHA256", moment, "/".join(scope), digest])
        chained = ("aliyun_v4" + key.secret).encode()
        for part in (*scope, to_sign):
            chained = hmac.new(chained, part.encode(), hashlib.sha256).digest()
        credential = "/".join((key.key_id, *scope))
        return {**signed, "Authorization": f"DLF4-HMAC-SHA256 Credential={credential},Signature={chained.hex()}"}


@dataclass(frozen=True, slots=True)
class OpenApiSigner:
    """The signature ``HMAC-SHA1`` of the public endpoints, version 2026-01-18.

    ``nonce``: a function that returns a text that is new for each request.
    """

    host: str
    nonce: Callable[[], str] = lambda: f"{uuid.uuid4()}{time.time_ns()}"

    def sign(self, request: Request, key: DlfKey, now: datetime) -> dict[str, str]:
        """Return the signed headers and the header ``Authorization``."""
        acs = {
            "x-acs-signature-method": "HMAC-SHA1",
            "x-acs-signature-nonce": self.nonce(),
            "x-acs-signature-version": "1.0",
            "x-acs-version": "2026-01-18",
        }
        if key.security_token is not None:
            acs["x-acs-security-token"] = key.security_token
        date = _http_date(now)
        content = (_md5(request.body), _JSON) if request.body else ("", "")
        path = unquote_plus(request.path)
        query = "&".join(f"{name}={value}" if value else name for name, value in sorted(request.query.items()))
        resource = f"{path}?{query}" if query else path
        lines = [f"{name}:{value.strip()}" for name, value in sorted(acs.items())]
        to_sign = "\n".join([request.method, _JSON, *content, date, *lines, resource])
        signature = base64.b64encode(hmac.new(key.secret.encode(), to_sign.encode(), hashlib.sha1).digest()).decode()
        body = {"Content-MD5": content[0], "Content-Type": content[1]} if request.body else {}
        general = {"Date": date, "Accept": _JSON, "Host": self.host}
        return {**general, **body, **acs, "Authorization": f"acs {key.key_id}:{signature}"}


def url_encoded(text: str) -> str:
    """Return a text as a part of a path or query, encoded as by ``java.net.URLEncoder``."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def _md5(body: str) -> str:
    return base64.b64encode(hashlib.md5(body.encode(), usedforsecurity=False).digest()).decode()


def _http_date(now: datetime) -> str:
    """Return a time as HTTP writes it, regardless of the locale of the process."""
    now = now.astimezone(timezone.utc)
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{days[now.weekday()]}, {now:%d} {months[now.month - 1]} {now:%Y %H:%M:%S} GMT"


class Dlf:
    """Signed requests with a key that is loaded again before it expires.

    Args:
        signer: the algorithm.
        load: a function that returns the key.
        now: a function that returns the time in epoch seconds.
    """

    def __init__(self, signer: DlfSigner, load: Callable[[], DlfKey], now: Callable[[], float] = time.time) -> None:
        self._signer, self._load, self._now = signer, load, now
        self._key: DlfKey | None = None

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers of a request."""
        key = self._key
        if key is None or (key.expires is not None and key.expires - self._now() < RENEWAL_SECONDS):
            key = self._key = self._load()
        return self._signer.sign(request, key, datetime.fromtimestamp(self._now(), timezone.utc))

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that no message may contain."""
        key = self._key
        return () if key is None else tuple(text for text in (key.secret, key.security_token) if text)


def authenticator_of(options: Mapping[str, str], fetch: Fetch) -> Authenticator:
    """Return the authentication that the options of a catalog describe.

    ``fetch``: the function for requests to the service for credentials of a virtual machine. Raises InvalidInputError
    for a provider that does not exist, and naming an option that is missing.
    """
    provider = options.get("token.provider")
    if provider == "bear":
        return BearerToken(_required(options, "token", "token.provider=bear"))
    if provider == "dlf":
        return Dlf(_signer(options), _loader(options, fetch))
    if provider is None:
        raise InvalidInputError(
            "a REST catalog needs the option 'token.provider': 'bear' with 'token', or 'dlf' with 'dlf.access-key-id' "
            "and 'dlf.access-key-secret', 'dlf.token-path' or 'dlf.token-loader'"
        )
    near = nearest_name(provider, ("bear", "dlf"))
    hint = "" if near is None else f" (did you mean {near!r}?)"
    raise InvalidInputError(f"option 'token.provider' is {provider!r}, but it can be 'bear' or 'dlf'{hint}")


def _required(options: Mapping[str, str], name: str, for_what: str) -> str:
    value = options.get(name)
    if not value:
        raise InvalidInputError(f"{for_what} needs the option {name!r} in the options of the catalog")
    return value


def _signer(options: Mapping[str, str]) -> DlfSigner:
    uri = options.get("uri", "")
    algorithm = options.get("dlf.signing-algorithm") or ("openapi" if "dlfnext" in uri.lower() else "default")
    if algorithm == "openapi":
        return OpenApiSigner(host_of(uri))
    if algorithm != "default":
        raise InvalidInputError(f"option 'dlf.signing-algorithm' is {algorithm!r}: it can be 'default' or 'openapi'")
    region = options.get("dlf.region")
    if region is None:
        found = _REGION.search(uri)
        if found is None:
            raise InvalidInputError(
                "token.provider=dlf needs the option 'dlf.region' in the options of the catalog: 'uri' names no region"
            )
        region = found[1]
    return DefaultSigner(region)


def host_of(uri: str) -> str:
    """Return the host and port of a URL."""
    return re.sub(r"^https?://", "", uri).partition("/")[0]


def _loader(options: Mapping[str, str], fetch: Fetch) -> Callable[[], DlfKey]:
    loader, path = options.get("dlf.token-loader"), options.get("dlf.token-path")
    if loader == "ecs":
        url = options.get("dlf.token-ecs-metadata-url") or _ECS_URL
        return _EcsLoader(url, options.get("dlf.token-ecs-role-name"), fetch)
    if loader not in (None, "local_file"):
        raise InvalidInputError(f"option 'dlf.token-loader' is {loader!r}: it can be 'local_file' or 'ecs'")
    if loader == "local_file" or path is not None:
        return _FileLoader(_required(options, "dlf.token-path", "dlf.token-loader=local_file"))
    key_id = _required(options, "dlf.access-key-id", "token.provider=dlf")
    secret = _required(options, "dlf.access-key-secret", "token.provider=dlf")
    key = DlfKey(key_id, secret, options.get("dlf.security-token"))
    return lambda: key


@dataclass(frozen=True, slots=True)
class _FileLoader:
    """The key in a file, which another process may replace at any time."""

    path: str
    sleep: Callable[[float], None] = time.sleep

    def __call__(self) -> DlfKey:
        for attempt in range(1, _READ_ATTEMPTS):
            with suppress(InvalidInputError, OSError):
                return DlfKey.from_json(Path(self.path).read_text(), self.path)
            self.sleep(float(attempt))
        try:
            return DlfKey.from_json(Path(self.path).read_text(), self.path)
        except OSError as error:
            raise InvalidInputError(f"the file of option 'dlf.token-path' cannot be read: {error}") from error


@dataclass(slots=True)
class _EcsLoader:
    """The key of a role of a virtual machine, from the service of its cloud."""

    url: str
    role: str | None
    fetch: Fetch

    def __call__(self) -> DlfKey:
        if self.role is None:
            self.role = self.fetch(self.url).strip()
        return DlfKey.from_json(self.fetch(self.url + self.role), f"{self.url}{self.role}")
