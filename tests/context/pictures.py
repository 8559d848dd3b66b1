"""Heads of media files, just enough of each that its size can be read."""

import base64
import struct
import zlib


def png(width: int, height: int, padding: int = 0) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 2, 0, 0, 0)
    return url("image/png", head + b"\0" * (4 + padding))


def jpeg(width: int, height: int, preview: int = 0) -> str:
    """``preview`` bytes stand in an EXIF segment before the frame header, as cameras put them there."""
    segments = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    while preview > 0:
        size = min(preview, 65_000)
        segments += b"\xff\xe1" + struct.pack(">H", size + 2) + b"\0" * size
        preview -= size
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return url("image/jpeg", b"\xff\xd8" + segments + frame + b"\0" * 50)


def gif(width: int, height: int) -> str:
    return url("image/gif", b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 20)


def webp(width: int, height: int, form: str = "VP8X") -> str:
    if form == "VP8X":
        body = (
            b"VP8X"
            + struct.pack("<I", 10)
            + b"\0" * 4
            + (width - 1).to_bytes(3, "little")
            + (height - 1).to_bytes(3, "little")
        )
    elif form == "VP8L":
        body = (
            b"VP8L" + struct.pack("<IB", 20, 0x2F) + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + b"\0" * 8
        )
    else:
        body = b"VP8 " + struct.pack("<I", 20) + b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return url("image/webp", b"RIFF" + struct.pack("<I", 100) + b"WEBP" + body + b"\0" * 40)


def wav(seconds: int, rate: int = 16_000) -> str:
    head = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16) + b"data\0\0\0\0"
    return base64.b64encode(head + b"\0" * (rate * 2 * seconds)).decode()


def pdf(pages: int, text: str, *, deflate: bool = True) -> bytes:
    """A document of some pages with the same text on each."""
    content = f"BT /F1 12 Tf ({text}) Tj ET".encode()
    packed = zlib.compress(content) if deflate else content
    body = b"%%PDF-1.4\n1 0 obj<</Type /Pages /Count %d>>endobj\n" % pages
    for _ in range(pages):
        body += b"2 0 obj<</Type /Page /Parent 1 0 R>>endobj\n"
        body += b"3 0 obj<</Length %d>>stream\n" % len(packed) + packed + b"\nendstream endobj\n"
    return body + b"%%EOF"


def url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
