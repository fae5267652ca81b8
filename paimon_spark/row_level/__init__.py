"""DELETE, UPDATE and MERGE over DataFrames: one implementation for SQL, `PaimonTable`, classic sessions and Connect."""
