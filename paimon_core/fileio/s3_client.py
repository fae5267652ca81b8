"""The file system of S3: s3fs with credentials from STS, and one request for a read. `s3.S3` imports it when needed."""

import inspect
from typing import Any, Final

from aiobotocore.credentials import AioDeferredRefreshableCredentials
from aiobotocore.session import AioSession
from s3fs import S3FileSystem

_ASKS_FOR_SIZE: Final = "max_concurrency" in inspect.signature(S3FileSystem._cat_file).parameters
"""True if s3fs asks for the size of a file before it reads the whole file, so as to read a large file in parts."""


class RoleFileSystem(S3FileSystem):  # type: ignore[misc]
    """Objects of S3 as files, with an optional role whose credentials are renewed before they expire.

    Args:
        role: the arguments of STS ``assume_role``; `None`: no role is assumed.
        sts: the arguments of the STS client; `None`: the defaults of botocore.
        options: the arguments of s3fs. With a role, ``key``, ``secret`` and ``token`` are used to assume the role.
    """

    def __init__(
        self,
        *arguments: Any,
        role: dict[str, Any] | None = None,
        sts: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if role is not None:
            options["session"] = _session_of(
                role,
                {
                    "aws_access_key_id": options.pop("key", None),
                    "aws_secret_access_key": options.pop("secret", None),
                    "aws_session_token": options.pop("token", None),
                    **(sts or {}),
                },
            )
        super().__init__(*arguments, **options)

    async def _cat_file(
        self, path: str, version_id: str | None = None, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        """Return a file, or a range of it, in one request: what the engine reads as a whole is small."""
        if _ASKS_FOR_SIZE:
            options.setdefault("max_concurrency", 1)
        return bytes(await super()._cat_file(path, version_id, start, end, **options))


def _session_of(role: dict[str, Any], sts: dict[str, Any]) -> AioSession:
    """Return a session with the credentials of a role."""
    base = AioSession()

    async def credentials() -> dict[str, str]:
        async with base.create_client("sts", **sts) as client:
            found = (await client.assume_role(**role))["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    session = AioSession()
    session._credentials = AioDeferredRefreshableCredentials(credentials, "assume-role")
    return session
