"""Table schemas: creation, storage, changes, evolution of old files, and the features that are refused."""
