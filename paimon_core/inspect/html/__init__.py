"""The summary of a table: its metadata as values, and as HTML for notebooks and files. It reads no rows."""
