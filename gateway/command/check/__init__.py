"""`turnfold check FILE`: the mistakes in a configuration file, and everything that this machine lacks for it.

`machine` checks this machine, `upstreams` asks the upstreams, `one_model` shows the settings of a model.
"""

from collections.abc import Mapping
from pathlib import Path

from gateway.command.check import machine
from gateway.config import load
from gateway.config.report import counted, report


def check(file: Path, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the output of `turnfold check`, and the problems: those of the text, else those of this machine."""
    text, found = report(file, environ)
    if found:
        return text, found
    settings = load(file, environ)
    found = tuple(
        f"{file}: {problem}"
        for problem in (
            *machine.problems(settings),
            *(defect.reason for defect in machine.warnings(settings)),
            *machine.unreadable(settings),
        )
    )
    if found:
        return "\n".join((*found, counted(file, found))), found
    # A gateway that runs with this file has its ports, and its store may be elsewhere: these are not mistakes.
    notes = (
        *machine.endpoints(settings),
        *machine.keyless(settings),
        *machine.unreachable_store(settings),
        *machine.busy_ports(settings),
    )
    return "\n".join((text, *(f"Note: {note}" for note in notes))), ()
