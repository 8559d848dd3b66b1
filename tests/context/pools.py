"""A pool of lines from the words of speakers."""

from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool


def pool(*said: tuple[str, str]) -> LinePool:
    """Return the lines of a folded part of (speaker, text); a result is spoken by its call."""
    readings = []
    for index, (speaker, text) in enumerate(said):
        role, tool = (speaker, "") if speaker in ("user", "assistant") else ("tool", speaker)
        readings.append(MessageLines(index, role, lines.read({"role": role, "content": text}), tool))
    return LinePool(readings, next((index for index, (speaker, _) in enumerate(said) if speaker == "user"), -1))
