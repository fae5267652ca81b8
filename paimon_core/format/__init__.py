"""File formats: bytes in, Arrow batches out, and back. `FORMATS` is the registry by name."""
