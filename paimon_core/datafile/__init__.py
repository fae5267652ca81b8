"""Data files: reading with projection and schema evolution, writing with statistics."""
