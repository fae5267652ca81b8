"""Procedures in Spark: those of the engine, and those that only a session can do."""
