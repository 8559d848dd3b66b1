"""Familiar words: the words of a message for what its reader knows already.

A speaker marks these by grammar, whatever the subject is: *the shed*, *my tablets*, *Wilf's mum* and *Imogen* were spoken of before; *a haiku
about leaves* was not. The words below are the articles and possessives of some languages. Of languages without articles only
possessives and names are recognised.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway.context.read.cues import SELF
from gateway.context.read.self_words import POSSESSIVE
from gateway.context.read.subject import names_a_subject
from gateway.context.read.words import Word, words

_DEFINITE_WORDS: Final = (
    # English, German, Dutch
    "the his her hers their theirs its our ours der die das den dem des zum zur vom beim im am ins ihr ihre ihren ihrem ihrer sein seine seinen seinem"
    " seiner unser unsere unseren unserem unserer het de zijn haar hun ons onze"
    # French, Spanish, Italian, Portuguese
    " le la les l au aux son sa ses leur leurs notre nos el los las al del lo su sus nuestro nuestra nuestros nuestras il gli dell della dello dei degli"
    " delle all alla allo ai agli alle nel nell nella sul sull sulla dal dall dalla suo sua suoi sue nostro nostra o os da dos das na nas ao aos"
    " pelo pela pro pra seu seus nosso nossa dele dela"
)
_DEFINITE: Final = frozenset(_DEFINITE_WORDS.split()) | POSSESSIVE
"""Articles and possessives before what is known."""
_INDEFINITE_WORDS: Final = "a an some any another one two three several ein eine einen einem einer eines een un une unos unas uno um uma uns umas"
_INDEFINITE: Final = frozenset(_INDEFINITE_WORDS.split())
"""Articles before what is new."""
_NOT_ENGLISH_WORDS: Final = (
    "de para por con com el los las una un uma di che per il que der das dem den ein eine einen mir bitte und"
)
_NOT_ENGLISH: Final = frozenset(_NOT_ENGLISH_WORDS.split())
"""Frequent words of other languages. In a text with one of them *a* and *an* are no articles: in German and Spanish they mean *to*."""
_ENGLISH: Final = frozenset({"a", "an"})
REACH: Final = 2
"""Words behind an article or a possessive that belong to it: an adjective and its noun."""
_SPEAKER: Final = (SELF | POSSESSIVE) - {"me"}
"""*I*, *we*, *my*, *our*. *Me* is in *give me*, too."""
_SPEAKER_UNSPACED: Final = re.compile("(?<![给帮跟让])我|私|僕|저는|제가|나는|내가|우리")
"""The same in scripts without spaces, without *me* in *give me*, *help me* and the like (给我)."""
_ADVICE: Final = re.compile(
    r"\b(?:should|shall|can|could|do|would|must|may|might) (?:i|we)\b|\b(?:soll|sollte|kann|könnte|muss|darf) ich\b|\b(?:sollen|sollten|können|könnten|müssen) wir\b"
    r"|\b(?:dois|puis|devrais|pourrais)-je\b",
    re.I,
)
"""*Should I*, *how do we*: a question for advice is not about what was said. *Did I* is about that, so it is not here."""
_TOKEN: Final = re.compile(r"[^\W_]+(?:-[^\W_]+)*(?:['’](?:s|m|re|ve|d|ll|t)\b)?|[,;.!?:…，。！？；：\n]", re.I)
_PAUSES: Final = frozenset(",;，；")
_SENTENCE_ENDS: Final = frozenset(".!?:…。！？：\n")
_GENITIVES: Final = ("'s", "’s")


class Token(NamedTuple):
    """A word of a text with what its grammar says of it."""

    text: str
    start: int
    """Where it begins in the text, with the article or possessive before it."""
    begins: bool
    """Whether it is the first word of a sentence."""
    known: bool
    """Whether it stands behind an article or a possessive for what is known."""
    new: bool
    """Whether it stands behind an article for what is new."""

    @property
    def owner(self) -> str:
        """*Wilf* of *Wilf's*; empty if it is no such word."""
        bare = self.text[:-2]
        return bare if self.text.endswith(_GENITIVES) and bare[:1].isupper() and names_a_subject(bare) else ""


def tokens_of(text: str, start: int = 0) -> Iterator[Token]:
    """Yield the words of a text from a position on, without articles and possessives."""
    indefinite = _INDEFINITE if _NOT_ENGLISH.isdisjoint(text.lower().split()) else _INDEFINITE - _ENGLISH
    begins = True
    known = new = 0  # how many of the next words belong to an article for what is known, or for what is new
    article = -1  # where the article or possessive before the next word begins
    for found in _TOKEN.finditer(text, start):
        word = found[0]
        low = word.lower()
        if word in _PAUSES or word in _SENTENCE_ENDS:
            begins, known, new, article = word in _SENTENCE_ENDS, 0, 0, -1
        elif low in _DEFINITE:
            begins, known, new, article = False, REACH, 0, found.start()
        elif low in indefinite:
            begins, known, new, article = False, 0, REACH, found.start()
        else:
            token = Token(word, article if article >= 0 else found.start(), begins, known > 0, new > 0)
            yield token
            # What a named person owns is known, as behind a possessive.
            begins, known, new, article = False, REACH if token.owner else known - 1, new - 1, -1


def familiar_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text for what its reader knows already, each once."""
    found: dict[str, Word] = {}
    for token in tokens_of(text):
        is_name = token.text[0].isupper() and not token.begins and not token.new
        if token.owner or ((token.known or is_name) and token.text.isalnum() and names_a_subject(token.text)):
            found.update((word.key, word) for word in words(token.owner or token.text))
    return tuple(found.values())


def speaks_of_speaker(text: str) -> bool:
    """Return whether a text says *I*, *we*, *my* or *our*, other than to ask for advice."""
    spoken = {re.split("['’]", found)[0].lower() for found in _TOKEN.findall(_ADVICE.sub(" ", text))}
    return not _SPEAKER.isdisjoint(spoken) or (not text.isascii() and _SPEAKER_UNSPACED.search(text) is not None)
