"""Statements of SQL: a parser for statements that only Paimon has, procedures, and DELETE, UPDATE and MERGE."""
