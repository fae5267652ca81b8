"""Turn commit messages into a snapshot, and publish it with one create-if-absent."""
