"""Standing instructions and changed values, planted in real conversations: what a user says once and expects to hold."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# One sentence each, as people write them: orders, wishes, facts about themselves, in several languages, with and without
# the words one would search for.
INSTRUCTIONS = (
    "Never book anything that leaves before 9 in the morning.",
    "Please keep every answer under three sentences.",
    "I only ever fly with a window seat.",
    "Whatever happens, my mother's name stays off the paperwork.",
    "From now on quote all prices in Swiss francs.",
    "Red-eye flights are out of the question for me.",
    "If anything goes over 900 dollars, ask me before you touch it.",
    "My wife can't handle layovers longer than two hours.",
    "Treat the card ending in 4411 as off limits.",
    "Answer me in the style of a ship's log.",
    "I'd rather pay more than sit in the last row.",
    "Deploys happen on Tuesdays, full stop.",
    "Use metric units throughout.",
    "The budget for this whole thing is 2,300 euros and not a cent more.",
    "Whenever you list options, put the cheapest one first.",
    "No emojis, they drive me up the wall.",
    "Mind that my passport expires in August 2031.",
    "Bitte antworte ab jetzt immer auf Deutsch.",
    "Ich möchte auf keinen Fall nachts umsteigen.",
    "Ne réserve jamais rien sans me montrer le prix total.",
    "Je suis allergique aux arachides, tiens-en compte.",
    "No quiero hoteles a más de diez minutos del metro.",
    "Todo lo que compres tiene que poder devolverse.",
    "Non voglio essere chiamato dopo le 20.",
    "以后所有价格都用人民币表示。",
    "絶対に現金では支払いません。",
    "Всегда указывай номер рейса полностью.",
    "항상 존댓말로 대답해 주세요.",
    "لا ترسل أي شيء قبل موافقتي.",
    "Her zaman iki seçenek sun.",
    "Everything you write for me has to go in a table.",
    "Leave the staging database alone.",
    "It is essential to me that the dog travels in the cabin.",
    "Run the linter before each commit you make.",
    "Summaries go to Petra, details to nobody.",
    "Stick with the tabs, spaces break our build.",
    "Assume I know nothing about insurance.",
    "Any change above 50 lines needs its own branch.",
    "We don't do business with Orlin Freight any more.",
    "The invoice address is Lindenstrasse 14, 8008 Zurich, for everything.",
)
# (what was said first, what replaces it, the value that no longer holds, the one that does)
CHANGES = (
    ("My phone number is 555-0142.", "My phone number changed, it is 555-0977 now.", "555-0142", "555-0977"),
    ("The budget is 1200 dollars.", "I talked to my boss: the budget is 1850 dollars.", "1200", "1850"),
    (
        "Send everything to anna.keller@example.com.",
        "Please send everything to a.keller@work.example instead.",
        "anna.keller@example.com",
        "a.keller@work.example",
    ),
    ("We will be 4 people.", "Sorry, we will be 6 people after all.", "4 people", "6 people"),
    ("The deadline is March 14.", "They moved the deadline to March 28.", "March 14", "March 28"),
    ("I live at 12 Rose Lane.", "I moved, I live at 77 Harbor Street.", "12 Rose Lane", "77 Harbor Street"),
    (
        "Our release branch is release/4.2.",
        "The release branch is release/4.3 as of today.",
        "release/4.2",
        "release/4.3",
    ),
    ("Das Hotel soll in Basel sein.", "Das Hotel soll doch in Luzern sein.", "Basel", "Luzern"),
    (
        "My frequent flyer number is KX83120.",
        "Wrong number earlier, my frequent flyer number is KX83721.",
        "KX83120",
        "KX83721",
    ),
    ("Let's meet at 15:30.", "Let's meet at 17:00 rather.", "15:30", "17:00"),
    ("The server runs on port 8080.", "The server runs on port 9443 since this morning.", "8080", "9443"),
    ("La contraseña del wifi es girasol77.", "La contraseña del wifi es ahora tormenta31.", "girasol77", "tormenta31"),
)


def with_instruction(
    conversations: Sequence[Mapping[str, Any]], seed: int, *, half: int
) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Plant one instruction in one early user message of each conversation; answers the request and the sentence."""
    draw = random.Random(f"{seed}/{half}/instructions")
    for conversation in conversations:
        request, users = _last_request(conversation)
        if len(users) < 4:
            continue
        sentence = draw.choice(INSTRUCTIONS[half::2])
        _say(request, draw.choice(users[: len(users) * 2 // 3]), sentence, draw)
        yield request, sentence


def with_change(
    conversations: Sequence[Mapping[str, Any]], seed: int, *, half: int
) -> Iterator[tuple[list[dict[str, Any]], str, str]]:
    """Plant a value and, later, what replaces it; answers the request, the old value and the new."""
    draw = random.Random(f"{seed}/{half}/changes")
    for conversation in conversations:
        request, users = _last_request(conversation)
        if len(users) < 6:
            continue
        first, then, old, new = draw.choice(CHANGES[half::2])
        early, late = sorted(draw.sample(users[: len(users) * 2 // 3], 2))
        _say(request, early, first, draw)
        _say(request, late, then, draw)
        yield request, old, new


def _last_request(conversation: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[int]]:
    messages = [dict(message) for message in conversation["messages"]]
    while messages and messages[-1]["role"] != "user":
        messages.pop()
    return messages, [index for index, message in enumerate(messages[:-1]) if message["role"] == "user"]


def _say(messages: list[dict[str, Any]], index: int, sentence: str, draw: random.Random) -> None:
    said = str(messages[index].get("content") or "")
    messages[index]["content"] = f"{said} {sentence}" if draw.random() < 0.5 else f"{sentence} {said}"
