"""The procedures that ``CALL`` and ``paimon-spark call`` run, one module for each family, and their registry."""
