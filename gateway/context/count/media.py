"""Count tokens of images, audio, video and files by the provider's published rule, never by the length of their base64.

Sizes are read from the first bytes of a data URL. Media at other addresses are never fetched: they count as the maximum
of their rule.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from math import ceil, floor, sqrt
from typing import Any, Final

from gateway.context.count import documents
from gateway.wire.message import media_kind

Part = Mapping[str, Any]

# Rules are spelled as in config/models.yaml: a kind, then its numbers.
#   tiles BASE TILE       fit into 2048 x 2048, shortest side to 768, squares of 512 pixels; BASE alone at low detail
#                         https://platform.openai.com/docs/guides/images-vision#calculating-costs
#   patches MOST FACTOR   squares of 32 pixels, scaled down to at most MOST, times FACTOR (same page; factors as billed:
#                         https://community.openai.com/t/introducing-gpt-5-4-mini-and-nano-our-most-capable-small-models-yet/1377015)
#   grid SIDE EDGE MOST   squares of SIDE pixels, scaled down to EDGE pixels on the long edge and MOST squares
#                         https://platform.claude.com/docs/en/build-with-claude/vision (28 pixels; 1568 or 2576; 1568 or 4784)
#                         https://docs.mistral.ai/capabilities/vision/ and Qwen-VL's processors work alike
#   crops TOKENS          one to 384 x 384, else one per square of 768 pixels
#                         https://ai.google.dev/gemini-api/docs/tokens
#   fixed TOKENS          for every size
UNKNOWN: Final = "tiles 85 170"
"""The rule of a model without a known one."""


def tokens(part: Part, images: str) -> int:
    """Return the tokens of one content part with media; too low by a few percent at most."""
    kind = str(part.get("type", ""))
    if "audio" in kind:
        return _audio(part, images)
    if "video" in kind:
        return _video(part)
    if "image" in kind:
        url, detail = _image_url(part)
        return image(images, image_size(url), detail)
    return _file(part, images)


def document_content(part: Part) -> list[Any] | None:
    """Return the texts and parts of a document whose content is written in the body. None for any other media.

    https://platform.claude.com/docs/en/build-with-claude/citations
    """
    source = part.get("source")
    if not isinstance(source, dict):
        return None
    kind = source.get("type")
    content = source.get("data") if kind == "text" else source.get("content") if kind == "content" else None
    if not isinstance(content, (str, list)):
        return None
    about = [part[name] for name in ("title", "context") if isinstance(part.get(name), str)]
    return [*about, *(content if isinstance(content, list) else [content])]


def is_upper_bound(part: Part) -> bool:
    """Return whether the tokens of a part are only an upper bound. They are not for an image with a readable size, and for
    a document written in the body."""
    if (content := document_content(part)) is not None:
        return any(media_kind(inner) and is_upper_bound(inner) for inner in content)
    return "image" not in str(part.get("type", "")) or image_size(_image_url(part)[0]) is None


def image(rule: str, size: tuple[int, int] | None, detail: str = "auto") -> int:
    """Return the tokens of an image by its size in pixels; an unknown size (None) costs the maximum of the rule."""
    kind, *numbers = (rule or UNKNOWN).split()
    price = _PRICES.get((kind, len(numbers)))
    if price is None:
        return image(UNKNOWN, size, detail)
    return price(size, detail == "low", *map(float, numbers))


Size = tuple[int, int] | None
"""Width and height of an image in pixels; None if they are unknown."""

# Each of these returns the tokens of an image of a size. ``low`` is whether the client asks for few details, and the other arguments are the
# numbers in the rule's name.


def _tiles(size: Size, low: bool, base: float, tile: float) -> int:
    """``base`` tokens, and ``tile`` for each square of 512 pixels, after the image was scaled to fit 2048 x 2048 and its shorter side to 768."""
    if low:
        return int(base)
    if size is None:
        return int(base + 8 * tile)
    width, height = size
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return int(base + tile * ceil(round(width * scale, 6) / 512) * ceil(round(height * scale, 6) / 512))


def _patches(size: Size, low: bool, most: float, factor: float) -> int:
    """Return the tokens of an image by its patches. A large image is scaled so that whole patches cover it: 1800 x 2400
    becomes 33 x 44 patches in the documentation's example."""
    if size is None:
        return ceil(most * factor)
    width, height = size
    patches = ceil(width / 32) * ceil(height / 32)
    if patches > most:
        scale = sqrt(32 * 32 * most / (width * height))
        columns, rows = width * scale / 32, height * scale / 32
        scale *= min(max(floor(columns), 1) / columns, max(floor(rows), 1) / rows)
        patches = min(int(most), ceil(round(width * scale / 32, 6)) * ceil(round(height * scale / 32, 6)))
    return ceil(patches * factor)


def _grid(size: Size, low: bool, side: float, edge: float, most: float) -> int:
    """One token for each square of ``side`` pixels, after the longer side was scaled to ``edge``; at most ``most``."""
    if size is None:
        return int(most)
    scale = min(1.0, edge / max(size))
    return min(ceil(size[0] * scale / side) * ceil(size[1] * scale / side), int(most))


def _crops(size: Size, low: bool, price: float) -> int:
    """``price`` tokens for each square of 768 pixels; a small image is one. An unknown size counts as nine."""
    if size is None:
        return int(price) * 9
    return int(price) * (1 if max(size) <= 384 else ceil(size[0] / 768) * ceil(size[1] / 768))


def _fixed(size: Size, low: bool, price: float) -> int:
    return int(price)


_PRICES: Final[Mapping[tuple[str, int], Callable[..., int]]] = {
    ("tiles", 2): _tiles,
    ("patches", 2): _patches,
    ("grid", 3): _grid,
    ("crops", 1): _crops,
    ("fixed", 1): _fixed,
}


def _image_url(part: Part) -> tuple[str, str]:
    """Return the URL and the detail of an image part, as the OpenAI and the Anthropic API write them."""
    value = part.get("image_url", part.get("image"))
    detail = part.get("detail")
    if isinstance(value, dict):
        detail = value.get("detail", detail)
        value = value.get("url")
    source = part.get("source")
    if isinstance(source, dict):
        value = f"data:;base64,{source['data'][:200_000]}" if isinstance(source.get("data"), str) else source.get("url")
    return value if isinstance(value, str) else "", detail if isinstance(detail, str) else "auto"


def image_size(url: str) -> tuple[int, int] | None:
    """Read width and height in pixels from the head of a data URL (PNG, JPEG, GIF, WebP); None when they are
    unreadable."""
    if not url.startswith("data:"):
        return None
    comma = url.find(",", 5, 300)
    if comma < 0 or not url[:comma].endswith(";base64"):
        return None
    for characters in (4_000, 200_000):  # a JPEG may carry a preview of 64 KB before it states its size
        try:
            head = base64.b64decode(url[comma + 1 : comma + 1 + characters], validate=True)
        except (binascii.Error, ValueError):
            head = _decoded(url[comma + 1 : comma + 1 + characters])
        size = _size_in(head)
        if size or len(url) - comma <= characters or not head.startswith(b"\xff\xd8"):
            return size if size and min(size) > 0 else None
    return None


def _decoded(text: str) -> bytes:
    """Decode the complete part of base64 that is truncated, unpadded or URL-safe."""
    plain = re.sub(r"[^A-Za-z0-9+/]", "", text.replace("-", "+").replace("_", "/"))
    try:
        return base64.b64decode(plain[: len(plain) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _size_in(head: bytes) -> Size:
    """Return the size that the beginning of a PNG, GIF, WebP or JPEG file states."""
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp_size(head)
    return _jpeg_size(head) if head.startswith(b"\xff\xd8") else None


def _webp_size(head: bytes) -> Size:
    """Return the size of a WebP image, which each of its three forms states in another way."""
    form = head[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if form == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    if form == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None


_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    """Return the size in the frame header, which comes after other segments."""
    position = 2
    while position + 9 <= len(head) and head[position] == 0xFF:
        marker = head[position + 1]
        if marker in _FRAMES:
            return int.from_bytes(head[position + 7 : position + 9], "big"), int.from_bytes(
                head[position + 5 : position + 7], "big"
            )
        if marker == 0xFF or 0xD0 <= marker <= 0xD8 or marker == 0x01:
            position += 1 if marker == 0xFF else 2
            continue
        position += 2 + int.from_bytes(head[position + 2 : position + 4], "big")
    return None


def _audio(part: Part, images: str) -> int:
    """Return the tokens of audio: 10 a second at OpenAI, 32 at Google. An unknown length counts as 10 minutes.

    https://platform.openai.com/docs/guides/realtime-costs and https://ai.google.dev/gemini-api/docs/audio
    """
    source = part.get("input_audio", part.get("audio_url", part))
    data = source.get("data", source.get("url")) if isinstance(source, dict) else None
    rate = 32 if images.startswith(("crops", "fixed")) else 10
    if not isinstance(data, str) or data.startswith("http"):
        return 600 * rate
    size = (len(data) - data.find(",", 0, 100) - 1) * 3 // 4
    return max(1, ceil(size / _bytes_per_second(data) * rate))


def _bytes_per_second(data: str) -> int:
    """Return the rate in a WAV header; 8,000 (64 kbit/s) for compressed audio, which seldom has less."""
    start = data.find(",", 0, 100) + 1
    head = _decoded(data[start : start + 80])
    rate = (
        int.from_bytes(head[28:32], "little")
        if head[:4] == b"RIFF" and head[8:12] == b"WAVE" and len(head) >= 32
        else 0
    )
    return rate if rate >= 1_000 else 8_000


def _video(part: Part) -> int:
    """Return the tokens of a video: 300 a second (https://ai.google.dev/gemini-api/docs/video-understanding), at 1 Mbit/s. A
    video that is not in the body counts as one minute."""
    source = part.get("video_url", part.get("input_video", part))
    data = source.get("url", source.get("data")) if isinstance(source, dict) else source
    if not isinstance(data, str) or data.startswith("http"):
        return 60 * 300
    return max(300, len(data) * 3 // 4 // 125_000 * 300)


_TEXT_TOKENS_PER_PAGE: Final = 500
"""Tokens of a page whose text is unknown. Chosen as half of a dense page, which has up to 1,000 tokens."""
_ASSUMED_PAGES: Final = 2
"""Pages assumed for a document known only by an address or an id. Chosen: nothing bounds it, and most are short."""


def _file(part: Part, images: str) -> int:
    """Return the tokens of a document: the text on its pages and, except at Mistral, an image of each page.

    https://platform.openai.com/docs/guides/pdf-files, https://platform.claude.com/docs/en/build-with-claude/pdf-support
    and https://docs.mistral.ai/capabilities/document_ai/document_qna/
    """
    page = 0 if "document_url" in part else min(image(images, (816, 1056)), 1_600)
    data = _file_data(part)
    if not data:
        return _ASSUMED_PAGES * (page + _TEXT_TOKENS_PER_PAGE)
    comma = data.find(",")
    head, start = data[: max(comma, 0)], comma + 1
    size = (len(data) - start) * 3 // 4
    if head.startswith("data:text") or _is_plain_text(head):
        return size // 3
    contents = documents.read(_decoded(data[start : start + documents.LARGEST_DOCUMENT * 4 // 3]))
    beyond = max(0, size - documents.LARGEST_DOCUMENT) // 50_000
    if not contents.pages:
        return max(1, size // 50_000) * (page + _TEXT_TOKENS_PER_PAGE)
    return contents.pages * page + contents.characters // 3 + beyond * (page + _TEXT_TOKENS_PER_PAGE) + 1


def _is_plain_text(head: str) -> bool:
    return any(kind in head for kind in ("json", "csv", "xml", "markdown", "yaml"))


def _file_data(part: Part) -> str:
    """Return the data of a file in a part, in any dialect; empty if the part only has a URL or an id."""
    for key in ("file", "input_file", "source", "document"):
        value = part.get(key)
        if isinstance(value, dict):
            data = value.get("file_data", value.get("data"))
            return data if isinstance(data, str) else ""
    for key in ("file_data", "document_url"):
        value = part.get(key)
        if isinstance(value, str) and not value.startswith("http"):
            return value
    return ""
