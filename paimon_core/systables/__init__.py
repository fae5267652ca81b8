"""System tables: what a table knows of itself, as rows. `registry.py` lists them."""
