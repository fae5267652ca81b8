"""`Store`: the properties of a kind of store, which follow from the scheme of a URL."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paimon_core.fileio.remote import PutIfAbsent, RemoteStorage, open_filesystem
from paimon_core.fileio.storage import Storage


def _as_they_are(options: Mapping[str, Any]) -> dict[str, Any]:
    return dict(options)


def _is_proven(arguments: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A kind of store. The defaults describe a store that fsspec opens, with directories and without commits."""

    title: str
    """The name in messages."""
    schemes: tuple[str, ...]
    """The URL schemes, in lower case; fsspec knows the first scheme."""
    same_files: bool = False
    """True if all schemes locate the same files, so that ``s3a://b/f`` is ``s3://b/f``."""
    options: tuple[str, ...] = ()
    """The prefixes of the store's options, in lower case, such as ``s3.``: connectors pass these options on."""
    own_options: bool = False
    """True if `arguments` translates the options with these prefixes: other stores do not get them."""
    arguments: Callable[[Mapping[str, Any]], dict[str, Any]] = _as_they_are
    """A function from storage options to arguments of fsspec; it raises InvalidInputError for an unknown option."""
    put_if_absent: PutIfAbsent | None = None
    """A function that creates an object only if its key is free. `None`: none is known, so commits are refused."""
    is_proven: Callable[[Mapping[str, Any]], bool] = _is_proven
    """A function: True if `put_if_absent` is safe with these arguments; otherwise the first commit tests the store."""
    one_client: bool = False
    """True if one client serves every bucket or host."""
    flat: bool = False
    """True if a directory is only a prefix of names."""
    high_latency: bool = False
    """True if each request waits for a network, so that several files should be written at the same time."""
    object_store: bool = False
    """True if a path names a bucket with separate credentials; a table may name files there (decision 15)."""
    renames_atomically: bool = False
    """True if renaming a directory is one step."""
    keeps_fixed: bool = False
    """True if writes can leave a missing directory missing; see `FileIO.inside`."""
    package: str | None = None
    """The package that pip installs for the client, with its extra. `None`: the fsspec package of the scheme."""
    client: str | None = None
    """The file system's class as ``module:name``, imported on first use. `None`: fsspec's class of the scheme."""

    @property
    def commits(self) -> bool:
        """True if snapshots can be published safely."""
        return self.put_if_absent is not None

    def client_key(self, path: str) -> str:
        """Return the same name for all paths that one client serves."""
        return self.schemes[0] if self.one_client else "/".join(path.split("/", 3)[:3])

    def open(self, path: str, options: Mapping[str, Any], fixed: Sequence[str], no_commit: str | None) -> Storage:
        """Connect to the store of a path.

        Args:
            path: a URL on the store.
            options: the storage options, without the specific options of other stores.
            fixed: directories that writes must not create; see `FileIO.inside`. Only if `keeps_fixed`.
            no_commit: the reason why commits are refused; `None`: commits are possible.

        Raises InvalidInputError for an unknown option, MissingDependencyError if the client is not installed,
        UnsupportedError if fsspec does not know the scheme.
        """
        arguments = self.arguments(options)
        url = f"{self.schemes[0]}://" if self.one_client else path
        filesystem = open_filesystem(url, arguments, self.package, self.client)
        proven = self.is_proven(arguments)
        return RemoteStorage(filesystem, no_commit, proven, flat=self.flat, put_if_absent=self.put_if_absent)
