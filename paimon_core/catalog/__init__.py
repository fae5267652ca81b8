"""Databases and tables in a warehouse."""
