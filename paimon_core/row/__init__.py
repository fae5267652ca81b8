"""BinaryRow: rows as the bytes that partitions, keys, statistics and hashes are made of."""
