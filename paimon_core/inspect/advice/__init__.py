"""Advice: why reads of a table are slow or its storage grows, with a measure and the command to run."""
