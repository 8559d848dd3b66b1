"""Run the command line: ``python -m gateway``."""

from gateway.cli import main

main()
