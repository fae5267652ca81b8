"""Compaction and other rewrites that do not change rows."""
