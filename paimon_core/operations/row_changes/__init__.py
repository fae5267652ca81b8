"""Changes of rows: deletes, column updates, and new row ids."""
