"""Advice: why reads of a table are slow or its storage grows, with a measure of each, and the command to run."""
