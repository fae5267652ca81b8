"""Run the command as ``python -m paimon_command``."""

from paimon_command.main import main

main()
