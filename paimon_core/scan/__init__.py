"""Snapshot to splits: which files a read must touch, and how they are dealt out."""
