"""Procedures: the actions of `CALL`, one module for each family, and the registry of all of them."""
