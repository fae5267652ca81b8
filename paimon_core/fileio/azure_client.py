"""The file system of Azure: adlfs with short and bounded retries. Only `azure.AZURE` imports this module, on first use.

Differences from adlfs: the account of a path wins over options and is never mixed with another account's connection
string; ``wasb`` paths; listings of one directory ask for that directory only; a copy is complete when it returns; no
deletion hides an error.
"""

import asyncio
import re
from typing import Any, Final

from adlfs import AzureBlobFileSystem
from azure.core.exceptions import ResourceNotFoundError
from azure.core.utils import parse_connection_string
from azure.identity.aio import ManagedIdentityCredential, WorkloadIdentityCredential
from azure.storage.blob.aio import BlobPrefix, BlobServiceClient, ExponentialRetry
from fsspec.asyn import sync_wrapper

CONNECT_SECONDS: Final = 10
READ_SECONDS: Final = 60
"""Seconds to wait for a connection, and for the next bytes of an answer."""
_REPETITIONS = 5
_RETRIES: Final = {
    **{"initial_backoff": 0.3, "increment_base": 2, "random_jitter_range": 0.2},
    **{f"retry_{kind}": _REPETITIONS for kind in ("total", "connect", "read", "status")},
}
"""Five repetitions whatever fails, after about 0.3, 2, 4, 8 and 16 seconds. The client's default is 3 of each kind."""
_DELETED_AT_ONCE = 64  # blobs of a directory
_PATH = re.compile(r"(?:[A-Za-z]+://)?/*(?P<container>[^/@]*)(?:@(?P<host>[^/]*))?(?P<rest>/.*)?")


class AzureFileSystem(AzureBlobFileSystem):  # type: ignore[misc]
    """Blobs of one account as files.

    Args:
        account_name: the account; a path with a host names it.
        accounts: arguments by the name of an account, which replace `options` for this account.
        identity: ``managed`` or ``workload``: the kind of identity that gives the credentials.
        token_file: the file with the token of a workload identity; `None`: the file that the environment names.
        options: the other arguments of adlfs.
    """

    def __init__(
        self,
        account_name: str | None = None,
        accounts: dict[str, dict[str, Any]] | None = None,
        identity: str | None = None,
        token_file: str | None = None,
        **options: Any,
    ) -> None:
        own = (accounts or {}).get(account_name or "", {})
        if own:
            options = {name: value for name, value in options.items() if name not in _CREDENTIALS} | own
            identity, token_file = options.pop("identity", None), options.pop("token_file", None)
        self._account_of_path = account_name
        identifiers = {name: options[name] for name in ("client_id", "tenant_id") if options.get(name)}
        if identity == "managed":
            identifiers.pop("tenant_id", None)
            options["credential"] = ManagedIdentityCredential(**identifiers)
        elif identity == "workload":
            file = {"token_file_path": token_file} if token_file else {}
            options["credential"] = WorkloadIdentityCredential(**identifiers, **file)
        super().__init__(account_name=account_name, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        found = _PATH.fullmatch(path)
        return (found["container"] + (found["rest"] or "")).rstrip("/") if found else path

    @staticmethod
    def _get_kwargs_from_urls(urlpath: str) -> dict[str, Any]:
        found = _PATH.fullmatch(urlpath)
        host = found["host"] if found else None
        if not host:
            return {}
        account = {"account_name": host.partition(".")[0]}
        return {**account, "account_host": host.replace(".dfs.", ".blob.", 1)} if "." in host else account

    def do_connect(self) -> None:
        """Make the client. Raises ValueError if no account is known, or two."""
        settings = {
            "retry_policy": ExponentialRetry(**_RETRIES),
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
        }
        if self.connection_string is not None:
            account = parse_connection_string(self.connection_string).get("accountname")
            if self._account_of_path not in (None, account):
                raise ValueError(f"the path is of account {self._account_of_path}, the connection string of {account}")
            self.service_client = BlobServiceClient.from_connection_string(self.connection_string, **settings)
            return
        if self.account_name is None:
            raise ValueError(
                "no account is named: write the path as abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/..., or give "
                "azure.account.name or azure.connection.string"
            )
        url = f"https://{getattr(self, 'account_host', None) or f'{self.account_name}.blob.core.windows.net'}"
        credential = self.credential or self.account_key
        if credential is None and self.sas_token is not None:
            url += f"?{self.sas_token.removeprefix('?')}"
        self.account_url = url
        self.service_client = BlobServiceClient(url, credential=credential, **settings)

    async def _ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        """Return the entries of a directory. Raises FileNotFoundError if the container or the directory is missing."""
        container, key, _ = self.split_path(path)
        prefix = f"{key.strip('/')}/" if key.strip("/") else ""
        entries: dict[str, dict[str, Any]] = {}
        try:
            async with self.service_client.get_container_client(container) as client:
                async for found in client.walk_blobs(name_starts_with=prefix, include=["metadata"], delimiter="/"):
                    name = f"{container}/{found.name.rstrip('/')}"
                    if isinstance(found, BlobPrefix) or _is_directory(found):
                        entries[name] = {"name": name, "size": 0, "type": "directory"}
                    elif found.name != prefix:
                        entries.setdefault(name, _entry(name, found))
        except ResourceNotFoundError as error:
            raise FileNotFoundError(path) from error
        if not entries:
            found = await self._info(path)
            entries = {found["name"]: found} if found["type"] == "file" else {}
        return list(entries.values()) if detail else list(entries)

    async def _rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None, **options: Any) -> None:
        """Delete a blob, or with ``recursive`` everything below a directory, a few at a time; a missing blob is fine.

        adlfs starts all deletions at once, and hides every error if any of the blobs is missing.
        """
        if not recursive or not isinstance(path, str):
            await super()._rm(path, recursive=recursive, maxdepth=maxdepth, **options)
            return
        container, key, _ = self.split_path(path)
        key = key.strip("/")
        directories = [key] if key else []
        async with self.service_client.get_container_client(container) as client:
            names: list[str] = []
            async for found in client.list_blobs(name_starts_with=f"{key}/" if key else None, include=["metadata"]):
                (directories if _is_directory(found) else names).append(found.name)
                if len(names) == _DELETED_AT_ONCE:
                    await _delete(client, names)
                    names = []
            await _delete(client, names)
            for name in sorted(directories, key=len, reverse=True):  # a directory must be empty
                await _delete(client, [name])

    rm = sync_wrapper(_rm)  # adlfs's own would call adlfs's `_rm`

    async def _cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copy a blob within the account, and wait until the copy is complete."""
        (container1, blob1, _), (container2, blob2, _) = self.split_path(path1), self.split_path(path2)
        source = self.service_client.get_blob_client(container1, blob1)
        target = self.service_client.get_blob_client(container2, blob2)
        try:
            status = (await target.start_copy_from_url(source.url))["copy_status"]
            while status == "pending":
                await asyncio.sleep(0.5)
                status = (await target.get_blob_properties()).copy.status
        except ResourceNotFoundError as error:
            raise FileNotFoundError(path1) from error
        if status != "success":
            raise OSError(f"the copy of {path1} to {path2} ended with {status}")

    cp_file = sync_wrapper(_cp_file)  # adlfs's own would call adlfs's `_cp_file`


async def _delete(client: Any, names: list[str]) -> None:
    """Delete blobs of a container. Raises the first error that does not mean a missing blob, after all have ended."""
    results = await asyncio.gather(*(client.delete_blob(name) for name in names), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, ResourceNotFoundError):
            raise result


_CREDENTIALS = frozenset(("account_key", "sas_token", "client_id", "client_secret", "tenant_id"))


def _is_directory(blob: Any) -> bool:
    """Return True if a blob is the entry of a directory in a hierarchical namespace."""
    metadata = {name.lower(): value for name, value in (blob.metadata or {}).items()}
    return metadata.get("hdi_isfolder") == "true" or metadata.get("is_directory") == "true"


def _entry(name: str, blob: Any) -> dict[str, Any]:
    return {"name": name, "size": blob.size, "type": "file", "last_modified": blob.last_modified}
