"""Table schemas: what a user wishes, what is stored, how it changes, how old files fit, and what is supported."""
