"""Verify and repair a table: follow every reference and, in deep mode, read every row."""
