"""SQL writes: the rows of a statement become one commit."""
