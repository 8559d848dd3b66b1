"""The conversations of this folder: with questions about them, and with standing wishes.

Each was written by an author who knew nothing of the code. Rules and weights were chosen on five of the sets. The other sets are held
out: their figures show how well folds work on new conversations.
"""

from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson


class Kind(Enum):
    """What a conversation is."""

    CHAT = "chat"
    AGENT = "agent"
    """An agent that works on its own between two messages of the user. What it knows in the middle of its work is measured, too."""
    TEXT_AGENT = "text agent"
    """The same, of an agent that calls its tools in the text of its messages."""
    SERVICE = "service"
    """Customers and an assistant with tools. What later calls need is measured, too."""


class Authored(NamedTuple):
    """A set of conversations."""

    label: str
    file: str
    kind: Kind
    about: str
    """What it is, and what was chosen on it."""

    @property
    def talks(self) -> list[dict[str, Any]]:
        """Return its conversations, each with ``messages``, ``probes`` and ``rules``."""
        return rows_of(Path(__file__).with_name(f"{self.file}.jsonl"))


SETS: Final = (
    Authored(
        "held-out chats", "held_out", Kind.CHAT,
        "Four chats, two English, one Spanish, one Japanese. Nothing is chosen on them.",
    ),
    Authored(
        "held-out chats, later", "held_out_later", Kind.CHAT,
        "Four more, written once all weights were chosen: two English, one German, one French.",
    ),
    Authored(
        "held-out chats, last", "held_out_last", Kind.CHAT,
        "Two more, one French, one in the English of a foreigner, written after everything that is measured on them.",
    ),
    Authored(
        "held-out chats, final", "held_out_final", Kind.CHAT,
        "Two more in English, written when all that is measured on them was built.",
    ),
    Authored(
        "held-out chats, fifth", "held_out_fifth", Kind.CHAT,
        "Four more, written a day later: two English (one with Welsh, one with Singlish words), one German, one Chinese. Nothing is chosen on them.",
    ),
    Authored(
        "held-out chats, sixth", "held_out_sixth", Kind.CHAT,
        "Four more, by another author: two English (one of a Nigerian), one Dutch, one Japanese. Nothing is chosen on them.",
    ),
    Authored(
        "held-out chats, seventh", "held_out_seventh", Kind.CHAT,
        "Three English chats of people who seldom type question marks: a game with its master, a landlord who renovates, a student. How questions without"
        " marks are recognised was chosen with two of them in view.",
    ),
    Authored(
        "chats in other languages", "languages", Kind.CHAT,
        "Three chats: Portuguese, Italian, Polish. Words of change were added after a look at their wishes.",
    ),
    Authored(
        "chats in other languages, held out", "languages_held_out", Kind.CHAT,
        "Three more: Russian, Korean, Arabic. Their words have been read by stems and pairs since the first measurement.",
    ),
    Authored(
        "chats in more languages", "languages_more", Kind.CHAT,
        "Six more: Turkish, Vietnamese, Swedish, Indonesian, Greek, Hungarian, hardly a question with its mark. Question words of these languages were"
        " added with the questions in view. How their wishes are learned was chosen by its figures, without a look at the wishes.",
    ),
    Authored(
        "chats between friends", "friends", Kind.CHAT,
        "Two chats of half a year between two friends, with questions of a third person about either. How such a chat is recognised was chosen on them.",
    ),
    Authored(
        "chats between friends, held out", "friends_held_out", Kind.CHAT,
        "Another, by another author, measured once that was chosen.",
    ),
    Authored(
        "chats about documents", "documents", Kind.CHAT,
        "Three chats whose users put passages of documents, drafts and exercises into their messages. How pasted text is told from the user's own words was"
        " chosen on them.",
    ),
    Authored(
        "chats about documents, held out", "documents_held_out", Kind.CHAT,
        "Two more, measured before and after that was chosen.",
    ),
    Authored(
        "coding agents", "coding_agents", Kind.AGENT,
        "Three long sessions, with questions of the developer about the work. What a fold does with such sessions was chosen on them.",
    ),
    Authored(
        "coding agents, held out", "coding_agents_held_out", Kind.AGENT,
        "Three more, one in German, by another author, measured before and after that was chosen.",
    ),
    Authored(
        "research agents", "research_agents", Kind.AGENT,
        "Three long sessions: research on the web, analysis of data, an office with mail and calendar. The length of quotes for such agents, and the"
        " weight of addresses, were chosen on them.",
    ),
    Authored(
        "research agents, held out", "research_agents_held_out", Kind.AGENT,
        "Three more of the same, measured before and after that was chosen.",
    ),
    Authored(
        "agents at other work", "work_agents", Kind.AGENT,
        "Three long sessions, one in German: incidents of a platform, a data warehouse, a shop with its orders and mails. The worth of the user's sentences"
        " was chosen on them.",
    ),
    Authored(
        "agents at other work, held out", "work_agents_held_out", Kind.AGENT,
        "Three more by another author, one in French: the books of an importer, training runs of models, the devices of a hospital. Nothing is chosen on"
        " them.",
    ),
    Authored(
        "agents that call in their text", "text_agents", Kind.TEXT_AGENT,
        "Three long sessions, one in German: an editor's coding agent with elements, a stock desk with rows of actions, an office with tags. How such calls"
        " and results are recognised was chosen on them.",
    ),
    Authored(
        "agents that call in their text, held out", "text_agents_held_out", Kind.TEXT_AGENT,
        "Three more in other forms by another author, one in French: a shell, programs, JSON. The labels before a user's words were added after the first"
        " measurement.",
    ),
    Authored(
        "chats in applications", "applications", Kind.CHAT,
        "Four chats as applications send them: passages around each question, a team's channel, speech without punctuation, a game told by the assistant. How"
        " such messages are read was chosen on them.",
    ),
    Authored(
        "chats in applications, held out", "applications_held_out", Kind.CHAT,
        "Five more by another author, one in German, one in Spanish: the same four in other forms, and a coach. Nothing is chosen on them but one limit, for"
        " short messages that do not seem to ask.",
    ),
    Authored(
        "chats in other channels", "channels", Kind.CHAT,
        "Four chats, by another author: Hindi in Latin letters in bursts of short messages, an app with its own labels, JSON both ways, a novelist in German. How"
        " a prompt template is recognised, and how a match counts for its neighbours, was chosen with them in view.",
    ),
    Authored(
        "chats in other channels, held out", "channels_held_out", Kind.CHAT,
        "Five more, by another author: a pupil with formulas, mails, an app in Italian, XML in Spanish, Tagalog with English in bursts. Nothing is chosen on"
        " them.",
    ),
    Authored(
        "everyday chats", "everyday", Kind.CHAT,
        "A report that is written in an office, a diary, a developer who pastes logs, a family's group in French. Most questions have no mark. How a message"
        " that asks without a mark is recognised was chosen with them in view.",
    ),
    Authored(
        "everyday chats, held out", "everyday_held_out", Kind.CHAT,
        "Four more, by another author: a novel written together, a shop's owner, a student in German, a traveller in Japanese with an app's state in each message."
        " Of their messages only the form of the app's was looked at.",
    ),
    Authored(
        "chats without marks", "unmarked", Kind.CHAT,
        "A tiler who types and dictates for months, a German student with lecture notes, a developer with a side project, a Spanish widow and a companion. Nine in ten"
        " questions have no mark. Weights of what a message asks were fitted on them.",
    ),
    Authored(
        "chats without marks, held out", "unmarked_held_out", Kind.CHAT,
        "Four more, by other authors: a move abroad, a French novelist, a project manager who writes English as a second language, a coach in Chinese. Nothing is"
        " chosen on them.",
    ),
    Authored(
        "chats over months", "months", Kind.CHAT,
        "A retired teacher, a French family that moves and travels, a data scientist who pastes tables, a Japanese father. How common words of other languages"
        " than English count, and what the messages beside a match need, was chosen with them in view.",
    ),
    Authored(
        "chats over months, held out", "months_held_out", Kind.CHAT,
        "Eight more, by two other authors: four English, one German, Chinese, Spanish and Italian. Two limits of scores were chosen with their totals in view, and"
        " nothing else.",
    ),
    Authored(
        "chats whose plans change", "revisions", Kind.CHAT,
        "A guest house and a mother with dementia, a data pipeline, a German thesis, a novel. Many questions ask for the newest of several values, or in entirely other"
        " words. Nothing is chosen on them.",
    ),
    Authored(
        "chats whose plans change, held out", "revisions_held_out", Kind.CHAT,
        "Four more, by another author: a renovation, a Spanish teacher, a companion for sports and moods, a Chinese bakery. Nothing is chosen on them.",
    ),
    Authored(
        "agents with other tools", "tool_agents", Kind.AGENT,
        "Three long sessions: a browser, a data warehouse, a coding agent with reminders in its messages.",
    ),
    Authored(
        "agents with other tools, held out", "tool_agents_held_out", Kind.AGENT,
        "Four more, by another author, one in German, one in Spanish: incidents of a platform, an office with mail and calendar, the move of a database, a"
        " browser. Nothing is chosen on them.",
    ),
    Authored(
        "service of six companies", "service", Kind.SERVICE,
        "Nine conversations of a telephone company, a shop and hotels, two of three in English. How such questions are answered, and what back ends"
        " write around answers, was chosen on them.",
    ),
    Authored(
        "service of six companies, held out", "service_held_out", Kind.SERVICE,
        "Nine more, of a bank, clinics and an insurance company, measured before and after that was chosen.",
    ),
)  # fmt: skip


def sets_of(*wanted: Kind) -> list[Authored]:
    """Return the sets of these kinds."""
    return [each for each in SETS if each.kind in wanted]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the conversations of a file, one in a row."""
    return [orjson.loads(row) for row in path.read_bytes().splitlines()]
