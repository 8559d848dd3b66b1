"""Standing wishes are told from stories, in several languages, and one that was taken back is not shown."""

import pytest

from gateway.context.choose import digest, rows
from gateway.context.read import learned, lines
from gateway.context.read.cues import binding, sentence_of
from gateway.context.read.line import MessageLines
from gateway.context.read.wishes import has_revoking_phrase, is_assent, wish_cues
from gateway.context.weigh.line_pool import LinePool
from tests.context.pools import pool

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
    assert wish_cues(sentence_of(wish)).strength > wish_cues(sentence_of(story)).strength + 1


UNSEEN = [
    ("Keep it under eighty words whenever you explain something.", "The museum had eighty paintings and a whale."),
    ("Raw tomatoes give me a rash, so none of those.", "We picked tomatoes until it got dark."),
    ("Everyone says Bea, so Bea it is.", "Bea fell asleep on the bus."),
    ("Spar dir bitte die Einleitung, immer.", "Die Einleitung hat er vorgelesen."),
    ("Mit Zug nur, wenn ich sitzen kann.", "Der Zug stand eine Stunde in Fulda."),
    ("Ne me propose jamais de restaurants japonais.", "Le restaurant japonais était plein hier soir."),
    ("Nada de picante para mi abuela, por favor.", "Mi abuela vino ayer con sus primas."),
    ("Non scrivermi mai dopo cena.", "Dopo cena siamo usciti con il cane."),
    ("Stuur mij nooit bijlagen, die kan ik niet openen.", "Gisteren stuurde hij drie bijlagen."),
    ("Пиши мне только по-русски.", "Он написал ей вчера письмо."),
    ("以后别给我推荐恐怖片", "昨天那部恐怖片好长"),
    ("辛いものは食べないので入れないで", "昨日のカレーは辛かった"),
    ("Nie proponuj mi nigdy lotów nocnych.", "Wczoraj leciał nocą do Rzymu."),
    ("Skriv aldrig längre än fem rader.", "Hon skrev fem brev igår."),
    ("Sempre me avise antes de comprar qualquer coisa.", "Ele comprou um carro ontem."),
    ("Bana asla toplantı koyma cuma günü.", "Cuma günü pazara gittik."),
    ("Đừng bao giờ gợi ý phim kinh dị cho tôi.", "Hôm qua nó xem phim kinh dị."),
    ("Jangan pernah tawarkan saya penerbangan malam.", "Kemarin dia naik kereta malam."),
    ("Μη μου προτείνεις ποτέ ταινίες τρόμου.", "Χτες είδαν μια ταινία τρόμου."),
    ("Soha ne ajánlj nekem horrorfilmet.", "Tegnap horrorfilmet néztek."),
    ("Nikdy mi nenabízej noční lety.", "Včera letěla v noci do Říma."),
    ("Nu-mi propune niciodată filme de groază.", "Ieri au văzut un film de groază."),
    ("Ніколи не пропонуй мені нічних рейсів.", "Учора вона була в кіно."),
    ("Älä ikinä ehdota minulle kauhuelokuvia.", "Eilen hän katsoi kauhuelokuvan."),
    ("Foreslå mig aldrig film med gys i.", "I går så hun en gyser."),
]
"""Wishes and stories about the same, none of which the weights were learned from. All stay in the table, told or not."""


def points(sentence: str) -> float:
    cues = wish_cues(sentence_of(sentence))
    return cues.strength + binding(sentence) + cues.wish


def test_most_wishes_in_unseen_words_are_told_from_stories() -> None:
    told = [points(wish) > points(story) + 1 for wish, story in UNSEEN]

    assert sum(told) >= 23


REVOKED = [
    ("You can use long words again, my reader copes now.", "I used long words in the speech."),
    ("Forget the rule about Fridays, I'm free.", "On Fridays they sell fish."),
    ("No need to ask me before small purchases any more.", "Small purchases add up."),
    ("Du musst mich nicht mehr vorher fragen.", "Sie hat mich vorher gefragt."),
    ("Ya no hace falta que escribas tan corto.", "La carta era corta."),
    ("Oublie la limite de prix, on a plus d'argent.", "Le prix était affiché."),
    ("不用再提醒我了", "他昨天提醒过我"),
    ("Không cần nhắc tôi uống nước nữa.", "Bà tôi uống nước chè."),
    ("Nggak usah ingatkan saya minum lagi.", "Nenek minum teh di teras."),
    ("Δεν χρειάζεται πια να μου θυμίζεις το νερό.", "Η γιαγιά πίνει νερό."),
    ("Már nem kell emlékeztetned a vízre.", "A nagyi vizet iszik."),
    ("Už mi nemusíš připomínat vodu.", "Babička pije vodu."),
    ("Nu mai e nevoie să-mi amintești de apă.", "Bunica bea apă."),
    ("Більше не треба нагадувати мені про воду.", "Бабуся п'є воду."),
    ("Ei sinun enää tarvitse muistuttaa vedestä.", "Mummo juo vettä."),
]
"""Sentences that take something back, and others with the same words, none of which the weights were learned from."""


def test_most_sentences_that_take_something_back_are_told_from_others() -> None:
    told = [
        wish_cues(sentence_of(one)).revocation > wish_cues(sentence_of(other)).revocation + 1 for one, other in REVOKED
    ]

    assert sum(told) >= 13


def test_what_takes_a_wish_back_comes_before_the_wishes_even_if_it_shares_no_word_with_them() -> None:
    found = pool(
        ("user", "Please keep every answer under three lines, I read on a watch."),
        ("assistant", "Understood."),
        ("user", "The roof leaks."),
        ("assistant", "Since when?"),
        ("user", "You can go back to writing at length, I have a screen now."),
        ("assistant", "Good to know."),
    )

    assert "go back" in texts(found)[0]
    assert found.wishes.ranked[1] not in found.wishes.revocations


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "?" * 100_000, "x y " * 50_000, "'" * 90_000, "别" * 90_000, "", "\x00"]
)
def test_features_of_hostile_text_are_few(text: str) -> None:
    assert len(learned.features(text)) <= 3 * learned.MOST_CHARACTERS


def test_scripts_of_all_kinds_and_numbers_have_features() -> None:
    assert {"don't", "0", ("at", "0"), "?", ("^", "call")} <= learned.features("Don't, call me at 10:30?")
    assert {("别", "叫"), "0", ("号", "?")} <= learned.features("以后别叫我5号？")
    assert ("never", "say") in learned.features("never\tsay - it")


def test_the_learned_weights_are_whole_and_bounded() -> None:
    words, pairs = learned.weights().words, learned.weights().pairs

    assert 5_000 < len(words) + len(pairs) < 33_000  # 100 bytes of memory each
    assert learned.EDGE in words and "" not in words
    assert all(abs(both.real) < 100 and abs(both.imag) < 100 for both in (*words.values(), *pairs.values()))
    assert all(both == complex(round(both.real), round(both.imag)) for both in (*words.values(), *pairs.values()))


def test_a_row_has_weights_its_words_and_its_pairs() -> None:
    found = learned.read("-5\t2\tnever|^\t^ say|say it\n3\t0\t\tnever say\n")

    assert found.words == {"never": -5 + 2j, "^": -5 + 2j}
    assert found.pairs == {("^", "say"): -5 + 2j, ("say", "it"): -5 + 2j, ("never", "say"): 3 + 0j}


def test_points_are_the_sum_of_the_weights_of_all_features_each_once() -> None:
    weights = learned.weights()
    all_weights = {**weights.words, **weights.pairs}

    for text in ("Never call me at 10:30, never!", "以后别叫我5号", "x"):
        tenths = sum(all_weights.get(feature, 0j) for feature in learned.features(text))
        assert learned.points_of(text) == (tenths.real / learned.TENTHS, tenths.imag / learned.TENTHS)


def test_a_reply_that_agrees_is_told_from_one_that_goes_on() -> None:
    assert all(
        map(is_assent, ["Understood, no lists.", "Geht klar.", "D'accord, je note.", "明白，不列了。", "Of course."])
    )
    assert not any(
        map(is_assent, ["The train leaves at nine.", "Which of the two?", "Die Praxis hat bis zwölf offen."])
    )


def texts(found: LinePool) -> list[str]:
    return [found.lines[position].text for position in found.wishes.ranked]


def test_assent_makes_a_wish_of_an_odd_wording() -> None:
    odd = ("user", "Tables on a phone turn to soup. The cat caught a mouse.")
    later = (("user", "I never have wine."), ("assistant", "It often is so."))
    taken = pool(odd, ("assistant", "Understood, plain lines."), *later)
    ignored = pool(odd, ("assistant", "A mouse!"), *later)

    assert "soup" in texts(taken)[0]
    assert "soup" not in texts(ignored)[0]


def test_the_name_by_which_the_assistant_addresses_the_user_is_a_wish() -> None:
    found = pool(
        ("user", "It says Wilhelmina on my card, Billie will do. It rains here."),
        ("assistant", "Hello Billie, nice to meet you."),
    )

    assert "Billie" in texts(found)[0]


def test_the_name_that_the_assistant_takes_up_counts_more_than_one_that_it_does_not() -> None:
    one, other = (
        ("user", "On the card it says Gwendolyn, Winnie will do."),
        ("user", "On the form it says Wilhelmina, Billie will do."),
    )
    on = ("assistant", "The office opens at nine in the morning.")

    assert "Winnie" in texts(pool(one, ("assistant", "Hello Winnie, nice to meet you."), other, on))[0]
    assert "Billie" in texts(pool(one, on, other, ("assistant", "Hello Billie, nice to meet you.")))[0]


def test_a_wish_that_was_taken_back_comes_behind_what_took_it_back() -> None:
    found = pool(
        ("user", "Please never suggest any meetings on Tuesdays, that is choir."),
        ("assistant", "Understood."),
        ("user", "The roof leaks."),
        ("assistant", "Since when?"),
        ("user", "By the way, you can use Tuesdays again, the choir has moved."),
        ("assistant", "Good to know."),
    )

    assert has_revoking_phrase(sentence_of("you can use Tuesdays again"))
    kept = texts(found)
    assert "Tuesdays again" in kept[0]
    for tokens in range(12, 120, 6):
        shown = rows.render(found, digest.choose(found, tokens, lambda text: len(text) // 4))
        assert "Tuesdays again" in shown or "never suggest" not in shown


@pytest.mark.parametrize(
    ("wish", "later"),
    [
        (
            "I won't have anything out of a bottle or a packet on that ground.",
            "He came down with a packet of biscuits, told me a story and went away again.",
        ),
        (
            "Bitte schreib mir alles ohne Abkürzungen, ich steh sonst da und weiß nicht, was du meinst.",
            "Und was ich bitte immer wieder an die Kasse zahlen muss, das weiß ich jetzt auch nicht.",
        ),
        ("晚上十一点以后别给我安排任何任务", "还有我现在最想带的是那件厂服，以后再说吧"),
    ],
)
def test_common_words_alone_take_no_wish_back(wish: str, later: str) -> None:
    found = pool(("user", wish), ("assistant", "Noted."), ("user", later), ("assistant", "I see."))

    assert wish in texts(found)
    assert not found.wishes.revocations


def test_a_short_reply_that_repeats_a_word_of_the_sentence_takes_it_up() -> None:
    one, other = ("user", "Plural forms make me twitch, so batch."), ("user", "Curly quotes make me sneeze, so sheet.")
    on = ("assistant", "The recipe for today needs an onion and some oil.")

    assert "batch" in texts(pool(one, ("assistant", "Batch it is. Next."), other, on))[0]
    assert "sheet" in texts(pool(one, on, other, ("assistant", "Sheet it is. Next.")))[0]


def test_sentences_of_a_script_without_spaces_are_lines_of_their_own() -> None:
    first = "我今天拿到了新的房间钥匙，它就在面包店的楼上，房间比我想的要大得多，还有一个朝南的窗户。"
    then = "对了，以后你叫我小周就行，别叫我同学。"
    more = "市政厅的预约排到了下周三，家庭医生我已经登记在楼下那一家，他自己也对花生过敏，人很好聊。"

    assert [line.text for line in lines.read({"role": "user", "content": first + then + more})] == [first, then, more]


def test_a_date_with_a_full_stop_ends_no_sentence() -> None:
    said = "my aunt misreads 3.4. and 4.3. constantly. so write the month as a word. it is safer. thanks a lot"

    assert lines.read({"role": "user", "content": said})[0].text.startswith(
        "my aunt misreads 3.4. and 4.3. constantly."
    )


REQUESTS = (
    "Could you please look up my order?",
    "Could you please check the second one too?",
    "Could you please send me the label?",
    "Could you please cancel the mug?",
)
"""One errand after the other, all in the form of a wish."""


@pytest.mark.parametrize(
    "wish",
    [
        "Parcels only ever go to Mrs Ward, my neighbour downstairs.",
        "Pakete nimmt nur die Nachbarin an.",
        "包裹只能交给邻居。",
    ],
)
def test_what_a_customer_asks_each_time_is_no_wish_beside_what_is_said_once(wish: str) -> None:
    said = [(role, text) for text in REQUESTS for role, text in (("user", text), ("assistant", "It is done."))]
    talk = pool(("user", wish), ("assistant", "What can I look up?"), *said)
    with_call = LinePool([*talk.readings.values(), *results(after=talk)])

    assert texts(with_call)[0] == wish


def results(after: LinePool) -> list[MessageLines]:
    """Return results of calls behind a talk, one for each of the user's messages."""
    done = lines.read({"role": "tool", "tool_call_id": "1", "content": "cancelled"})
    first = len(after.readings)
    asked = sum(reading.role == "user" for reading in after.readings.values())
    return [MessageLines(index, "tool", done, "cancel") for index in range(first, first + asked)]


ERRANDS = (
    "I don't have the reservation number with me right now, but I can look for it.",
    "Before that, could you let me know whether all three vouchers can be used?",
    "I'd like to use the vouchers first and put the rest on my card.",
    "Can you also tell me what happens if I change the dates?",
)
"""Sentences of a customer that have the form of wishes."""


@pytest.mark.parametrize(
    "wish",
    ["A taxi is fine, a bus never is.", "Mon mari dort le jour, pas de sonnette.", "发票都开公司的名字。"],
)
def test_a_wish_is_surer_than_errands_of_the_same_form(wish: str) -> None:
    said = [(role, text) for text in ERRANDS for role, text in (("user", text), ("assistant", "One moment."))]
    talk = pool(*said, ("user", f"{ERRANDS[0]} {wish}"), ("assistant", "One moment."))
    with_call = LinePool([*talk.readings.values(), *results(after=talk)])

    assert texts(with_call)[0] == wish
    assert with_call.wishes.sure == with_call.wishes.ranked[:1]


def test_a_sentence_in_words_of_the_tools_is_an_errand() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "order", "arguments": '{"item": "lantern", "colour": "copper"}'}}
    ]}  # fmt: skip
    said = "I never want a lantern that is not copper."
    with_call = [
        MessageLines(0, "user", lines.read({"role": "user", "content": said})),
        MessageLines(1, "assistant", lines.read(call)),
        MessageLines(
            2, "user", lines.read({"role": "user", "content": "Please never ring the bell here, the baby sleeps."})
        ),
    ]

    assert texts(LinePool(with_call))[0].startswith("Please never ring")
    assert LinePool(with_call[::2]).wishes.ranked != LinePool(with_call).wishes.ranked


@pytest.mark.parametrize(
    ("sentence", "changes"),
    [
        ("Use long words again.", True),
        ("Nowadays I do.", True),
        ("The snow is known.", False),
        ("I do not need the list any more.", True),
        ("Anymore of this and I leave.", True),
        ("Whose turn is it, now's or then's?", True),
        ("'Again' is the word.", True),
        ("Many are from here.", False),
        ("Many are from here, but from now on none.", True),
        ("Ne le fais plus.", True),
        ("Ne.", False),
        ("Finalement, je préfère le thé.", True),
        ("现在不用了", True),
    ],
)
def test_a_sentence_of_change_is_told_by_its_words(sentence: str, changes: bool) -> None:
    assert has_revoking_phrase(sentence_of(sentence)) is changes
