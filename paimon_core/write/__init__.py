"""Batches to commit messages: align, route, buffer, sort, fold, write."""
