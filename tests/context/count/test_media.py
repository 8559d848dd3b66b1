"""Media cost what providers publish, read from the head of a data URL, never from its length."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.count.media import image, image_size, is_upper_bound, tokens
from tests.context import pictures
from tests.context.pictures import gif, jpeg, pdf, png, url, wav, webp

GPT_4O = "tiles 85 170"
CLAUDE = "grid 28 1568 1568"


@pytest.mark.parametrize(
    "picture",
    [png(640, 480), png(640, 480, padding=200_000), jpeg(640, 480), jpeg(640, 480, preview=60_000),
     jpeg(640, 480, preview=130_000), gif(640, 480), webp(640, 480), webp(640, 480, "VP8 "), webp(640, 480, "VP8L"),
     png(640, 480).rstrip("="), png(640, 480).replace("+", "-").replace("/", "_")],
)  # fmt: skip
def test_the_size_stands_in_the_head(picture: str) -> None:
    assert image_size(picture) == (640, 480)


@pytest.mark.parametrize(
    "picture",
    ["", "https://example.com/cat.png", "data:", "data:image/png;base64,", "data:image/png;base64,AAAA", "data:image/png,raw",
     "data:image/png;base64,!!!!", png(0, 0), "data:image/jpeg;base64,/9j/", url("image/tiff", b"II*\0" + b"\0" * 50),
     url("image/jpeg", b"\xff\xd8\xff\xff\xff\xff\xff"), url("image/jpeg", b"\xff\xd8" + b"\xff\xe1\x00\x00" * 30)],
)  # fmt: skip
def test_what_cannot_be_read_has_no_size(picture: str) -> None:
    assert image_size(picture) is None


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFFxxxxWEBPVP8L"]),
)
def test_any_bytes_have_a_price(data: bytes, head: bytes) -> None:
    part = {"type": "image_url", "image_url": {"url": url("image/png", head + data)}}

    assert tokens(part, GPT_4O) >= 85


@pytest.mark.parametrize(
    ("rule", "size", "detail", "price"),
    [
        # https://platform.openai.com/docs/guides/images-vision#calculating-costs
        (GPT_4O, (1024, 1024), "high", 765),
        (GPT_4O, (2048, 4096), "high", 1105),
        (GPT_4O, (4096, 8192), "low", 85),
        (GPT_4O, (512, 512), "auto", 255),
        (GPT_4O, None, "auto", 85 + 8 * 170),
        ("tiles 2833 5667", (1024, 1024), "high", 25_501),
        ("patches 1536 1", (1024, 1024), "auto", 1024),
        ("patches 1536 1", (1800, 2400), "auto", 1452),
        ("patches 1536 1.62", (1024, 1024), "auto", 1659),
        ("patches 1536 1.62", None, "auto", 2489),
        # https://platform.claude.com/docs/en/build-with-claude/vision
        (CLAUDE, (1000, 1000), "auto", 1296),
        (CLAUDE, (200, 200), "auto", 64),
        (CLAUDE, (4000, 3000), "auto", 1568),
        ("grid 28 2576 4784", (2576, 1449), "auto", 4784),
        # https://ai.google.dev/gemini-api/docs/tokens
        ("crops 258", (384, 384), "auto", 258),
        ("crops 258", (960, 540), "auto", 516),
        ("fixed 1120", (10, 10), "auto", 1120),
        ("", (1024, 1024), "auto", 765),
        ("no such rule", (1024, 1024), "auto", 765),
    ],
)
def test_images_have_the_published_price(rule: str, size: tuple[int, int] | None, detail: str, price: int) -> None:
    assert image(rule, size, detail) == price


@given(
    st.sampled_from([GPT_4O, "patches 1536 1.62", "patches 2500 1.2", CLAUDE, "crops 258"]),
    st.integers(1, 2048),
    st.integers(1, 2048),
)
def test_an_image_of_unknown_size_costs_at_least_what_it_turns_out_to(rule: str, width: int, height: int) -> None:
    assert image(rule, None) >= image(rule, (width, height)) > 0


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": png(1000, 1000)}},
        {"type": "image_url", "image_url": png(1000, 1000)},
        {"type": "input_image", "image_url": png(1000, 1000)},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": png(1000, 1000).split(",")[1]},
        },
    ],
)
def test_an_image_costs_the_same_in_every_shape(part: dict[str, object]) -> None:
    assert tokens(part, CLAUDE) == 1296
    assert not is_upper_bound(part)


def test_what_stands_elsewhere_is_bounded() -> None:
    assert is_upper_bound({"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}})
    assert is_upper_bound({"type": "file", "file": {"file_id": "file-1"}})


def test_audio_costs_its_seconds() -> None:
    part = {"type": "input_audio", "input_audio": {"data": wav(30), "format": "wav"}}

    assert tokens(part, GPT_4O) == pytest.approx(300, abs=2)
    assert tokens(part, "crops 258") == pytest.approx(960, abs=4)
    assert (
        100 <= tokens({"type": "input_audio", "input_audio": {"data": "A" * 200_000, "format": "mp3"}}, GPT_4O) <= 400
    )


def test_video_costs_its_seconds() -> None:
    part = {"type": "video_url", "video_url": {"url": url("video/mp4", b"\0" * 1_250_000)}}

    assert tokens(part, "crops 258") == pytest.approx(3000, rel=0.2)


@pytest.mark.parametrize("deflate", [True, False])
def test_a_document_costs_its_pages_and_its_text(deflate: bool) -> None:
    part = {"type": "file", "file": {"file_data": url("application/pdf", pdf(3, "word " * 100, deflate=deflate))}}
    page = image(GPT_4O, (816, 1056))

    assert 3 * page + 3 * 500 / 4 <= tokens(part, GPT_4O) <= 3 * page + 3 * 500 / 2


def test_where_only_the_text_is_read_a_document_costs_only_that() -> None:
    part = {"type": "document_url", "document_url": url("application/pdf", pdf(2, "word " * 100))}

    assert 250 <= tokens(part, CLAUDE) <= 500


@pytest.mark.parametrize(
    "part",
    [{"type": "file", "file": {"file_id": "file-1"}}, {"type": "file"}, {"type": "file", "file": None},
     {"type": "document_url", "document_url": "https://example.com/a.pdf"}, {"type": "input_audio"}, {"type": "video_url", "video_url": None},
     {"type": "file", "file": {"file_data": "%PDF not base64 at all"}}, {"type": "image_url"}, {"type": "image_url", "image_url": 7}],
)  # fmt: skip
def test_whatever_a_client_sends_has_a_price(part: dict[str, object]) -> None:
    assert tokens(part, GPT_4O) > 0


def test_a_text_file_costs_its_text() -> None:
    part = {"type": "file", "file": {"file_data": url("text/plain", b"one two three four " * 100)}}

    assert 400 <= tokens(part, GPT_4O) <= 800


def test_a_document_that_unpacks_without_end_is_not_followed() -> None:
    bomb = b"%PDF-1.4\n<</Type /Page>>stream\n" + zlib.compress(b"(BT)" * 20_000_000) + b"\nendstream"
    part = {"type": "file", "file": {"file_data": url("application/pdf", bomb)}}

    assert tokens(part, GPT_4O) < 2_000_000


def test_pictures_are_what_they_say() -> None:
    """The helper itself: a head that a decoder would accept."""
    assert base64.b64decode(pictures.png(3, 4).split(",")[1]).startswith(b"\x89PNG")
