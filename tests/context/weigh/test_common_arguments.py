"""Arguments that most calls of a tool have are shown once."""

from typing import Any

from gateway.context.choose.rows import render
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.common_arguments import without_arguments
from gateway.context.weigh.line_pool import LinePool
from tests.context.messages import call


def rendered(*calls: dict[str, Any]) -> list[str]:
    found = LinePool([MessageLines(n, "assistant", lines.read(each)) for n, each in enumerate(calls)])
    return render(found, range(len(found.lines))).split("\n")


def test_an_argument_that_half_of_the_calls_have_is_shown_with_the_first_of_them() -> None:
    """Codex sets limits for its commands, and none for its patches."""
    commands = [call("c", "run", cmd=f"step {n}", limit="6000") for n in range(4)]
    patches = [call("c", "run", cmd=f"patch {n}") for n in range(4)]

    shown = rendered(*commands, *patches)

    assert [text for text in shown if "limit" in text] == ["run(cmd=step 0, limit=6000)"]
    assert sum("limit" in text for text in rendered(*commands, *patches, *patches)) == len(commands)


def test_only_the_comma_of_the_first_argument_is_left_out_with_it() -> None:
    """A piece of code in another argument may end in a parenthesis."""
    text = "edit(all=false, old=def rate(, new=def rates()"

    assert without_arguments(text, frozenset(["all=false"])) == "edit(old=def rate(, new=def rates()"
