"""Recordings with the heads and ends that real ones have, and no sound."""

import struct


def make_ogg(seconds: float) -> bytes:
    """A voice message of Telegram: Opus in Ogg; its last page tells the length (RFC 7845)."""
    head = b"OpusHead" + bytes([1, 1]) + struct.pack("<HIhB", 312, 48_000, 0, 0)
    return _page(0, head) + _page(0xFFFFFFFFFFFFFFFF, b"part") + _page(int(seconds * 48_000), b"sound")


def _page(position: int, body: bytes) -> bytes:
    return b"OggS\0\0" + struct.pack("<QIII", position, 1, 0, 0) + bytes([1, len(body)]) + body


def make_wav(seconds: float) -> bytes:
    data = bytes(int(seconds * 8_000))
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8_000, 8_000, 1, 8)
    return (
        b"RIFF"
        + struct.pack("<I", len(data) + 36)
        + b"WAVE"
        + head
        + struct.pack("<4sI", b"data", len(data))
        + data
    )


def make_webm(seconds: float) -> bytes:
    """What MediaRecorder gives in Chromium: no length in the head, and the time of each cluster."""
    head = b"\x1aE\xdf\xa3\x80" + b"\x2a\xd7\xb1\x83\x0f\x42\x40"
    first = b"\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff\xe7\x81\x00" + b"sound"
    last = b"\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff\xe7\x84" + struct.pack(
        ">I", int(seconds * 1_000)
    )
    return head + first + last + b"sound"


def make_m4a(seconds: float) -> bytes:
    movie = b"mvhd" + bytes(4) + bytes(8) + struct.pack(">II", 1_000, int(seconds * 1_000))
    return struct.pack(">I", 24) + b"ftypM4A " + bytes(12) + struct.pack(">I", len(movie) + 4) + movie


def make_flac(seconds: float) -> bytes:
    packed = (16_000 << 44) | int(seconds * 16_000)
    return b"fLaC\0\0\0\x22" + bytes(10) + struct.pack(">Q", packed) + bytes(16)


def make_mp3(seconds: float) -> bytes:
    """64 kbit/s after a tag."""
    tag = b"ID3\4\0\0" + bytes([0, 0, 0, 10]) + bytes(10)
    return tag + b"\xff\xfb\x50\xc4" + bytes(int(seconds * 8_000) - 4)
