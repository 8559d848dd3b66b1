"""How alike texts are in meaning: the same numbers everywhere, within a budget."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.choose import embedding
from gateway.context.choose.embedding import MOST_CHARACTERS, Embedding, above_mean, load, missing
from gateway.wire.memory import Memory
from tests.context.choose.paraphrase import WITH_EXTRA

pytestmark = WITH_EXTRA

SAID = (
    "They sacked Paul because he fell asleep in the guard hut.",
    "The kettle is broken again, so I boil water in a pan.",
    "My bicycle squeaks when it rains.",
    "Wir haben den Zaun orange gestrichen.",
    "我突然想起来我对花生过敏，喉咙会肿",
    "Привет, мир 👩‍💻 \ud800",
)


@pytest.fixture(scope="module")
def vectors() -> Embedding:
    found = load()
    assert found is not None
    return found


def test_a_question_is_nearest_to_the_remark_that_answers_it_in_other_words(vectors: Embedding) -> None:
    near = vectors.nearness("Which friend lost his job?", SAID, Memory())

    assert max(near) == near[0] > 1.0


PARTS = [
    ("rain", ["▁rain"]),
    ("bicycle", ["▁bi", "cycle"]),
    ("straßenbahn", ["▁stra", "ßen", "bahn"]),
    ("花敏", ["▁", "花", "<0xE6>", "<0x95>", "<0x8F>"]),
]


@pytest.mark.parametrize(("word", "parts"), PARTS)
def test_a_word_is_cut_into_the_longest_parts_that_the_package_knows(vectors: Embedding, word, parts) -> None:
    assert vectors.parts.of(word) == tuple(vectors.parts.numbers[part] for part in parts)


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=40))
def test_the_parts_of_a_word_are_the_word(vectors: Embedding, word: str) -> None:
    spelled = {number: part for part, number in vectors.parts.numbers.items()}
    found = b"".join(
        bytes([number - 3]) if 3 <= number < 259 else spelled[number].encode() for number in vectors.parts.of(word)
    )

    assert found == f"▁{word}".encode("utf-8", "surrogatepass")


def test_the_numbers_are_the_same_on_every_platform(vectors: Embedding) -> None:
    """Vectors computed once, on another day: any other rounding or order of sums would show here."""
    made = hashlib.sha256(b"".join(vectors.vectors(SAID))).hexdigest()

    assert made[:16] == "428655d25e888fe5"


FOLD = """
import hashlib, orjson
from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from tests.context.choose.paraphrase import TALK, QUESTION
draft = fold_conversation([*TALK, {"role": "user", "content": QUESTION}], Budget(280, 16, 3, 4), counter("o200k"), Policy(semantic=True))
print(hashlib.sha256(orjson.dumps(draft.messages)).hexdigest(), draft.steps[-1].detail)
"""


def test_two_processes_write_the_same_bytes() -> None:
    written = {
        subprocess.run(
            [sys.executable, "-c", FOLD], env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip

    assert len(written) == 1
    assert written.pop().endswith("by words and meaning\n")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([5], [0.0]),
        ([3, 3, 3], [0.0, 0.0, 0.0]),
        ([0, 0, 0, 4], [0.0, 0.0, 0.0, 3**0.5]),
        ([10**7] * 999 + [10**7 + 1], [0.0] * 999 + [999**0.5]),
    ],
)
def test_nearness_is_counted_from_the_mean(values: list[int], expected: list[float]) -> None:
    assert above_mean(values) == pytest.approx(expected)


def test_only_the_beginning_of_a_passage_and_the_end_of_a_question_are_looked_at(vectors: Embedding) -> None:
    long = "water " * (MOST_CHARACTERS // 6 + 1)
    passages = [long + "bicycle", long + "kettle", "bicycle", "kettle"]

    near = vectors.nearness("bicycle " * 1000 + long, passages, Memory())

    assert near[0] == near[1] > max(near[2:])


def test_what_is_remembered_is_counted_and_bounded(vectors: Embedding) -> None:
    memory = Memory(200_000)
    for start in range(0, 4000, 100):
        vectors.nearness("Where?", [f"passage {number} qz{number}x" for number in range(start, start + 100)], memory)

    share = embedding.VECTORS_SHARE
    assert 0.3 * share * memory.budget < memory.size <= share * memory.budget


def test_a_passage_that_is_remembered_is_not_computed_again(vectors: Embedding, monkeypatch) -> None:
    memory = Memory()
    first = vectors.nearness("Why?", SAID, memory)
    computed: list[str] = []
    made = Embedding.vectors
    monkeypatch.setattr(Embedding, "vectors", lambda self, texts: computed.extend(texts) or made(self, texts))

    assert vectors.nearness("Why?", SAID, memory) == first
    assert computed == ["Why?"]


def test_texts_without_words_are_near_to_nothing(vectors: Embedding) -> None:
    assert vectors.nearness("?", ["", " ", "\n"], Memory()) == [0.0, 0.0, 0.0]
    assert vectors.nearness("What?", [], Memory()) == []


@pytest.fixture
def unloaded() -> Iterator[None]:
    embedding._loaded.cache_clear()
    yield
    embedding._loaded.cache_clear()


@pytest.mark.parametrize("absent", ["numpy", "wordllama"])
def test_a_missing_package_is_named_with_what_installs_it(absent: str, monkeypatch, unloaded: None) -> None:
    real = embedding.find_spec
    monkeypatch.setattr(embedding, "find_spec", lambda name: None if name == absent else real(name))

    assert missing() == f"needs {absent}: pip install 'turnfold[semantic]'"


def test_a_package_without_its_files_is_as_good_as_none(tmp_path: Path, monkeypatch, unloaded: None) -> None:
    monkeypatch.setattr(embedding, "_WEIGHTS", "weights/other.safetensors")

    assert missing() == "finds no vectors in the installed wordllama: pip install 'turnfold[semantic]'"
    assert load() is None


BROKEN = [
    (b"", b"{}"),
    (b"\x02\0\0\0\0\0\0\0{}", b'{"model": {"vocab": {"a": 0}}}'),
    (b'\x3e\0\0\0\0\0\0\0{"e": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}', b'{"model": {"vocab": {"a": 0}}}'),
    (b'\x3e\0\0\0\0\0\0\0{"e": {"dtype": "F16", "shape": [1, 2], "data_offsets": [0, 4]}}\0\0\0\0', b'{"model": {"vocab": {"a": 1}}}'),
]  # fmt: skip


@pytest.mark.parametrize(("weights", "tokenizer"), BROKEN)
def test_files_of_another_shape_are_refused(weights: bytes, tokenizer: bytes) -> None:
    with pytest.raises((ValueError, KeyError)):
        embedding.read(weights, tokenizer)
