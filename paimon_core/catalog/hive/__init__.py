"""Databases and tables by the names in a Hive metastore."""
