"""Reads by SQL: what Spark asks before it scans a table, and who reads the rows."""
