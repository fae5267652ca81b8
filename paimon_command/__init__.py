"""The command ``paimon-spark``: tables on a terminal. It starts Spark only for ``--spark``.

A subcommand is a function in a module of `paimon_command.commands` and a line of `paimon_command.command_registry`.
"""
