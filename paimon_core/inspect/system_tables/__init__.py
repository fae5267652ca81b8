"""System tables: what a table knows of itself, as rows. `table_registry.py` lists them."""
