"""Column types: values, text forms, Arrow types and conversions."""
