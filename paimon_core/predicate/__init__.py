"""Filters: parsing them, evaluating them on rows, and pruning by statistics."""
