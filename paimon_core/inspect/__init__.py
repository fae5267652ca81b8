"""Inspection without changes: advice, read plans, verification, system tables and the HTML summary of a table."""
