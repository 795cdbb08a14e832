"""Redaction: secrets never reach a card, a log or an export. The digest still covers the true value.

A value is hidden by its name, by its schema, by its shape, or because it repeats one that is hidden by its
name or schema (`secrets_in`). Texts are hostile, so shapes are found by a linear engine (RE2).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import re2

from bot.domain.proposals import PreviewField, canonical

HIDDEN = "••••••"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset({
    "password", "passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token",
    "tokens",
    "credential", "credentials", "creds", "cookie", "cookies", "otp", "totp", "jwt",
    "authorization", "apikey",
    "apikeys", "privatekey", "secretkey", "accesskey",
})  # fmt: skip
_SECRET_LAST = frozenset({"pass", "auth", "pin"})
_SECRET_KEYS = frozenset({"api", "private", "access", "signing", "encryption", "ssh", "master", "account"})
_COUNTED = frozenset({"token", "tokens", "cookie", "cookies", "secret", "secrets"})  # max_tokens is a number

_SHAPES = (
    r"xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}",  # Slack
    r"\d{6,12}:[\w-]{30,}",  # Telegram, also where "bot" stands before it
    r"\b[MNO][\w-]{22,30}\.[\w-]{6}\.[\w-]{27,}",  # Discord
    r"\b[srp]k_(?:live|test)_\w{10,}|\bwhsec_[\w+/=]{16,}|\bsk-[\w-]{16,}",  # Stripe, OpenAI
    r"\bgh[opsur]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}",  # GitHub, GitLab
    r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b",  # AWS, by its prefix; the secret half is in _TESTED
    r"\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bGOCSPX-[\w-]{16,}",  # Google
    r"\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{24,}|\bpypi-[\w-]{24,}|\bdckr_pat_[\w-]{16,}",
    r"\bdop_v1_[a-f0-9]{32,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bshp(?:at|ss|ca|pa)_[a-fA-F0-9]{24,}",
    r"\bhvs\.[\w-]{20,}|\blin_api_\w{20,}|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # a JSON Web Token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----|(?s:.*))",
)
_NAMES = r"password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
_KEPT = (
    rf"(?P<set>(?i:{_NAMES})=)(?:[^\s\"'&;,$<{{(*=][^\s\"'&;,]*)",  # --password=x, DB_PASSWORD=x
    rf"(?P<quote>(?i:{_NAMES})[\"']?\s{{0,3}}[:=]\s{{0,3}})(?:\"[^\"\n]+\"|'[^'\n]+')",  # "password": "x"
    r"(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@\"']*:)(?:[^\s/@\"']+)@",  # postgres://u:p@h
)
_TESTED = (
    r"(?P<scheme>\b(?i:bearer|basic)\s{1,3})(?:[\w.~+/-]{8,}=*)",
    r"(?P<random>\b[A-Za-z0-9/+]{40}\b)",  # the secret half of an AWS key
)
_DOTS = HIDDEN.encode()
_MOST = 2000  # secrets of one text
_LONGEST_NAME = 64  # characters of a name that is kept in memory
_SHORTEST = 3  # characters; what is shorter is in too many words
_MOST_STEPS = 100_000
_HERE = ("allOf", "anyOf", "oneOf")  # what else a schema says of the same value
_HERE_ONE = ("if", "then", "else", "not")


def _linear(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, which need not be UTF-8
    options.log_errors = False
    return re2.compile(pattern.encode(), options=options)


_SECRET = _linear("|".join((*_SHAPES, *_KEPT, *_TESTED)))
_GROUPS = {name: _SECRET.groupindex[name.encode()] for name in ("set", "quote", "url", "scheme", "random")}


def redact_text(text: str, secrets: Sequence[str] = ()) -> str:
    """Replace what looks like a secret, wherever it stands in the text, and every one of ``secrets``."""
    text = veil(text, secrets)
    raw = text.encode(errors="surrogatepass")
    kept: list[bytes] = []
    end = 0
    for count, found in enumerate(_SECRET.finditer(raw)):
        if count == _MOST:  # no honest text has so many; the rest is not looked through
            return b"".join((*kept, _DOTS)).decode(errors="surrogatepass")
        kept += (raw[end : found.start()], _replace_secret(found))
        end = found.end()
    if kept:
        return b"".join((*kept, raw[end:])).decode(errors="surrogatepass")
    return text


def veil(text: str, secrets: Sequence[str]) -> str:
    """Replace every one of ``secrets``, and nothing else."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def _replace_secret(found: Any) -> bytes:
    whole: bytes = found.group()
    name = next((name for name, number in _GROUPS.items() if found.start(number) >= 0), "")
    kept: bytes = found.group(_GROUPS[name]) if name else b""
    if name == "quote":
        mark = whole[-1:]
        return kept + mark + _DOTS + mark
    if name == "url":
        return kept + _DOTS + b"@"
    if name == "scheme":
        said = whole[len(kept) :].decode()
        by_chance = said.isalpha() and (said.islower() or said.istitle())  # "basic understanding"
        return whole if by_chance else kept + _DOTS
    if name == "random":
        if _random(whole.decode()):
            return _DOTS
        return whole
    return kept + _DOTS


def _random(text: str) -> bool:
    """Return whether 40 letters look drawn by chance: no digest in hex, no path of words."""
    kinds = (str.isupper, str.islower, str.isdigit)
    if not all(any(map(kind, text)) for kind in kinds):
        return False
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares) > 4.4  # noqa: PLR2004 - bits; words have about 4


def redact(value: Any, schema: Mapping[str, Any] | None = None, secrets: Sequence[str] = ()) -> Any:
    """Copy JSON data without its secrets.

    A property is secret by a word of its name, by ``"writeOnly": true`` or ``"format": "password"`` in what
    the schema says of it (JSON Schema's own words for it), or by a value that looks like a known kind of key;
    so is what repeats one of ``secrets``.
    """
    return _Hiding(schema, secrets).copy(value)


def redact_arguments(arguments: Any, schema: Mapping[str, Any] | None = None) -> Any:
    """Return a call's arguments redacted, also where one repeats what another one hides."""
    return redact(arguments, schema, secrets_in(arguments, schema))


def secrets_in(arguments: Any, schema: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the values that `redact` hides for their name or schema, as texts may repeat them.

    Longest first.
    """
    hiding = _Hiding(schema, texts=False)
    hiding.copy(arguments)
    found = {text for value in hiding.hidden for text in _texts(value) if len(text) > _SHORTEST}
    escaped = {json.dumps(text, ensure_ascii=plain)[1:-1] for text in found for plain in (True, False)}
    return tuple(sorted(found | escaped, key=len, reverse=True))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


class _Hiding:
    """Copies one value by one schema; ``hidden`` is what was left out for its name or schema.

    ``texts`` False leaves all others as they are: for whom only ``hidden`` matters.

    Every part of the schema that could apply to a value counts, whether it does or not: it is enough that one
    calls it secret. A schema that takes too many steps hides all that is left.
    """

    def __init__(
        self, schema: Mapping[str, Any] | None, secrets: Sequence[str] = (), *, texts: bool = True
    ) -> None:
        self.hidden: list[Any] = []
        self._texts = texts
        self._root = schema or {}
        self._secrets = secrets
        self._steps = 0
        self._marked = _marks(self._root)

    def copy(self, value: Any) -> Any:
        return self._copy(value, self._whole([self._root]) if self._marked else [])

    def _copy(self, value: Any, parts: list[Mapping[str, Any]]) -> Any:
        if value is not None and (self._steps > _MOST_STEPS or any(map(_is_secret, parts))):
            self.hidden.append(value)
            return HIDDEN
        if isinstance(value, str):
            if self._texts:
                return redact_text(value, self._secrets)
            return value
        if isinstance(value, Mapping):
            copied = {}
            for key, item in value.items():
                if _is_named_like_secret(key, item):
                    self.hidden.append(item)
                    copied[key] = HIDDEN
                else:
                    copied[key] = self._copy(item, self._whole(_of_property(parts, key)))
            return copied
        if isinstance(value, list | tuple):
            return [self._copy(item, self._whole(_of_item(parts, n))) for n, item in enumerate(value)]
        if self._secrets and isinstance(value, int | float) and str(value) in self._secrets:
            return HIDDEN
        return value

    def _whole(self, parts: Sequence[Any]) -> list[Mapping[str, Any]]:
        """Return the parts and all that they refer to or are combined of."""
        found: dict[int, Mapping[str, Any]] = {}
        waiting = list(parts)
        while waiting and self._steps <= _MOST_STEPS:
            part = waiting.pop()
            if not isinstance(part, Mapping) or id(part) in found:
                continue
            self._steps += 1
            found[id(part)] = part
            waiting += [one for word in _HERE for one in _as_list(part.get(word))]
            waiting += [part.get(word) for word in _HERE_ONE]
            waiting += _values(part.get("dependentSchemas"))
            waiting += [find_referred(self._root, part.get(word)) for word in ("$ref", "$dynamicRef")]
        return list(found.values())


def find_referred(root: Any, reference: Any) -> Any:
    """Resolve a local reference in a schema, such as ``#/$defs/Name``; None where it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, Mapping):
            place = place.get(name)
        elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        else:
            return None
    return place


def _is_named_like_secret(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return False
    known, otherwise = (_known_words if len(name) <= _LONGEST_NAME else _secret_words)(name)
    return otherwise or bool(known - _COUNTED if isinstance(value, int | float) else known)


def _secret_words(name: str) -> tuple[frozenset[str], bool]:
    """Return the words in a name that make it secret, and True if anything else in it does."""
    words = [word.lower() for word in _WORD.findall(name)]
    keys = any(one in _SECRET_KEYS and two in ("key", "keys") for one, two in pairwise(words))
    return _SECRET_WORDS.intersection(words), keys or not _SECRET_LAST.isdisjoint(words[-1:])


_known_words = lru_cache(maxsize=2048)(_secret_words)


def _is_secret(part: Mapping[str, Any]) -> bool:
    return bool(part.get("writeOnly")) or part.get("format") == "password"


def _marks(schema: Any) -> bool:
    """Return whether a schema calls anything secret at all; most do not."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if _is_secret(part):
                return True
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False


def _of_property(parts: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        named = part.get("properties")
        found += [named[name]] if isinstance(named, Mapping) and name in named else []
        found += _values(part.get("patternProperties"))
        found += [part.get("additionalProperties"), part.get("unevaluatedProperties")]
    return found


def _of_item(parts: Sequence[Mapping[str, Any]], number: int) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        for word in ("prefixItems", "items"):
            found += _as_list(part.get(word))[number : number + 1]
        found += [part.get(word) for word in ("items", "additionalItems", "unevaluatedItems", "contains")]
    return found


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return []


def _values(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return []


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], schema: Mapping[str, Any] | None = None
) -> tuple[PreviewField, ...]:
    """Return the changed properties as text for people; secrets are hidden, also where they changed."""
    secrets = (*secrets_in(before, schema), *secrets_in(after, schema))
    old, new = redact(before, schema, secrets), redact(after, schema, secrets)
    return tuple(
        PreviewField(name, _text(old, name), _text(new, name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name) or (name in before) != (name in after)
    )


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None or isinstance(value, str):
        return value
    return canonical(value)
