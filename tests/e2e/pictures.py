"""Images for tests, made here. Uses only Python's standard library."""

import base64
import struct
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=64, height=64, rgb=(255, 0, 0), packed=None):
    """A PNG of one colour. `packed` replaces its compressed pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress((b"\0" + bytes(rgb) * width) * height) if packed is None else packed
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def bmp(width=64, height=64, rgb=(255, 0, 0)):
    row = bytes(rgb[::-1]) * width
    row += b"\0" * (-len(row) % 4)
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(row) * height, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(row) * height, 0, 0, 54) + header + row * height


def text64(image):
    return base64.b64encode(image).decode()


def url(image, kind="png"):
    return f"data:image/{kind};base64,{text64(image)}"
