"""Procedures for CALL in Spark: the engine's procedures, and procedures that need a Spark session."""
