"""Procedures: the actions of ``CALL`` and of ``paimon-spark call``, one module for each family, and their registry."""
