"""Data that moves in without being rewritten: files of other tools, and copies of tables."""
