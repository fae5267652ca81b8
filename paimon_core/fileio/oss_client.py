"""The file system of Alibaba OSS for fsspec, on the client ``oss2``. Only `oss.OSS` imports this module, on first use.

Differences from ossfs, the file system of fsspec's registry: an upload in parts becomes visible when it is complete.
Listings never come from a cache, and never hide a refused access. A range ends before its end. An object can be created
only if its key is free. Requests are repeated after connection errors and after answers 429 and 5xx.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from typing import Any, Final, TypeVar

import oss2
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from oss2 import credentials, exceptions, models
from requests.exceptions import RequestException

T = TypeVar("T")

ATTEMPTS: Final = 6
"""The number of times that a request is sent before its error is raised."""
TIMEOUTS: Final = (10, 60)
"""Seconds to wait for a connection, and for the next bytes of an answer."""
_PAGE: Final = 1000  # names of a listing, and keys of a deletion
_COPIED_AT_ONCE = 1 << 30  # bytes: larger objects are copied in parts
_PART = 512 << 20  # bytes of a part of a copy
_CHECKSUMS: Final = find_spec("crcmod._crcfunext") is not None  # in plain Python, a megabyte takes a second
_MISSING = ("NoSuchKey", "NoSuchBucket", "NotFound")


class OssFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Objects of OSS as files.

    Args:
        endpoint: the address of OSS, with or without ``https://``.
        key: the access key; `None`: the environment variables OSS_ACCESS_KEY_ID, OSS_ACCESS_KEY_SECRET and
            OSS_SESSION_TOKEN, or anonymous access without them.
        secret: the secret of the key.
        token: the security token of temporary credentials.
        region: the region; with a region, requests are signed by version 4, otherwise by version 1.
        ram_role_url: the address of the ECS metadata service that gives the credentials of a role.
        path_style: True if the bucket is a part of the path.
        cname: True if the endpoint is a domain of the bucket.
        headers: headers of every request that creates an object, such as the headers of encryption.
    """

    protocol = "oss"

    def __init__(  # noqa: PLR0913
        self,
        endpoint: str,
        key: str | None = None,
        secret: str | None = None,
        token: str | None = None,
        region: str | None = None,
        ram_role_url: str | None = None,
        path_style: bool = False,
        cname: bool = False,
        headers: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._endpoint, self._region = endpoint, region
        self._addressing = {"is_path_style": path_style, "is_cname": cname}
        self._headers = dict(headers or {})
        self._auth = _auth(key, secret, token, region, ram_role_url)
        self._session = oss2.Session()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("oss://").strip("/")

    @staticmethod
    def _get_kwargs_from_urls(urlpath: str) -> dict[str, Any]:
        return {}

    def info(self, path: str, **arguments: Any) -> dict[str, Any]:
        """Return the entry of a file or directory. Raises FileNotFoundError."""
        bucket, key = _split(path)
        if key:
            try:
                found = self._call(path, lambda: self._bucket(bucket).head_object(key))
                return _entry(f"{bucket}/{key}", int(found.content_length), found.last_modified)
            except FileNotFoundError:
                pass
        prefix = f"{key}/" if key else ""
        page = self._call(path, lambda: self._bucket(bucket).list_objects_v2(prefix, max_keys=1))
        if key and not page.object_list:
            raise FileNotFoundError(path)
        return {"name": f"{bucket}/{key}".rstrip("/"), "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **arguments: Any) -> list[Any]:
        """Return the entries of a directory. Raises FileNotFoundError for a missing directory."""
        bucket, key = _split(path)
        prefix = f"{key}/" if key else ""
        found = list(self._list(path, bucket, prefix, "/"))
        if not found and key:
            found = [entry for entry in [self.info(path)] if entry["type"] == "file"]
        return found if detail else [entry["name"] for entry in found]

    def find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **arguments: Any) -> list[str]:
        """Return the names of all objects below a directory, sorted."""
        bucket, key = _split(path)
        return [entry["name"] for entry in self._list(path, bucket, f"{key}/" if key else "", "")]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **arguments: Any) -> bytes:
        """Return the bytes ``[start, end)`` of an object; without bounds, all bytes."""
        bucket, key = _split(path)
        if end is not None and end <= (start or 0):
            return b""
        bounds = None if start is None and end is None else (start or 0, None if end is None else end - 1)
        headers = {"x-oss-range-behavior": "standard"}
        return self._call(
            path, lambda: _whole(self._bucket(bucket).get_object(key, byte_range=bounds, headers=headers))
        )

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **arguments: Any) -> None:
        """Create or replace an object in one request. ``mode``: ``create`` raises FileExistsError for a taken key."""
        bucket, key = _split(path)
        forbid = {"x-oss-forbid-overwrite": "true"} if mode == "create" else {}
        self._call(path, lambda: self._bucket(bucket).put_object(key, value, headers={**self._headers, **forbid}))

    def cp_file(self, path1: str, path2: str, **arguments: Any) -> None:
        """Copy an object within OSS; it becomes visible when it is complete."""
        (source, old), (bucket, new) = _split(path1), _split(path2)
        size = int(self.info(path1)["size"])
        if size <= _COPIED_AT_ONCE:
            self._call(path1, lambda: self._bucket(bucket).copy_object(source, old, new, headers=dict(self._headers)))
            return
        with self.upload(path2) as upload:
            for number, start in enumerate(range(0, size, _PART), 1):
                upload.copy(number, source, old, (start, min(start + _PART, size) - 1))

    def rm_file(self, path: str) -> None:
        """Delete an object, if it exists."""
        bucket, key = _split(path)
        self._call(path, lambda: self._bucket(bucket).delete_object(key))

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Delete an object, or with ``recursive`` all objects below a directory as well."""
        bucket, key = _split(path)
        names = [name.partition("/")[2] for name in self.find(path)] if recursive else []
        keys = [*names, *([key] if key else [])]
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            self._call(path, lambda page=page: self._bucket(bucket).batch_delete_objects(page))  # type: ignore[misc]

    def invalidate_cache(self, path: str | None = None) -> None:
        """Do nothing: there is no cache."""

    @contextmanager
    def upload(self, path: str) -> Iterator["_Upload"]:
        """Open an upload in parts, which becomes an object when the block ends, and is discarded by an error."""
        upload = _Upload(self, path)
        try:
            yield upload
        except BaseException:
            upload.discard()
            raise
        upload.complete()

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **arguments: Any) -> "_OssFile":
        return _OssFile(self, path, mode, block_size or _OssFile.DEFAULT_BLOCK_SIZE, **arguments)

    def _bucket(self, name: str) -> Any:
        return oss2.Bucket(
            self._auth,
            self._endpoint,
            name,
            session=self._session,
            connect_timeout=TIMEOUTS,
            enable_crc=_CHECKSUMS,
            region=self._region,
            app_name="pyspark-paimon",
            **self._addressing,
        )

    def _list(self, path: str, bucket: str, prefix: str, delimiter: str) -> Iterator[dict[str, Any]]:
        """Yield the entries with a prefix, page by page, without the marker object of the directory."""
        token = ""
        while True:
            page = self._call(
                path,
                lambda token=token: self._bucket(bucket).list_objects_v2(  # type: ignore[misc]
                    prefix, delimiter, token, max_keys=_PAGE
                ),
            )
            for name in page.prefix_list:
                yield {"name": f"{bucket}/{name}".rstrip("/"), "size": 0, "type": "directory"}
            for found in page.object_list:
                if found.key != prefix:
                    yield _entry(f"{bucket}/{found.key}", int(found.size), found.last_modified)
            if not page.is_truncated:
                return
            token = page.next_continuation_token

    def _call(self, path: str, request: Callable[[], T]) -> T:
        """Send a request, and repeat it after errors that may pass. Every failure is an OSError."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return request()
            except exceptions.ServerError as error:
                if error.code in _MISSING or error.status == 404:
                    raise FileNotFoundError(path) from error
                if error.code == "FileAlreadyExists":
                    raise FileExistsError(path) from error
                if attempt == ATTEMPTS or not (error.status >= 500 or error.status == 429):
                    kind = PermissionError if error.status == 403 else OSError
                    raise kind(f"OSS refuses the request for {path}: {error.code} {error.message}") from error
            except (exceptions.RequestError, exceptions.InconsistentError, RequestException) as error:
                if attempt == ATTEMPTS:
                    raise OSError(f"OSS does not answer for {path}: {type(error).__name__}") from error
            except exceptions.ClientError as error:
                raise OSError(f"cannot ask OSS for {path}: {error}") from error
            time.sleep(min(0.1 * 2**attempt, 10) * (0.5 + random.random()))
        raise AssertionError


class _Upload:
    """An upload in parts of one object."""

    def __init__(self, filesystem: OssFileSystem, path: str) -> None:
        self._fs, self._path = filesystem, path
        bucket, self._key = _split(path)
        self._bucket = filesystem._bucket(bucket)
        self._parts: list[Any] = []
        self._size = 0
        headers = dict(filesystem._headers)
        begun = filesystem._call(path, lambda: self._bucket.init_multipart_upload(self._key, headers=headers))
        self._id = begun.upload_id

    def put(self, number: int, data: bytes) -> None:
        """Send the bytes of a part."""
        sent = self._fs._call(self._path, lambda: self._bucket.upload_part(self._key, self._id, number, data))
        self._parts.append(models.PartInfo(number, sent.etag, size=len(data), part_crc=sent.crc))
        self._size += len(data)

    def copy(self, number: int, source: str, key: str, bounds: tuple[int, int]) -> None:
        """Let OSS copy a part from the bytes ``bounds``, both included, of an object."""
        sent = self._fs._call(
            self._path, lambda: self._bucket.upload_part_copy(source, key, bounds, self._key, self._id, number)
        )
        self._parts.append(models.PartInfo(number, sent.etag))
        self._size += bounds[1] - bounds[0] + 1

    def complete(self) -> None:
        """Make the object visible."""
        try:
            self._fs._call(self._path, lambda: self._bucket.complete_multipart_upload(self._key, self._id, self._parts))
        except FileNotFoundError:  # an upload is not found either if the answer to its completion was lost
            if self._fs.info(self._path)["size"] != self._size:
                raise

    def discard(self) -> None:
        """Delete the parts."""
        self._fs._call(self._path, lambda: self._bucket.abort_multipart_upload(self._key, self._id))


class _OssFile(AbstractBufferedFile):  # type: ignore[misc]
    """An object that is read by ranges, or written in parts and visible after ``close``."""

    _upload: _Upload | None = None
    _number = 0

    def _initiate_upload(self) -> None:
        """Begin the upload with the first part: an object of a single part needs one request."""

    def _upload_chunk(self, final: bool = False) -> bool:
        data = self.buffer.getvalue()
        if final and self._upload is None:
            self.fs.pipe_file(self.path, data)
            return True
        if self._upload is None:
            self._upload = _Upload(self.fs, self.path)
        if data:
            self._number += 1
            self._upload.put(self._number, data)
        if final:
            self._upload.complete()
        return True

    def discard(self) -> None:
        """Delete what was sent; the object does not appear."""
        if self._upload is not None:
            self._upload.discard()

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self.fs.cat_file(self.path, start, end))


def _auth(key: str | None, secret: str | None, token: str | None, region: str | None, role: str | None) -> Any:
    """Return the signer of the requests."""
    if role is not None:
        provider = credentials.EcsRamRoleCredentialsProvider(role)
    elif key is not None:
        provider = credentials.StaticCredentialsProvider(key, secret or "", token)
    else:
        try:
            provider = credentials.EnvironmentVariableCredentialsProvider()
            provider.get_credentials()
        except exceptions.ClientError:  # the variables are missing
            return oss2.AnonymousAuth()
    return oss2.ProviderAuthV4(provider) if region else oss2.ProviderAuth(provider)


def _whole(answer: Any) -> bytes:
    """Return the body of an answer. Raises InconsistentError if the connection ended in its middle.

    urllib3 before version 2 returns the part that arrived, and oss2 checks bodies only with a compiled crcmod.
    """
    data = bytes(answer.read())
    expected = answer.content_length
    if expected is not None and len(data) != expected and not answer.headers.get("Content-Encoding"):
        raise exceptions.InconsistentError(f"{len(data)} of {expected} bytes arrived", answer.request_id)
    return data


def _split(path: str) -> tuple[str, str]:
    """Return the bucket and the key of a path."""
    bucket, _, key = OssFileSystem._strip_protocol(path).partition("/")
    return bucket, key


def _entry(name: str, size: int, modified: float | None) -> dict[str, Any]:
    found = {"name": name, "size": size, "type": "file"}
    return found if modified is None else {**found, "mtime": datetime.fromtimestamp(modified, timezone.utc)}
