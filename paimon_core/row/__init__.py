"""BinaryRow: the serialised form of partitions, keys and statistics, and the input of bucket hashes."""
