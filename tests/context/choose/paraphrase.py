"""A chat with a remark that a later question is about, without one word of it."""

from typing import Final

import pytest

from gateway.context.choose import embedding

WITH_EXTRA: Final = pytest.mark.skipif(bool(embedding.missing()), reason=f"the extra semantic {embedding.missing()}")

REMARK: Final = "They sacked Paul because he fell asleep in the guard hut."
QUESTION: Final = "Which friend lost his job?"
_SAID: Final = (
    ("The kettle is broken again, so I boil water in a pan.", "A pan works; mind the handle."),
    ("Traffic was dreadful on the ring road this morning.", "The roadworks end on Friday."),
    ("I finally read that thick novel about the lighthouse.", "Did the ending hold up?"),
    ("Our printer at the office eats every second page.", "Clean the rollers with a damp cloth."),
    ("The neighbours repainted their fence bright orange.", "That will show up in the fog."),
    (REMARK, "Poor fellow."),
    ("I keep losing one glove of every pair.", "Clip them to your sleeves."),
    ("The lift is stuck between floors once a week.", "Ask the caretaker for the service log."),
    ("My bicycle squeaks when it rains.", "Oil the chain after drying it."),
    ("We played cards until midnight and nobody won.", "A draw is a rare thing in cards."),
    ("The concert was moved to a smaller hall.", "Then go early for a seat."),
    ("I tried to knit and made a knot.", "Start with a larger needle."),
    ("The train was so full that I stood all the way.", "The later one is emptier."),
    ("I found a coin from 1911 under the floorboards.", "Do not polish it."),
    ("Our tomatoes are still green in October.", "Ripen them beside an apple."),
    ("The swimming pool closes at eight now.", "Then swim before supper."),
    ("My phone falls silent whenever it rings.", "The switch on its side may be loose."),
    ("A heron stood on the roof of the shed.", "It was looking at somebody's goldfish."),
    ("The museum has a whole hall full of locks.", "And one of keys, I hope."),
    ("I burned the rice and ate it nevertheless.", "The crust is the best of it."),
    ("It snowed on the tulips.", "They stand that better than roses."),
    ("The choir sings in Latin this time.", "Then nobody will notice a wrong word."),
    ("We moved the sofa three times and back again.", "So it stood right at first."),
)
TALK: Final = (
    {"role": "system", "content": "You are a companion."},
    *[
        {"role": role, "content": text}
        for turn in _SAID
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ],
)
