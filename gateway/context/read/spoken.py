"""What is said in a message, without what an application or a player writes around it.

- The speaker, where several people write to one assistant: ``[Ana 09:14] @Bot``, ``Ana (@ana):``, ``**Ana**:``.
- The time, in a row of its own: ``[Sun 12 Jan, 23:41]``.
- What a player does: ``*shrugs*``.
"""

import re
from typing import Final

_NAME: Final = r"[^\W\d_a-zà-ÿ][\w.'’-]{0,30}(?: [^\W\d_a-zà-ÿ][\w.'’-]{0,30}){0,2}"
_SPEAKER: Final = re.compile(
    rf"^[ \t]{{0,4}}(?:\[[^\]\n\d]{{0,40}}\d[^\]\n]{{0,40}}\]:?[ \t]*\n"
    rf"|(?:\[[^\]\n]{{1,60}}\]:?|\*\*{_NAME}(?::\*\*|\*\*:?)|<{_NAME}>:?|(?:\d{{1,2}}:\d\d(?::\d\d)? )?{_NAME}(?: \([^()\n]{{1,40}}\))?:)[ \t]+)",
    re.M,
)
"""A time in a row of its own; or, at the beginning of a row, the name of a speaker in brackets, in bold print, or before a colon."""
_DAY: Final = re.compile(r"^-{3,10}[^-\n]{1,60}-{3,10}$", re.M)
"""A row between two days."""
_MENTION: Final = re.compile(r"(?<![\w@])@[\w-]{1,40}[,:]?[ \t]*")
_ACTION: Final = re.compile(r"(?:^|(?<=[.!?…\"”’)»*] ))\*(?![\s*])[^*\n]{1,300}(?<!\s)\*(?![\w*])", re.M)
"""What a player does, at the beginning of a row or behind a sentence. Inside a sentence the same marks stress a word."""
_WORD: Final = re.compile(r"\w")


def spoken(text: str) -> str:
    """Return what is said in a message; all of it if nothing else is there."""
    said = _DAY.sub("", _SPEAKER.sub("", text)) if any([mark in text for mark in (":", "[", ">", "---")]) else text
    if "@" in said:
        said = _MENTION.sub("", said)
    if said.count("*") > 1:
        said = _ACTION.sub("", said)
    return said.strip() if _WORD.search(said) else text
