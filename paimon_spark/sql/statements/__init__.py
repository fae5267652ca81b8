"""SQL statements: a parser for Paimon-specific statements, procedures, and DELETE, UPDATE and MERGE."""
