"""The page of a table: its metadata as values, and as one HTML text for notebooks and files. No row is read."""
