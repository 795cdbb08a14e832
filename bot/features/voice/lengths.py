"""The length of a recording, read from its bytes, for formats that tell it. Pure.

Each function looks for one field of its format and trusts it: no file is decoded. Bytes that don't fit the
format raise errors, which `measure_seconds` takes as "not known". `struct` formats: ``<`` and ``>`` give the
order of the bytes, ``I`` is a number of 4 bytes, ``Q`` of 8, and ``8x`` skips 8 bytes.
"""

import struct

_MAX_HEADER_BYTES = 70_000  # the bytes at the beginning in which a header field is looked for
_OGG_PAGE = b"OggS"  # the mark at the beginning of each page
_NO_POSITION = 0xFFFFFFFFFFFFFFFF  # the position of a page on which no packet ends
_OPUS_RATE = 48_000  # samples a second in positions of Opus, whatever the rate of the recording
# identifiers of elements in WebM, which is Matroska
_WEBM_CLUSTER = b"\x1f\x43\xb6\x75"  # a part of the recording
_WEBM_TIME = 0xE7  # the time of a cluster, in units of the scale
_WEBM_SCALE = b"\x2a\xd7\xb1"  # the nanoseconds of one unit
_DEFAULT_SCALE_NANOSECONDS = 1_000_000
# the bit rate by its index in a frame's header, for MPEG 1, layer 3
_MP3_KBITS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_AMR_FRAME_BYTES = 32  # a frame of AMR at the highest rate
_AMR_FRAME_SECONDS = 0.02


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
    """Return the length by the position of the last page that has a position (RFC 3533, RFC 7845).

    A position counts samples: in Opus at a fixed rate, in Vorbis at the rate of its header.
    """
    rate = _OPUS_RATE
    vorbis = data.find(b"\x01vorbis", 0, _MAX_HEADER_BYTES)
    if vorbis >= 0:
        (rate,) = struct.unpack_from("<I", data, vorbis + 12)  # after the mark, the version and the channels
    at = len(data)
    while True:
        at = data.rindex(_OGG_PAGE, 0, at)
        (position,) = struct.unpack_from("<Q", data, at + 6)  # after the mark, the version and the flags
        if position != _NO_POSITION:
            return float(position) / float(rate)


def _measure_wav(data: bytes) -> float:
    """Return the length by the byte rate in the chunk ``fmt``, as if all of the file were sound."""
    # after the mark, the chunk's size, the format, the channels and the sample rate
    (bytes_a_second,) = struct.unpack_from("<I", data, data.index(b"fmt ") + 16)
    return len(data) / float(bytes_a_second)


def _measure_flac(data: bytes) -> float:
    """Return the length by the rate and the number of samples in the first block (RFC 9639).

    Eight bytes have the rate in their first 20 bits, and the number of samples in their last 36.
    """
    (packed,) = struct.unpack_from(">Q", data, 18)  # after the mark, the block's header and four sizes
    samples = packed & 0xFFFFFFFFF
    rate = packed >> 44
    return float(samples) / float(rate)


def _measure_mp3(data: bytes) -> float:
    """Estimate the length by the bit rate of the first frame after the tag, as if all had this rate."""
    at = 0
    if data[:3] == b"ID3":  # a tag, whose size has 7 bits in each of four bytes
        size = [byte & 0x7F for byte in data[6:10]]
        at = 10 + (size[0] << 21 | size[1] << 14 | size[2] << 7 | size[3])
    at = data.index(b"\xff", at)
    kilobits_a_second = _MP3_KBITS[data[at + 2] >> 4]  # the first 4 bits of the third byte are the index
    return (len(data) - at) * 8 / (kilobits_a_second * 1_000)


def _measure_amr(data: bytes) -> float:
    """Return the shortest length that the file can have, as if all frames had the highest rate."""
    return len(data) / _AMR_FRAME_BYTES * _AMR_FRAME_SECONDS


def _measure_mp4(data: bytes) -> float:
    """Return the length in the movie header (ISO 14496-12). A file in fragments has none, or 0."""
    at = data.index(b"mvhd") + 4
    is_version_1 = bool(data[at])  # version 1 has numbers of 8 bytes for times and the length
    form = ">16xIQ" if is_version_1 else ">8xII"
    units_a_second, units = struct.unpack_from(form, data, at + 4)
    if not units:
        raise ValueError("the header has no length")
    return float(units) / float(units_a_second)


def _measure_webm(data: bytes) -> float:
    """Return the time of the last cluster, since browsers' recordings have no length in their header.

    After an element's identifier comes a byte with the size of its value. The first bit of that byte only
    marks its form.
    """
    scale = _DEFAULT_SCALE_NANOSECONDS
    found = data.find(_WEBM_SCALE, 0, _MAX_HEADER_BYTES)
    if found >= 0:
        size = data[found + 3] & 0x7F
        scale = int.from_bytes(data[found + 4 : found + 4 + size], "big")
    at = data.rindex(_WEBM_CLUSTER) + len(_WEBM_CLUSTER)
    at = data.index(_WEBM_TIME, at)
    size = data[at + 1] & 0x7F
    return int.from_bytes(data[at + 2 : at + 2 + size], "big") * scale / 1e9
