"""Deletion vectors: the positions of deleted rows of a data file, as values and in index files (format 8.3)."""
