"""Kinds of text that tokenizers differ on, each a few hundred characters; the golden counts belong to exactly these."""

import base64
from typing import Final

import orjson

TEXTS: Final[dict[str, str]] = {
    "english": "The quick brown fox jumps over the lazy dog; it wasn't the first time, and it won't be the last. " * 4,
    "german": "Die Überprüfung der Zugehörigkeit erfolgt schließlich über das Bürgerbüro in Köln-Ehrenfeld. " * 4,
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 4,
    "chinese": "今天天气很好，我们去公园散步吧。数据库连接失败，请稍后重试。" * 6,
    "japanese": "東京は日本の首都であり、世界最大の都市圏のひとつです。カタカナもあります。" * 5,
    "korean": "한국어는 한국에서 사용되는 공용어입니다. 오류가 발생했습니다. " * 5,
    "thai": "ประเทศไทยมีประชากรประมาณเจ็ดสิบล้านคน กรุงเทพมหานครเป็นเมืองหลวง " * 4,
    "arabic": "اللغة العربية هي أكثر اللغات السامية تحدثا، وإحدى أكثر اللغات انتشارا في العالم. " * 4,
    "hindi": "हिन्दी भारत की राजभाषा है और इसे बहुत से लोग बोलते हैं। " * 4,
    "emoji": "😀🎉👩‍👩‍👧‍👦🇩🇪❤️🏳️‍🌈" * 10,
    "base64": base64.b64encode(bytes((n * 97 + n // 7) % 256 for n in range(600))).decode(),
    "hex": bytes((n * 89 + n // 5) % 256 for n in range(300)).hex(),
    "json": orjson.dumps(
        [{"id": f"res_{n:05d}", "total": n * 1.25, "ok": n % 3 == 0, "name": None} for n in range(20)]
    ).decode(),
    "code": "def fold(turns: list[Turn], room: int) -> Draft:\n    for turn in turns:\n        if turn.cost > room:\n            return cut(turn)\n"
    * 4,
    "log": "2026-11-03T14:05:59.123Z ERROR [worker-7] upstream=openai status=429 retry_after=1.5s path=/v1/chat/completions\n"
    * 5,
    "blanks": "a" + " " * 120 + "\n" * 40 + "\t" * 40 + "b",
    "special": "<|endoftext|><|im_start|>system\n[INST] <s></s> <|eot_id|> <start_of_turn> \n\nHuman: hi \n\nAssistant:"
    * 3,
    "control": "\x00\x01\x7f\u200b\u202e\ufeff\u00ad" * 20,
    "combining": "e\u0301a\u0308o\u0302 Z\u0351\u036b\u0343a\u0351\u036blgo " * 8,
}
