"""Explanations of reads: the plan of a read, and what its execution did, as values with a text."""
