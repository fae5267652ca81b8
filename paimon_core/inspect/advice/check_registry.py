"""All checks, in the order of docs/guides/advice.md. To add a check, add a line to `CHECKS`."""

from paimon_core.inspect.advice import data_file_checks, history_checks, layout_checks, merging, settings
from paimon_core.inspect.advice.check import Check

CHECKS = (
    Check("compaction-backlog", merging.backlog),
    Check("hidden-rows", merging.hidden_rows),
    Check("merging-reads", merging.merging_reads),
    Check("delete-rows", merging.delete_rows),
    Check("full-compaction-overdue", merging.overdue),
    Check("small-files", data_file_checks.small_files),
    Check("deletion-vectors", data_file_checks.deletion_vectors),
    Check("missing-file-index", data_file_checks.missing_indexes),
    Check("postponed-rows", layout_checks.postponed_rows),
    Check("unfinished-rescale", layout_checks.unfinished_rescale),
    Check("bucket-number", layout_checks.bucket_number),
    Check("skewed-buckets", layout_checks.skewed_buckets),
    Check("full-dynamic-buckets", layout_checks.full_dynamic_buckets),
    Check("tiny-partitions", layout_checks.tiny_partitions),
    Check("due-snapshots", history_checks.due_snapshots),
    Check("waiting-consumer", history_checks.waiting_consumers),
    Check("ageless-tag", history_checks.ageless_tags),
    Check("many-manifests", history_checks.many_manifests),
    Check("old-statistics", history_checks.old_statistics),
    Check("never-compacted", settings.never_compacted),
    Check("no-changelog", settings.no_changelog),
    Check("rewriting-deletes", settings.rewriting_deletes),
    Check("useless-option", settings.useless_options),
)

KINDS = tuple(check.kind for check in CHECKS)
"""The kinds of advice; docs/guides/advice.md says what each means."""
