"""The statements that only Paimon has: a module for each family."""
