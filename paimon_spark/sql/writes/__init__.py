"""SQL writes: the rows of a statement are written in one commit."""
