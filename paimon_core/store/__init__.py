"""A table's place as one value: where everything lies and how to get at it."""
