"""The verification of a table: every reference followed, and in deep mode every row read."""
