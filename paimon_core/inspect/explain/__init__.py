"""Explanations of reads: the plan of a read and the measurements of its execution."""
