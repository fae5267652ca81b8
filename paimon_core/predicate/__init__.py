"""Filters: what they say, what they keep of a batch, what they let a reader skip."""
