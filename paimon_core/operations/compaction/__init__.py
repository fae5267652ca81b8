"""Compaction and other rewrites that change no row."""
