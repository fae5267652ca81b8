"""All checks, in the order of docs/advice.md. A new one is a line of `CHECKS`."""

from paimon_core.advice import data_files, layout, merging, settings, timeline
from paimon_core.advice.check import Check

CHECKS = (
    Check("compaction-backlog", merging.backlog),
    Check("hidden-rows", merging.hidden_rows),
    Check("merging-reads", merging.merging_reads),
    Check("delete-rows", merging.delete_rows),
    Check("full-compaction-overdue", merging.overdue),
    Check("small-files", data_files.small_files),
    Check("deletion-vectors", data_files.deletion_vectors),
    Check("missing-file-index", data_files.missing_indexes),
    Check("postponed-rows", layout.postponed_rows),
    Check("unfinished-rescale", layout.unfinished_rescale),
    Check("bucket-number", layout.bucket_number),
    Check("skewed-buckets", layout.skewed_buckets),
    Check("full-dynamic-buckets", layout.full_dynamic_buckets),
    Check("tiny-partitions", layout.tiny_partitions),
    Check("due-snapshots", timeline.due_snapshots),
    Check("waiting-consumer", timeline.waiting_consumers),
    Check("ageless-tag", timeline.ageless_tags),
    Check("many-manifests", timeline.many_manifests),
    Check("old-statistics", timeline.old_statistics),
    Check("never-compacted", settings.never_compacted),
    Check("no-changelog", settings.no_changelog),
    Check("rewriting-deletes", settings.rewriting_deletes),
    Check("useless-option", settings.useless_options),
)

KINDS = tuple(check.kind for check in CHECKS)
"""The kinds of advice; docs/advice.md says what each means."""
