"""The encoding of text that does not say it: chardet's candidates, and what they make of the words.

Of a short text chardet is sure of little. A reading that puts a symbol, a capital or a letter of another
script inside a word is hardly the right one, and without evidence Windows' is the likeliest.
"""

import re

_MAX_DETECTED_BYTES = 200_000
_EVERYDAY = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be",
    "iso-2022-jp", "iso2022_jp_2", "iso2022_kr", "cp932", "euc-jp", "cp949", "gb18030", "big5", "big5hkscs",
    "cp874", "koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp866", "mac-roman", "iso8859-2", "iso8859-5",
    "iso8859-15", *(f"cp{number}" for number in range(1250, 1259)),
)  # fmt: skip
_LIKELIEST = "Windows-1252"
_WEIGHTS = {_LIKELIEST: 1.5}
_WINDOWS_WEIGHT, _MAC_WEIGHT, _MAC_WITH_CRLF_WEIGHT = 1.2, 1.1, 0.5
_MIN_CONFIDENCE = 0.02
_ODD_WEIGHT, _MAX_ODD_SHARE = 4, 0.95
_ODD = re.compile(
    r"""(?<=[^\W\d_])[^\w\s\u2018\u2019\u2011\x00-\x7f](?=[^\W\d_])  # a symbol in a word
    | [\x80-\x9f\ufffd] | [\u2500-\u259f]  # nothing that is printed, or a frame
    | (?<=[A-Za-z])[\u0370-\u06ff] | [\u0370-\u06ff](?=[A-Za-z])  # two scripts in a word""",
    re.VERBOSE,
)


def detect_encoding(data: bytes) -> str:
    """Return the likeliest encoding by a name that Python knows; empty where the bytes are no text."""
    import chardet

    begin = data[:_MAX_DETECTED_BYTES]
    candidates = chardet.detect_all(begin, ignore_threshold=True, include_encodings=_EVERYDAY)
    scores = {
        each["encoding"]: _score(each["encoding"], each["confidence"], begin)
        for each in candidates
        if each["encoding"]
    }
    if not scores:
        return ""
    best = max(scores, key=lambda name: scores[name])
    is_unsure = max(each["confidence"] for each in candidates) < _MIN_CONFIDENCE
    if is_unsure and scores.get(_LIKELIEST) and not _count_odd(begin.decode("cp1252", errors="replace")):
        return _LIKELIEST
    return best


def _score(name: str, confidence: float, data: bytes) -> float:
    weight = _WEIGHTS.get(name, 1.0)
    if name.startswith("Windows") and name != _LIKELIEST:
        weight = _WINDOWS_WEIGHT
    elif name.startswith("Mac"):
        weight = _MAC_WITH_CRLF_WEIGHT if b"\r\n" in data else _MAC_WEIGHT
    high = len(data) - len(data.translate(None, bytes(range(128, 256))))
    odd = _count_odd(data.decode(name, errors="replace"))
    return confidence * weight * (1 - min(_MAX_ODD_SHARE, _ODD_WEIGHT * odd / max(1, high)))


def _count_odd(text: str) -> int:
    triples = zip(text, text[1:], text[2:], strict=False)
    capitals = sum(
        1
        for one, two, three in triples
        if two > "\x7f" and one.islower() and two.isupper() and three.islower()
    )
    return len(_ODD.findall(text)) + capitals
