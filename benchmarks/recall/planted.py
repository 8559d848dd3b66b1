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
TO_FIT_ON = (
    "I never take anything with peanuts on board.",
    "Don't ever charge the company account.",
    "Window blinds closed and aisle seats only, that's how I travel.",
    "Just so you know, I'm deaf in one ear, so no phone calls.",
    "Keep it to two lines, I read this on a watch.",
    "Round every amount to whole pounds.",
    "Talk to me like I'm five.",
    "No jokes today or ever.",
    "Everyone calls me Bas, nobody says Sebastian.",
    "We are vegetarians, the whole family.",
    "My husband is afraid of propeller planes.",
    "Nothing that lands after midnight, please.",
    "Anything over 250 needs my okay first.",
    "I won't fly with Norwind again.",
    "Always tell me the total before you charge something.",
    "Don't share my address with partner companies.",
    "I need a step-free route wherever I go.",
    "Spell out abbreviations, I can't stand them.",
    "Use the 24-hour clock.",
    "Give me dates as day, month, year.",
    "The baby has to sit next to me on every leg.",
    "Skip the pleasantries.",
    "Receipts go to my accountant, not to me.",
    "Hotels must have a lift, I can't do stairs.",
    "Only refundable fares for me.",
    "I'm colour-blind, so don't point at things by colour.",
    "Keep my boss out of this.",
    "Two options at most when you offer me something.",
    "Cash refunds only, vouchers are useless to me.",
    "I get sick in the back of the plane.",
    "My lawyer reads everything, so write formally.",
    "Leave out the prices in anything that goes to my son.",
    "Nobody but me may change this booking.",
    "Sundays are off limits for us.",
    "Prices in yen, that's what I'm paid in.",
    "Whatever you do, don't touch the return leg.",
    "I'm on dialysis on Tuesdays and Fridays.",
    "We only stay in places that take dogs.",
    "Sign everything you draft for me with my initials, H.V.",
    "Ask before you assume anything.",
    "Bitte duzen Sie mich nicht.",
    "Nenn mich einfach Lo.",
    "Preise bitte immer inklusive Steuern.",
    "Ich vertrage keine Nüsse.",
    "Nichts mit Umstieg in Frankfurt, das mache ich nie wieder.",
    "Halte dich kurz, ich lese auf dem Handy.",
    "Rechnungen gehen grundsätzlich an meine Firma.",
    "Nach 18 Uhr bin ich nicht zu erreichen.",
    "Appelle-moi Jo, tout le monde le fait.",
    "Je ne prends jamais l'avion le dimanche.",
    "Réponds toujours en une seule phrase.",
    "Pas de vol avec escale pour ma mère.",
    "Nous sommes végétariens.",
    "Rien au-dessus de 300 euros sans mon accord.",
    "Llámame Nacho, por favor.",
    "Nunca viajo de noche.",
    "Responde siempre en castellano.",
    "Mi padre va en silla de ruedas.",
    "Nada que cueste más de 80 euros.",
    "No compartas mis datos con nadie.",
    "Chiamami Gigi.",
    "Non mangiamo carne.",
    "Scrivi sempre gli orari nel formato 24 ore.",
    "Soltanto posti vicino al corridoio.",
    "Niente chiamate la mattina.",
    "Me chame de Duda.",
    "Nunca reserve nada sem me perguntar antes.",
    "Sou alérgico a camarão.",
    "Responda sempre em português.",
    "Só aceito voos diretos.",
    "Noem me maar Wim.",
    "Stuur nooit iets zonder mijn toestemming.",
    "Ik eet geen vis.",
    "Houd het altijd kort.",
    "Alleen plekken bij het raam.",
    "以后请叫我小鱼。",
    "我对青霉素过敏。",
    "回答尽量简短一点。",
    "不要给我推荐红眼航班。",
    "超过三百块的都要先问我。",
    "すべて敬語でお願いします。",
    "私のことはミキと呼んでください。",
    "通路側の席しか座りません。",
    "卵アレルギーがあります。",
    "三行以内で答えてください。",
    "앞으로는 반말로 해 줘.",
    "저는 땅콩 알레르기가 있어요.",
    "답은 항상 짧게 해 주세요.",
    "밤 비행기는 절대 안 타요.",
    "저를 민이라고 불러 주세요.",
    "Называй меня Сашей.",
    "Я не летаю ночью, никогда.",
    "Отвечай всегда коротко.",
    "У меня аллергия на орехи.",
    "Ничего дороже ста евро без моего согласия.",
    "Zawsze pisz do mnie po polsku.",
    "Nigdy nie rezerwuj lotów z przesiadką.",
    "Kalla mig Nisse, alla gör det.",
    "Jag äter aldrig kött.",
    "Bana hep Türkçe yaz.",
    "Fıstığa alerjim var.",
    "Asla gece uçuşu alma.",
    "نادني أبو سامي.",
    "أنا لا آكل اللحم.",
    "اكتب دائما بالأرقام العربية.",
    "मुझे हमेशा हिंदी में जवाब दो।",
    "मैं मांस नहीं खाता।",
)
"""Other sentences of the same kinds, in twenty languages, for the fit of weights: what is reported are those above."""
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
    conversations: Sequence[Mapping[str, Any]], seed: int, *, half: int, among: Sequence[str] = INSTRUCTIONS
) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Plant one instruction in one early user message of each conversation; answers the request and the sentence."""
    draw = random.Random(f"{seed}/{half}/instructions")
    for conversation in conversations:
        request, users = _last_request(conversation)
        if len(users) < 4:
            continue
        sentence = draw.choice(among[half::2])
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
