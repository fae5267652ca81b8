"""Deletion vectors: which rows of a data file are deleted, as values and in index files (format 8.3)."""
