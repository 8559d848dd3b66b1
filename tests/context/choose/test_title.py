"""A passage of a long result is quoted with what says what the result is."""

import pytest

from gateway.context.choose.recall import choose, render
from gateway.context.choose.relevance import relevance
from gateway.context.choose.title import SEARCHED_LINES, title_lines
from gateway.context.count.message_cost import counter
from gateway.context.read import lines
from gateway.context.read.line import MessageLines
from gateway.context.weigh.line_pool import LinePool

COUNT = counter("o200k").text
MENU = ("Skip to main content", "[Accept all] [Reject all]", "Home", "News", "Jobs", "Log in | Register")
PAGE_TITLE = "Heat pumps in old houses: what ten owners paid"
PAGE = "\n".join(
    [
        *MENU,
        PAGE_TITLE,
        "By Fergus Tillotson, 24 January",
        "Last spring the council of Skelby asked its readers for bills, and ten owners of houses built before the war answered at once.",
        "Their figures differ more than anybody had expected: the cheapest heat pump was paid with a used van, the dearest needed new floors.",
        "Nobody regrets it, although two of them heat with wood in the coldest weeks and one keeps a boiler in the shed, just in case.",
        "The installer in Orrery Street asks 40 pounds for a visit.",
        "An old house loses much through its windows, so ask for a sum of what leaves each room before anything is bought.",
        "What the owners would do again, they say, is to begin in summer, when engineers have time and no one freezes.",
    ]
)
MAIL = "\n".join(
    [
        "Message-ID: m77",
        "From: Ida Quill <ida@quill.example>",
        "Date: 3 May 2025",
        "Subject: The gap by the gate",
        "Hello Tom, I walked along the whole length with the dog this morning, and it is worse than we thought after the storm.",
        "Three posts lean, the wire is torn near the oak, and something has dug below it, a badger as I would say from the prints.",
        "The heron pond needs no fence.",
        "Could you bring the long hammer on Saturday, and ask your brother whether he still has the roll of wire from last year?",
        "I would start at ten, as the baker is closed before and nobody works well without rolls.",
    ]
)


def pool_of(*results: str, tool: str = "fetch") -> LinePool:
    return LinePool(
        MessageLines(index, "tool", lines.read({"role": "tool", "content": text}), tool=tool)
        for index, text in enumerate(results)
    )


APART = ["The kettle is on."] * 6
"""Results between two others: those beside each other are about one thing."""


def titles(pool: LinePool, message: int) -> list[str]:
    return [pool.lines[at].text for at in sorted(title_lines(pool, message))]


def quoted(pool: LinePool, question: str, tokens: int) -> str:
    return render(pool, choose(pool, relevance(pool, question), tokens, COUNT, ()))


def test_the_title_of_a_page_is_told_from_its_menu() -> None:
    assert titles(pool_of(PAGE, MAIL), 0) == [PAGE_TITLE]


def test_the_title_of_a_mail_is_its_header() -> None:
    assert titles(pool_of(PAGE, MAIL), 1) == MAIL.split("\n")[:4]


@pytest.mark.parametrize(
    "text", ["The gate is open.", '{"title": "Fence", "rows": [' + ", ".join(f'{{"n": {n}}}' for n in range(90)) + "]}"]
)
def test_short_results_and_records_have_no_title(text: str) -> None:
    assert titles(pool_of(text), 0) == []


def test_of_a_result_that_is_all_rows_of_a_header_few_are_its_header() -> None:
    assert 1 < len(titles(pool_of("\n".join(f"Row-{n}: value {n}" for n in range(5_000))), 0)) <= SEARCHED_LINES


def test_what_people_say_has_no_title() -> None:
    assert titles(pool_of(PAGE, tool=""), 0) == []


def test_a_passage_is_quoted_with_the_title_of_its_page() -> None:
    text = quoted(pool_of(PAGE, *APART, MAIL), "What does the installer in Orrery Street ask for a visit?", 140)

    assert "40 pounds" in text
    assert text.count(PAGE_TITLE) == 1


def test_a_passage_is_quoted_with_the_header_of_its_mail() -> None:
    text = quoted(pool_of(PAGE, *APART, MAIL), "Who wrote about the heron pond?", 200)

    assert "heron pond" in text
    assert text.count("From: Ida Quill") == 1


@pytest.mark.parametrize("tokens", [60, 90, 120, 200, 400, 900])
def test_quotes_with_titles_fit_their_tokens(tokens: int) -> None:
    assert COUNT(quoted(pool_of(PAGE, MAIL, PAGE), "Which owner paid for the heat pump?", tokens)) <= tokens
