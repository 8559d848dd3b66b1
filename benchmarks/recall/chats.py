"""Made-up chats of many weeks, with questions about single remarks; every seed and half gives other people and other remarks."""

import random
from collections.abc import Iterator
from typing import Any

# (what somebody says, what is asked about it later); {n} is drawn from the lists below. The wording of a question is
# deliberately not that of the remark.
REMARKS = (
    (
        "We finally adopted a dog from the shelter in {city}! He is a {animal} mix and we named him {pet}.",
        "What is the name of {who}'s dog?",
    ),
    (
        "I started taking {craft} classes on {day}s. My teacher, {person}, is incredibly patient with beginners like me.",
        "Who teaches {who} {craft}?",
    ),
    (
        "Guess what, I got the job at {company}! I start on {date}, can't believe it.",
        "When does {who} begin working at {company}?",
    ),
    (
        "My sister {person} is moving to {city} next month because her husband got transferred there.",
        "Where is {who}'s sister moving?",
    ),
    (
        "I've been reading {book} before bed. Honestly it's the best novel I have picked up this year.",
        "Which book was {who} reading at bedtime?",
    ),
    ("The doctor told me I am allergic to {food}, so no more of that for me.", "What food allergy does {who} have?"),
    (
        "Last weekend we hiked up {place} with the kids; {person} carried the backpack the whole way.",
        "Who carried the backpack on the hike to {place}?",
    ),
    (
        "I ran the half marathon in {number} minutes! Two years of training paid off.",
        "How fast did {who} run the half marathon?",
    ),
    (
        "For our anniversary we booked a little cabin near {place}, arriving {date}.",
        "Where are they staying for {who}'s wedding anniversary?",
    ),
    (
        "My grandmother gave me her old {object}. It's from 19{year} and still works perfectly.",
        "What did {who} inherit from the grandmother?",
    ),
    (
        "We painted the nursery {color} yesterday. {person} picked the shade, I only held the ladder.",
        "What colour is the nursery?",
    ),
    (
        "I volunteer at the {org} every {day} afternoon now, mostly sorting donations.",
        "Where does {who} do volunteer work?",
    ),
    (
        "My car broke down again on the way to {city}; the mechanic wants {number} dollars for a new {part}.",
        "How much will {who}'s car repair cost?",
    ),
    (
        "I baked a {food} cake for {person}'s birthday and it actually turned out edible.",
        "What kind of cake did {who} make for the birthday?",
    ),
    (
        "We are planning a trip to {city} in {month}; I already have a list of museums.",
        "When is {who} travelling to {city}?",
    ),
    (
        "Signed up for a {sport} league with people from work. Our team is called the {team}.",
        "What is {who}'s team called?",
    ),
    (
        "I failed my driving test again, third time, because I missed a stop sign near {place}.",
        "Why did {who} not pass the driving exam?",
    ),
    (
        "{person} and I are writing a musical about {topic}. First rehearsal is on {date}.",
        "What is the musical about that {who} is writing?",
    ),
    (
        "I've decided to go back to school and study {subject}. Classes are in the evening.",
        "What does {who} want to study?",
    ),
    (
        "My landlord raised the rent to {number}, so we are looking at flats around {place}.",
        "How high is {who}'s rent now?",
    ),
    (
        "Mom's surgery went well, she is recovering at {place} and already complaining about the food.",
        "Where is {who}'s mother recuperating?",
    ),
    (
        "I sold my first painting! A gallery owner called {person} bought the one with the {animal}s.",
        "Who purchased {who}'s painting?",
    ),
    (
        "We are hosting Thanksgiving for {number} people, I must borrow chairs from {person}.",
        "How many guests does {who} expect for Thanksgiving?",
    ),
    (
        "My favourite band, {team}, is playing in {city}. I queued {number} minutes for tickets.",
        "Which concert did {who} get tickets for?",
    ),
    (
        "I quit coffee three weeks ago and switched to {food} tea, the headaches are gone.",
        "What does {who} drink instead of coffee?",
    ),
    (
        "Our basement flooded on {date}. The insurance covers everything but the {object}.",
        "What was not covered by {who}'s insurance?",
    ),
    (
        "I taught {person} to play the {instrument}; she picked up the first song in a day.",
        "Which instrument did {who} teach somebody?",
    ),
    (
        "I am knitting a {color} scarf for {person}, hopefully done before winter.",
        "Who is the scarf for that {who} knits?",
    ),
    (
        "The startup got funded! {person} led the round, {number} thousand for the {topic} app.",
        "Who invested in {who}'s startup?",
    ),
    (
        "I lost my wedding ring swimming at {place}, and a stranger with a metal detector found it.",
        "Where did {who} lose the ring?",
    ),
    (
        "We planted {food} and beans in the back garden; the {animal}s have eaten half of it.",
        "What is eating the plants in {who}'s garden?",
    ),
    ("I got a tattoo of a {animal} on my wrist to remember the summer in {city}.", "What is {who}'s tattoo of?"),
    (
        "Therapy has been helping, especially the breathing exercises {person} recommended.",
        "What kind of exercises help {who}?",
    ),
    ("My nephew {person} was born on {date}, 3.4 kilos and very loud.", "When was {who}'s nephew born?"),
    (
        "I'm training to become a {job}. The certificate takes {number} hours of practice.",
        "What profession is {who} training for?",
    ),
    (
        "The {object} I ordered came broken, twice. I'm never buying from {company} again.",
        "Which company will {who} avoid in future?",
    ),
)
FILLER = (
    "That sounds amazing, I'm so happy for you!",
    "Wow, really? Tell me more about it when you have time.",
    "Haha, that is so typical.",
    "I know exactly what you mean. Some weeks are just like that.",
    "Take care of yourself, okay? You deserve a break.",
    "It has been raining here all day and I have barely left the house.",
    "Thanks, that means a lot to me.",
    "Oh no, I'm sorry to hear that. Is there anything I can do?",
    "Work has been busy as always, but I can't complain.",
    "We should really catch up in person some time soon.",
    "I was thinking about you the other day, how have you been?",
    "Not much new here, just the usual routine.",
    "You always know how to cheer me up.",
    "That must have been quite an experience!",
    "I totally agree, it's important to make time for the things you love.",
    "Keep me posted, I want to hear how it goes.",
    "Sometimes I wonder where the time goes, don't you?",
    "Good luck, you've got this!",
    "I could use a holiday myself to be honest.",
    "What a coincidence, I was talking about that with a friend only yesterday.",
    "That's great to hear. I'm proud of you for sticking with it.",
    "Hope the rest of your week is a bit calmer.",
    "It's the small things that count, right?",
    "Let's see what happens, no point in worrying now.",
    "I tried to cook something new but it was a disaster, we ordered pizza in the end.",
    "The weekend was quiet, just some films and a long walk.",
    "Same here! Family keeps me grounded too.",
    "I never thought of it like that, thanks for sharing.",
    "Speaking of which, how is everyone at home?",
    "You would have laughed if you had seen my face.",
    "I'll let you know as soon as I hear something.",
    "Music always helps me when I feel down.",
)
SLOTS: dict[str, tuple[str, ...]] = {
    "city": (
        "Portland",
        "Lisbon",
        "Kyoto",
        "Denver",
        "Ghent",
        "Turin",
        "Austin",
        "Bergen",
        "Leeds",
        "Quito",
        "Perth",
        "Halifax",
    ),
    "animal": ("terrier", "fox", "heron", "rabbit", "husky", "turtle", "spaniel", "owl", "badger", "collie"),
    "pet": ("Biscuit", "Juniper", "Moby", "Pixel", "Waffles", "Ziggy", "Olive", "Rufus"),
    "craft": ("pottery", "woodcarving", "salsa", "calligraphy", "fencing", "archery", "upholstery", "sailing"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
    "person": (
        "Elena",
        "Marcus",
        "Priya",
        "Tobias",
        "Yuki",
        "Hannah",
        "Omar",
        "Greta",
        "Dmitri",
        "Lucia",
        "Kwame",
        "Ingrid",
    ),
    "company": ("Northwind", "Halcyon Labs", "Brightwater", "Kestrel & Co", "Lumen Systems", "Orchard Bank"),
    "date": ("March 3", "the 12th of June", "September 27", "April 19", "the 5th of May", "November 8", "July 14"),
    "month": ("February", "late August", "October", "early May", "December"),
    "book": ("The Salt Roads", "Winter Orchard", "A Map of Ashes", "The Ninth Lighthouse", "Paper Rivers"),
    "food": ("walnut", "rhubarb", "chamomile", "mango", "shellfish", "pumpkin", "hibiscus", "lentil", "fig"),
    "place": (
        "Lake Orta",
        "Mount Hale",
        "Cedar Ridge",
        "Pelican Bay",
        "Saint Anne's",
        "the Harrow Valley",
        "Birch Street",
    ),
    "number": ("118", "240", "97", "1350", "64", "480", "22", "705", "36"),
    "object": ("sewing machine", "typewriter", "record player", "camera", "piano", "fountain pen", "telescope"),
    "year": ("52", "61", "38", "74", "47"),
    "color": ("sage green", "mustard", "lavender", "teal", "terracotta"),
    "org": ("food bank", "animal rescue", "public library", "hospice", "youth centre"),
    "part": ("alternator", "clutch", "radiator", "gearbox"),
    "sport": ("volleyball", "curling", "badminton", "bowling", "dodgeball"),
    "team": ("Flying Ferrets", "Midnight Parade", "Copper Foxes", "Quiet Giants", "Paper Tigers"),
    "topic": ("lighthouse keepers", "beekeeping", "the moon landing", "night trains", "sourdough"),
    "subject": ("marine biology", "social work", "linguistics", "architecture", "nursing"),
    "instrument": ("ukulele", "cello", "accordion", "drums", "oboe"),
    "job": ("paramedic", "sommelier", "electrician", "yoga teacher", "translator"),
}


def chats(seed: int, *, half: int, conversations: int = 6, messages: int = 300) -> Iterator[dict[str, Any]]:
    """Make chats between two people, each with one question for each remark in it."""
    draw = random.Random(f"{seed}/{half}")
    remarks = REMARKS[half::2]
    for number in range(conversations):
        yield _chat(draw, f"chat-{seed}-{half}-{number}", remarks, messages)


def _chat(draw: random.Random, name: str, remarks: tuple[tuple[str, str], ...], messages: int) -> dict[str, Any]:
    people = draw.sample(("Nora", "Felix", "Joanna", "Arjun", "Melanie", "Stefan"), 2)
    places = draw.sample(range(messages), len(remarks))
    told = dict(zip(places, draw.sample(remarks, len(remarks)), strict=True))
    history: list[dict[str, Any]] = [
        {"role": "system", "content": f"A chat between {people[0]} (user) and {people[1]} (assistant)."}
    ]
    probes: list[dict[str, Any]] = []
    for position in range(messages):
        text = " ".join(draw.sample(FILLER, draw.choice((1, 1, 2))))
        if position in told:
            values = {key: draw.choice(choices) for key, choices in SLOTS.items()}
            remark = told[position][0].format(**values)
            question = told[position][1].format(**values, who=people[position % 2])
            text = f"{remark} {draw.choice(FILLER)}" if draw.random() < 0.4 else remark
            probes.append({"q": question, "evidence": [{"msg": len(history), "text": text}]})
        history.append({"role": ("user", "assistant")[position % 2], "content": text})
    if history[-1]["role"] == "user":
        history.pop()
    return {"id": name, "split": "dev", "messages": history, "probes": probes}
