"""The encoding of text that does not say it: chardet's candidates, judged by the words that they give.

The library chardet returns candidates, each with its confidence. It is hardly ever sure of a short text. So
the confidence is changed by two more facts. Some encodings are more common than others. And an encoding is
hardly the right one if it gives *odd* characters. These are symbols, capitals and letters of another script
inside a word, control characters, and pieces of drawn frames.
"""

import re

_MAX_DETECTED_BYTES = 200_000
_CANDIDATE_ENCODINGS = (  # the only encodings that chardet may propose
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be",
    "iso-2022-jp", "iso2022_jp_2", "iso2022_kr", "cp932", "euc-jp", "cp949", "gb18030", "big5", "big5hkscs",
    "cp874", "koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp866", "mac-roman", "iso8859-2", "iso8859-5",
    "iso8859-15", *(f"cp{number}" for number in range(1250, 1259)),
)  # fmt: skip
_COMMONEST = "Windows-1252"  # as chardet names it
_COMMONEST_WEIGHT = 1.5
_WINDOWS_WEIGHT = 1.2
_MAC_WEIGHT = 1.1
_MAC_WITH_CRLF_WEIGHT = 0.5  # a Mac does not end lines that way
_MIN_CONFIDENCE = 0.02  # below it chardet knows nothing
_WORST_BYTES_PER_ODD = 4  # one odd character for so many bytes that are not ASCII: the full reduction
_MAX_ODD_SHARE = 0.95  # the most by which odd characters reduce the confidence
_NOT_ASCII = bytes(range(128, 256))
_ODD = re.compile(
    r"""(?<=[^\W\d_])[^\w\s\u2018\u2019\u2011\x00-\x7f](?=[^\W\d_])  # a symbol in a word
    | [\x80-\x9f\ufffd] | [\u2500-\u259f]  # control and replacement characters; pieces of frames
    | (?<=[A-Za-z])[\u0370-\u06ff] | [\u0370-\u06ff](?=[A-Za-z])  # two scripts in a word""",
    re.VERBOSE,
)


def detect_encoding(data: bytes) -> str:
    """Return the likeliest encoding by a name that Python knows; empty if the bytes are no text."""
    import chardet

    sample = data[:_MAX_DETECTED_BYTES]
    candidates = chardet.detect_all(sample, ignore_threshold=True, include_encodings=_CANDIDATE_ENCODINGS)
    scores: dict[str, float] = {}
    for candidate in candidates:
        name = candidate["encoding"]
        if name:
            scores[name] = _score(name, candidate["confidence"], sample)
    if not scores:
        return ""
    # chardet knows nothing, so the most common encoding is taken if it gives clean text
    is_unsure = max(candidate["confidence"] for candidate in candidates) < _MIN_CONFIDENCE
    if is_unsure and scores.get(_COMMONEST) and not _count_odd(sample.decode("cp1252", errors="replace")):
        return _COMMONEST
    return max(scores, key=lambda name: scores[name])


def _score(name: str, confidence: float, data: bytes) -> float:
    """Return chardet's confidence, weighted by how common the encoding is, and reduced by odd characters.

    The number of odd characters is divided by the number of bytes that are not ASCII, which is the same for
    each candidate.
    """
    weight = 1.0
    if name == _COMMONEST:
        weight = _COMMONEST_WEIGHT
    elif name.startswith("Windows"):
        weight = _WINDOWS_WEIGHT
    elif name.startswith("Mac"):
        weight = _MAC_WITH_CRLF_WEIGHT if b"\r\n" in data else _MAC_WEIGHT
    odd_chars = _count_odd(data.decode(name, errors="replace"))
    odd_share = min(_MAX_ODD_SHARE, _WORST_BYTES_PER_ODD * odd_chars / max(1, _count_not_ascii(data)))
    return confidence * weight * (1 - odd_share)


def _count_not_ascii(data: bytes) -> int:
    ascii_only = data.translate(None, _NOT_ASCII)
    return len(data) - len(ascii_only)


def _count_odd(text: str) -> int:
    """Return the number of odd characters in a text."""
    count = len(_ODD.findall(text))
    for before, char, after in zip(text, text[1:], text[2:], strict=False):
        # a capital between two small letters; in ASCII that is common ("GitHub")
        if char > "\x7f" and before.islower() and char.isupper() and after.islower():
            count += 1
    return count
