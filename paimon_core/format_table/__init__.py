"""Format tables: directories of CSV, JSON, Parquet, ORC or text files that a catalog lists as tables, without snapshots"""
