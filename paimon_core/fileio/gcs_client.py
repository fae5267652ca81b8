"""The file system of Google Cloud Storage: gcsfs with timeouts. Only `gcs.GCS` imports this module, when needed."""

from typing import Any, Final

from aiohttp import ClientTimeout
from gcsfs.core import GCSFileSystem  # gcsfs's default class asks Google by gRPC for the kind of each bucket

TIMEOUT: Final = ClientTimeout(total=None, sock_connect=10, sock_read=60)
"""Seconds to wait for a connection, and for the next bytes of an answer. Requests are repeated up to six times."""


class GcsFileSystem(GCSFileSystem):  # type: ignore[misc]
    """Objects of Google Cloud Storage as files."""

    def __init__(self, *arguments: Any, session_kwargs: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(*arguments, session_kwargs={"timeout": TIMEOUT, **(session_kwargs or {})}, **options)
