"""Commit messages to a snapshot, published by one create-if-absent."""
