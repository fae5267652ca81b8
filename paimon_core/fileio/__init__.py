"""Input and output of all bytes: `FileIO`, with one set of methods for local disks and fsspec stores."""
