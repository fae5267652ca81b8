"""Schema changes that the rows of a table allow."""

from collections.abc import Sequence

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.errors import InvalidInputError
from paimon_core.options.merge import DELETION_VECTORS_ENABLED
from paimon_core.options.option import Options
from paimon_core.schema.change import RemoveOption, SchemaChange, SetOption
from paimon_core.schema.schemas import Changes
from paimon_core.store.file_store import FileStore


def alter(store: FileStore, changes: Changes) -> FileStore:
    """Apply schema changes, all or none, and return the table with its new schema.

    Raises as `Schemas.apply`, and InvalidInputError for a change that turns ``deletion-vectors.enabled`` off while the
    newest snapshot has deletion vectors: readers of every engine would then show their rows again.
    """

    def checked(made: Sequence[SchemaChange]) -> Sequence[SchemaChange]:
        if any(_turns_vectors_off(change) for change in made):
            _check_no_vectors(store)
        return made

    # A function that returns no change publishes nothing, but an empty list publishes a version.
    if callable(changes):
        return store.alter(lambda schema: checked(changes(schema)))
    return store.alter(checked(changes))


def _turns_vectors_off(change: SchemaChange) -> bool:
    """Return True if a change turns ``deletion-vectors.enabled`` off, or leaves it off."""
    if isinstance(change, RemoveOption):
        return change.key == DELETION_VECTORS_ENABLED.key
    if not isinstance(change, SetOption) or change.key != DELETION_VECTORS_ENABLED.key:
        return False
    return not Options({change.key: change.value}).value(DELETION_VECTORS_ENABLED)


def _check_no_vectors(store: FileStore) -> None:
    snapshot = store.snapshots.latest()
    ranges = [r for entry in vector_entries(store, snapshot) for r in entry.deletion_ranges or ()]
    if snapshot is None or not ranges:
        return
    raise InvalidInputError(
        f"option {DELETION_VECTORS_ENABLED.key!r} cannot be turned off: snapshot {snapshot.id} of {store.root} has "
        f"deletion vectors (data files: {len(ranges)}), and without the option their rows would return. First rewrite "
        "the files without the deleted rows, with compact(full=True) or CALL sys.compact"
    )
