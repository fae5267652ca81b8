"""The timeline of a table: snapshots, tags, branches, and the moment a reader means."""
