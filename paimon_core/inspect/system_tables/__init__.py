"""System tables: the metadata of a table as rows. `table_registry.py` lists them."""
