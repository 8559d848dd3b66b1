"""Whether a message names a subject."""

import pytest

from gateway.context.read.subject import MOST_CHARACTERS, names_a_subject


@pytest.mark.parametrize("text", [
    "What now?", "ok, what's next", "Thanks! How shall we go on?", "continue", "Und jetzt?", "Danke. Was machen wir als Nächstes?", "et maintenant ?",
    "¿Y ahora qué hacemos?", "e adesso cosa facciamo?", "E agora, o que fazemos?", "Wat nu?", "Vad gör vi nu?", "Co teraz?", "Что дальше?", "Şimdi ne yapalım?",
    "好的，接下来我们做什么？", "ありがとう。次は何をしましょうか？", "이제 뭐 할까요?", "👍", "", "What’s next?",
])  # fmt: skip
def test_a_message_about_how_to_go_on_names_none(text: str) -> None:
    assert not names_a_subject(text)


@pytest.mark.parametrize("text", [
    "What was the plumber's price?", "Who is Tess?", "When do we start?", "Where are we going?", "Is it 7 or 8?", "Und was ist mit Papa?", "C'est quand ?", "¿Dónde está?",
    "奶奶住哪里？", "次の電車は？", "다음 기차는?", "Кто это был?", "how is my son", "now " * MOST_CHARACTERS,
])  # fmt: skip
def test_a_message_with_a_word_of_its_own_names_one(text: str) -> None:
    assert names_a_subject(text)
