"""Writes by SQL: rows of a statement that become one commit."""
