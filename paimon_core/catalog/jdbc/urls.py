"""The address of a database: a JDBC URL with the properties of Java's driver, as SQLAlchemy's URL and arguments."""

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from paimon_core.errors import InvalidInputError, UnsupportedError

PREFIX: Final = "jdbc."
"""The prefix of options of the catalog that are properties of the driver."""

_FORMS: Final = (
    "'jdbc:postgresql://host:5432/database', 'jdbc:mysql://host:3306/database', 'jdbc:mariadb://host:3306/database' or "
    "'jdbc:sqlite:/path/to/file'"
)
_WITHOUT_EFFECT: Final = {
    "mysql": {
        "allowpublickeyretrieval", "autoreconnect", "cacheprepstmts", "characterencoding", "prepstmtcachesize",
        "prepstmtcachesqllimit", "rewritebatchedstatements", "servertimezone", "tcpkeepalive", "useserverprepstmts",
        "useunicode", "zerodatetimebehavior",
    },
    "postgresql": {"rewritebatchedinserts", "reWriteBatchedInserts".lower(), "preparethreshold", "tcpkeepalive"},
    "sqlite": {"busy_timeout", "journal_mode", "synchronous"},
}  # fmt: skip
"""Properties that only tune Java's drivers, in lower case."""


class DatabaseAddress(NamedTuple):
    """The dialect, the parts of SQLAlchemy's URL, and the arguments of the driver.

    The repr shows neither the user nor the password.
    """

    dialect: str
    parts: Mapping[str, Any]
    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"DatabaseAddress({self.shown!r})"

    @property
    def shown(self) -> str:
        """The database without user and password, for messages."""
        host, database = self.parts.get("host"), self.parts.get("database") or ""
        port = f":{self.parts['port']}" if self.parts.get("port") else ""
        return f"{self.dialect}://{host}{port}/{database}" if host else f"{self.dialect}:{database}"


def database_address(uri: str, options: Mapping[str, str]) -> DatabaseAddress:
    """Return the address that the options ``uri`` and ``jdbc.<property>`` of a catalog name.

    Args:
        uri: the JDBC URL.
        options: the options of the catalog.

    Raises InvalidInputError for a text of another form, UnsupportedError for another database and for a property of
    the driver that has no counterpart here.
    """
    scheme, _, rest = uri.strip().partition(":")
    if scheme.lower() != "jdbc" or ":" not in rest:
        raise InvalidInputError(f"option 'uri' of the catalog is not a JDBC URL: write {_FORMS}")
    kind = rest.partition(":")[0].lower()
    properties = {k.removeprefix(PREFIX): str(v) for k, v in options.items() if k.startswith(PREFIX)}
    if kind == "sqlite":
        return _sqlite(rest.partition(":")[2], properties)
    if kind not in ("postgresql", "mysql", "mariadb"):
        raise UnsupportedError(f"option 'uri' of the catalog names a database of the kind {kind!r}: write {_FORMS}")
    try:
        split = urlsplit(rest)
        host, port = split.hostname, split.port
    except ValueError:
        raise InvalidInputError(f"option 'uri' of the catalog cannot be read: write {_FORMS}") from None
    database = unquote(split.path.lstrip("/"))
    if not host or not database:
        raise InvalidInputError(f"option 'uri' of the catalog names no host or no database: write {_FORMS}")
    properties = {**dict(parse_qsl(split.query, keep_blank_values=True)), **properties}
    dialect = "postgresql" if kind == "postgresql" else "mysql"
    driver = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}[dialect]
    user = properties.pop("user", None) or (unquote(split.username) if split.username else None)
    password = properties.pop("password", None) or (unquote(split.password) if split.password else None)
    parts = {
        "drivername": driver,
        "username": user,
        "password": password,
        "host": host,
        "port": port,
        "database": database,
    }
    arguments: dict[str, Any] = {"connect_timeout": 30}
    known = _POSTGRESQL if dialect == "postgresql" else _MYSQL
    for name, value in properties.items():
        convert = known.get(name.lower())
        if convert is not None:
            arguments.update(convert(value))
        elif name.lower() not in _WITHOUT_EFFECT[dialect]:
            raise _unknown(name, [*known, "user", "password"])
    return DatabaseAddress(dialect, parts, arguments)


def _sqlite(path: str, properties: Mapping[str, str]) -> DatabaseAddress:
    """Return the address of a file; its path may have a prefix ``file:`` and properties."""
    name, _, query = path.removeprefix("file:").partition("?")
    if not name or ":memory:" in name or "mode=memory" in query:
        raise UnsupportedError("a catalog in a SQLite database in memory is lost with the process: name a file")
    for key in {**dict(parse_qsl(query)), **properties}:
        if key.lower() not in _WITHOUT_EFFECT["sqlite"] | {"user", "password"}:
            raise _unknown(key, _WITHOUT_EFFECT["sqlite"])
    file = (
        name
        if name.startswith("/") and not name.startswith("//")
        else "/" + name.lstrip("/")
        if name.startswith("/")
        else name
    )
    return DatabaseAddress("sqlite", {"drivername": "sqlite", "database": file}, {"timeout": 30.0})


def _unknown(name: str, known: Any) -> UnsupportedError:
    return UnsupportedError(
        f"property {name!r} of the JDBC driver is not supported: leave it out; known are {', '.join(sorted(known))}"
    )


def _seconds(name: str, scale: int = 1) -> Callable[[str], dict[str, Any]]:
    """Return a converter of a number of seconds to the argument ``name``; ``scale``: units per second."""

    def convert(value: str) -> dict[str, Any]:
        try:
            return {name: max(1, int(value) // scale)}
        except ValueError:
            raise InvalidInputError(f"property {name!r} of the JDBC driver is {value!r}: it must be a number") from None

    return convert


def _mysql_encryption(value: str) -> dict[str, Any]:
    mode = value.upper()
    if mode in ("DISABLED", "DISABLE", "FALSE"):
        return {"ssl_disabled": True}
    if mode in ("PREFERRED", ""):
        return {}
    context = ssl.create_default_context()
    if mode in ("REQUIRED", "TRUST", "TRUE"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif mode == "VERIFY_CA":
        context.check_hostname = False
    elif mode not in ("VERIFY_IDENTITY", "VERIFY-FULL"):
        raise UnsupportedError(f"property 'sslMode' of the JDBC driver is {value!r}, which is not known")
    return {"ssl": context}


_POSTGRESQL: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "ssl": lambda value: {"sslmode": "verify-full" if value.lower() in ("true", "") else "disable"},
    "sslmode": lambda value: {"sslmode": value},
    "sslrootcert": lambda value: {"sslrootcert": value},
    "sslcert": lambda value: {"sslcert": value},
    "sslkey": lambda value: {"sslkey": value},
    "currentschema": lambda value: {"options": f"-csearch_path={value}"},
    "connecttimeout": _seconds("connect_timeout"),
    "applicationname": lambda value: {"application_name": value},
}
_MYSQL: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "usessl": _mysql_encryption,
    "sslmode": _mysql_encryption,
    "connecttimeout": _seconds("connect_timeout", 1000),
    "sockettimeout": _seconds("read_timeout", 1000),
}
