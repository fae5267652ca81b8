"""Upkeep of tables: plans of picklable tasks, run anywhere, committed once."""
