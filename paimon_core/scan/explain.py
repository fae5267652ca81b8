"""A plan as text: the files that a read would open, and the number of files that each pruning step left out."""

from paimon_core.errors import hide_secrets
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.row_ranges import group_by_row_range
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import Plan, TableScan
from paimon_core.store.file_store import FileStore


def explain(scan: TableScan, plan: Plan) -> str:
    """Return the plan as text, one line per split, runs newest first within a section."""
    store = scan.store
    if plan.snapshot is None:
        return f"{hide_secrets(store.root)}: no snapshot, nothing to read"
    lines = [
        f"{hide_secrets(store.root)}: snapshot {plan.snapshot.id}, schema {store.schema.id}",
        f"filter: {scan.predicate if scan.predicate is not None else 'none'}",
        f"manifests: {plan.manifests_read} of {plan.manifests} read, the others hold no matching partition",
        f"files: {plan.files} of {plan.files_in_partitions} in matching partitions, "
        f"the others cannot match by bucket, statistics or index ({plan.files_skipped_by_index})",
        f"splits: {len(plan.splits)}, {sum(s.size for s in plan.splits)} bytes, "
        f"{sum(s.row_count for s in plan.splits)} rows stored",
    ]
    return "\n".join([*lines, *(f"  {_split(store, s)}" for s in plan.splits)])


def _split(store: FileStore, split: DataSplit) -> str:
    bucket = f"{store.partition_path(split.partition) or '(no partition)'} bucket {split.bucket}"
    if split.raw_convertible:
        deleted = f", {len(split.vectors)} with deleted rows" if split.vectors else ""
        part = "" if split.part is None else f", row groups at rows {split.part.start} to {split.part.stop - 1}"
        levels = sorted({f.level for f in split.files})
        return f"{bucket}: {len(split.files)} files raw, levels {levels}{part}{deleted}"
    if not store.schema.primary_keys:
        ranges = len(group_by_row_range(split.files))
        return f"{bucket}: {len(split.files)} files with columns of {ranges} ranges of rows"
    described = [
        "+".join(f"L{run.level}x{len(run.files)}" for run in runs)
        for runs in sections(split.files, store.schema.key_arrow)
    ]
    return f"{bucket}: merge, sections [{'; '.join(described)}]"
