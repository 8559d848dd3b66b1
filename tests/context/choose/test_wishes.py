"""Standing wishes are told from stories, in several languages, and one that was taken back is not shown."""

import pytest

from gateway.context.choose import lines
from gateway.context.choose.line import MessageLines
from gateway.context.choose.wishes import assents, may_revoke, strength
from gateway.context.choose.worth import LinePool

PAIRS = [
    ("Could you leave out the tables, I read you on a small screen.", "The tables were still wet when they came in."),
    ("We don't keep nuts in this house.", "He had a walnut tree behind the house."),
    ("Bitte sag künftig du zu mir.", "Gestern war sie mit ihm im Kino."),
    ("Évite les listes, s'il te plaît.", "Hier elle était à la mer avec lui."),
    ("No me pongas nunca reuniones antes de las diez.", "Ayer ella fue a la playa con sus primos."),
    ("Всегда пиши мне цены в рублях.", "Вчера она была у него в гостях."),
    ("以后你跟我说话简短一点，别列编号", "昨天他们去了湖边"),
]


@pytest.mark.parametrize(("wish", "story"), PAIRS)
def test_a_wish_is_stronger_than_a_story(wish: str, story: str) -> None:
    assert strength(wish) > strength(story) + 1


def test_a_reply_that_agrees_is_told_from_one_that_goes_on() -> None:
    assert all(
        map(assents, ["Understood, no lists.", "Geht klar.", "D'accord, je note.", "明白，不列了。", "Of course."])
    )
    assert not any(map(assents, ["The train leaves at nine.", "Which of the two?", "Die Praxis hat bis zwölf offen."]))


def pool(*said: tuple[str, str]) -> LinePool:
    return LinePool(
        [MessageLines(n, role, lines.read({"role": role, "content": text})) for n, (role, text) in enumerate(said)]
    )


def texts(found: LinePool) -> list[str]:
    return [found.lines[position].text for position in found.wishes]


def test_assent_makes_a_wish_of_an_odd_wording() -> None:
    first = ("user", "Tables on a phone turn to soup. The cat caught a mouse.")
    taken = pool(
        first, ("assistant", "Understood, plain lines."), ("user", "The bus was late."), ("assistant", "It often is.")
    )
    ignored = pool(first, ("assistant", "A mouse!"), ("user", "The bus was late."), ("assistant", "It often is."))

    assert any("soup" in text for text in texts(taken))
    assert not any("soup" in text for text in texts(ignored))


def test_the_name_by_which_the_assistant_addresses_the_user_is_a_wish() -> None:
    found = pool(
        ("user", "It says Wilhelmina on my card, Billie will do. It rains here."),
        ("assistant", "Hello Billie, nice to meet you."),
    )

    assert "Billie" in texts(found)[0]


def test_a_wish_that_was_taken_back_gives_way_to_what_took_it_back() -> None:
    found = pool(
        ("user", "Please never suggest any meetings on Tuesdays, that is choir."),
        ("assistant", "Understood."),
        ("user", "The roof leaks."),
        ("assistant", "Since when?"),
        ("user", "By the way, you can use Tuesdays again, the choir has moved."),
        ("assistant", "Good to know."),
    )

    assert may_revoke("you can use Tuesdays again")
    assert not any("never suggest" in text for text in texts(found))
    assert any("Tuesdays again" in text for text in texts(found))
