"""Recorded conversations and bills. They are not in the repository: the variable ``TURNFOLD_DATA`` names their folder."""

import os
from pathlib import Path
from typing import Final

FOLDER: Final = Path(os.environ.get("TURNFOLD_DATA", Path(__file__).resolve().parents[1].parent / "shared"))
CONVERSATIONS: Final = FOLDER / "conversations"
BILLS: Final = FOLDER / "billed" / "dev.jsonl"


def present(path: Path) -> Path:
    """Return the path of a recorded file. Raises SystemExit, which ends the program with one line, if it is missing."""
    if not path.exists():
        raise SystemExit(f"There is no {path}. Set TURNFOLD_DATA to the folder of the recorded sets (docs/recall.md).")
    return path
