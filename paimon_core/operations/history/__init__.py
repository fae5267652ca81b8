"""The history of a table: tags, branches, consumers, expiry, rollback, and orphan files."""
