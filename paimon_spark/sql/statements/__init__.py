"""Statements of SQL: the parser of those that only Paimon has, procedures, and DELETE, UPDATE and MERGE."""
