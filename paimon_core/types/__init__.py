"""Column types: what they are, how they are spelled, how they look in Arrow and how one becomes another."""
