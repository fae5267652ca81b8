"""Iceberg metadata beside the snapshots of a table, so that readers of Iceberg tables read its data files."""
