"""Whole partitions: expiry, idle ones, and marks of partitions that are done."""
