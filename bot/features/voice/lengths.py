"""The length of a recording, read from its bytes, for formats that tell it. Pure."""

import struct

MAX_SCAN_BYTES = 70_000  # the bytes at the end, in which the last page or cluster begins
_OGG_PAGE, _NO_POSITION = b"OggS", 0xFFFFFFFFFFFFFFFF
_OPUS_RATE = 48_000  # positions in Opus are counted at this rate, whatever the recording's own
_WEBM_CLUSTER, _WEBM_TIME, _WEBM_SCALE = b"\x1f\x43\xb6\x75", 0xE7, b"\x2a\xd7\xb1"
_DEFAULT_SCALE_NANOSECONDS = 1_000_000
_MP3_KBITS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)  # MPEG 1, layer 3
_AMR_FRAME_BYTES, _AMR_FRAME_SECONDS = 32, 0.02  # a frame of AMR at the highest rate


def measure_seconds(kind: str, data: bytes) -> float | None:
    """Return the length of a recording in seconds; None if the format does not tell it."""
    measure = {
        "audio/ogg": _measure_ogg,
        "audio/wav": _measure_wav,
        "audio/flac": _measure_flac,
        "audio/mpeg": _measure_mp3,
        "audio/amr": _measure_amr,
        "audio/mp4": _measure_mp4,
        "video/mp4": _measure_mp4,
        "video/webm": _measure_webm,
    }.get(kind)
    if measure is None:
        return None
    try:
        return measure(data)
    except (struct.error, IndexError, ValueError, ZeroDivisionError):
        return None


def _measure_ogg(data: bytes) -> float:
    """Return the length by the position of the last page that has a position (RFC 3533, RFC 7845)."""
    rate = _OPUS_RATE
    vorbis = data.find(b"\x01vorbis", 0, MAX_SCAN_BYTES)
    if vorbis >= 0:
        (rate,) = struct.unpack_from("<I", data, vorbis + 12)
    at = len(data)
    while True:
        at = data.rindex(_OGG_PAGE, 0, at)
        (position,) = struct.unpack_from("<Q", data, at + 6)
        if position != _NO_POSITION:
            return float(position) / float(rate)


def _measure_wav(data: bytes) -> float:
    (bytes_a_second,) = struct.unpack_from("<I", data, data.index(b"fmt ") + 16)
    return len(data) / float(bytes_a_second)


def _measure_flac(data: bytes) -> float:
    """Return the length by the rate and the number of samples in the first block (RFC 9639)."""
    (packed,) = struct.unpack_from(">Q", data, 18)
    return float(packed & 0xFFFFFFFFF) / float(packed >> 44)


def _measure_mp3(data: bytes) -> float:
    """Estimate the length by the bit rate of the first frame after the tag."""
    at = 0
    if data[:3] == b"ID3":
        size = [each & 0x7F for each in data[6:10]]
        at = 10 + (size[0] << 21 | size[1] << 14 | size[2] << 7 | size[3])
    at = data.index(b"\xff", at)
    return (len(data) - at) * 8 / (_MP3_KBITS[data[at + 2] >> 4] * 1_000)


def _measure_amr(data: bytes) -> float:
    return len(data) / _AMR_FRAME_BYTES * _AMR_FRAME_SECONDS


def _measure_mp4(data: bytes) -> float:
    """Return the length in the movie header (ISO 14496-12), which a file in fragments does not have."""
    at = data.index(b"mvhd") + 4
    form = ">16xIQ" if data[at] else ">8xII"
    scale, length = struct.unpack_from(form, data, at + 4)
    if not length:
        raise ValueError(length)
    return float(length) / float(scale)


def _measure_webm(data: bytes) -> float:
    """Return the time of the last cluster: browsers' recordings have no length in their header."""
    scale = _DEFAULT_SCALE_NANOSECONDS
    found = data.find(_WEBM_SCALE, 0, MAX_SCAN_BYTES)
    if found >= 0:
        width = data[found + 3] & 0x7F
        scale = int.from_bytes(data[found + 4 : found + 4 + width], "big")
    at = data.rindex(_WEBM_CLUSTER) + len(_WEBM_CLUSTER)
    at = data.index(_WEBM_TIME, at)
    width = data[at + 1] & 0x7F
    return int.from_bytes(data[at + 2 : at + 2 + width], "big") * scale / 1e9
