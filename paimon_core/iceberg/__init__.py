"""Iceberg metadata in addition to the snapshots of a table, so that Iceberg readers can read its data files."""
