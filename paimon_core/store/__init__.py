"""Storage, path, schema and options of a table as one value, and the layout of its directories."""
