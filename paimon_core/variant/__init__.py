"""The binary encoding of variants, and variants shredded over several Parquet columns (format 7.4)."""
