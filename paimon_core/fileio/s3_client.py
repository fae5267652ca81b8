"""The file system of S3 for assumed roles: s3fs with credentials from STS. `s3.S3` imports this module when needed."""

from typing import Any

from aiobotocore.credentials import AioDeferredRefreshableCredentials
from aiobotocore.session import AioSession
from s3fs import S3FileSystem


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
