"""Row changes: deletes, column updates, and new row ids."""
