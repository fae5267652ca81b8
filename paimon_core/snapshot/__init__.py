"""The timeline of a table: snapshots, tags, branches, changelogs, consumers and time travel."""
