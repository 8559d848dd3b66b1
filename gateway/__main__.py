"""Run the command line: ``python -m gateway``."""

from gateway.command.cli import main

main()
