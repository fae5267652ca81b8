"""Import data without rewriting it: files of other tools, and copies of tables."""
