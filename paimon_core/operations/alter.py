"""Schema changes that the rows of a table allow."""

from collections.abc import Sequence

from paimon_core.errors import InvalidInputError
from paimon_core.manifest.index_entry import DELETION_VECTORS
from paimon_core.options.merge import DELETION_VECTORS_ENABLED
from paimon_core.options.option import Options
from paimon_core.schema.change import RemoveOption, SchemaChange, SetOption
from paimon_core.schema.schemas import Changes
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.file_store import FileStore


def alter(store: FileStore, changes: Changes) -> FileStore:
    """Apply schema changes, all or none, and return the table with its new schema.

    Raises as `Schemas.apply`, and InvalidInputError for a change that turns ``deletion-vectors.enabled`` off while the
    newest snapshot has deletion vectors: readers of every engine would then show their rows again. A commit of vectors
    at the same time either sees the new schema (`commit.schema_check.keep_vectors_on`), or is seen here, and the option
    is turned on again.
    """
    turned_off = False

    def checked(schema: TableSchema) -> Sequence[SchemaChange]:
        nonlocal turned_off
        made = changes(schema) if callable(changes) else changes
        turned_off = any(map(_turns_vectors_off, made)) and schema.options.value(DELETION_VECTORS_ENABLED)
        if turned_off:
            _check_no_vectors(store)
        return made

    # A function that returns no change publishes nothing, but an empty list publishes a version.
    altered = store.alter(checked if callable(changes) or changes else changes)
    if turned_off:
        try:
            _check_no_vectors(store)
        except Exception:  # also if the store does not answer
            store.alter([SetOption(DELETION_VECTORS_ENABLED.key, "true")])
            raise
    return altered


def _turns_vectors_off(change: SchemaChange) -> bool:
    """Return True if a change turns ``deletion-vectors.enabled`` off, or leaves it off."""
    if isinstance(change, RemoveOption):
        return change.key == DELETION_VECTORS_ENABLED.key
    if not isinstance(change, SetOption) or change.key != DELETION_VECTORS_ENABLED.key:
        return False
    return not Options({change.key: change.value}).value(DELETION_VECTORS_ENABLED)


def _check_no_vectors(store: FileStore) -> None:
    snapshot = store.snapshots.latest()
    if snapshot is None or snapshot.index_manifest is None:
        return
    entries = store.manifests.read_index(snapshot.index_manifest)
    ranges = [
        found for entry in entries if entry.index_type == DELETION_VECTORS for found in entry.deletion_ranges or ()
    ]
    if not ranges:
        return
    raise InvalidInputError(
        f"option {DELETION_VECTORS_ENABLED.key!r} cannot be turned off: snapshot {snapshot.id} of {store.root} has "
        f"deletion vectors (data files: {len(ranges)}), and without the option their rows would return. First rewrite "
        "the files without the deleted rows, with compact(full=True) or CALL sys.compact"
    )
