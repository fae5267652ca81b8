"""Databases, tables and columns: their definitions in SQL, translated to the engine and back."""
