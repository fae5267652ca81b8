"""Commits: turn messages of writers into snapshots, exactly once, concurrently with other committers."""

from collections.abc import Mapping, Sequence

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.commit_messages import commit_compactions, commit_messages
from paimon_core.commit.overwrite import Spec
from paimon_core.commit.overwrite_partitions import overwrite_partitions
from paimon_core.commit.publisher import Publisher
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.file_store import FileStore


class TableCommit:
    """A committer of one user to one table.

    ``user``: the commit user; `None`: a new name. The user and the identifier of a commit make a repeated commit
    recognisable. A caller that may repeat a commit after a crash passes both, and gets the snapshot of its first run.

    Examples:
        >>> import pyarrow as pa
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> with table.writer() as writer:
        ...     writer.write(pa.table({"id": [3], "name": ["cup"]}))
        ...     messages = writer.prepare_commit()
        >>> table.committer("nightly-load").commit(messages, identifier=1).id
        3
        >>> table.committer("nightly-load").commit(messages, identifier=1).id  # repeated: the same snapshot
        3
    """

    def __init__(self, store: FileStore, user: str | None = None) -> None:
        self.publisher = Publisher(store, user)
        self.user = self.publisher.user

    def commit(
        self,
        messages: Sequence[CommitMessage],
        identifier: int | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
        started_from: StartedFrom | None = None,
    ) -> Snapshot | None:
        """Publish the messages of writers. Return the last snapshot published. ``None``: nothing to commit.

        Args:
            messages: the messages of all writers of the job.
            identifier: the number of this commit, unique for its user. A commit that was published before is returned,
                not repeated. `None`: a batch commit, which has no number.
            properties: texts to store in the snapshot.
            watermark: epoch milliseconds to store in the snapshot.
            started_from: the snapshot that the writers read (`TableWrite.started_from`), with guards on what other
                commits must not have changed since; `None`: the writers read no snapshot.

        Raises CommitConflictError (nothing changed), TableChangedError (the same, and the table must be opened again)
        or CommitUnknownError (files kept: check before retrying). See `commit_messages` for the published snapshots.
        """
        identity = self.publisher.identity(identifier, properties, watermark)
        return commit_messages(self.publisher, messages, identity, started_from).snapshot

    def overwrite(
        self,
        messages: Sequence[CommitMessage],
        partition: Spec | str | None = None,
        identifier: int | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        watermark: int | None = None,
    ) -> Snapshot | None:
        """Replace the whole table, one partition, or the partitions of the messages. Return the last snapshot.

        Args:
            messages: the messages of all writers of the job; their files replace the rows.
            partition: a {column: value}, which may leave partition columns out; ``"dynamic"``: the partitions that the
                messages write to; ``None``: the whole table.
            identifier: as in `commit`.
            properties: as in `commit`.
            watermark: as in `commit`.

        Raises as `overwrite_partitions` does, which defines the rows that are replaced.
        """
        identity = self.publisher.identity(identifier, properties, watermark)
        return overwrite_partitions(self.publisher, messages, partition, identity).snapshot

    def compact(self, messages: Sequence[CommitMessage]) -> tuple[Snapshot | None, list[CommitMessage]]:
        """Publish compactions as one snapshot. Return it, and the messages that were rejected.

        See `commit_compactions`.
        """
        return commit_compactions(self.publisher, messages)

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files written for the messages. REQUIRES: they were not committed, and will not be."""
        delete_written_files(self.publisher.store, messages)
