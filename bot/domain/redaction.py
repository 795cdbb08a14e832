"""Redaction: texts and JSON for cards, logs and exports, with dots in place of secrets. Pure.

A value is a secret by its name (``api_key``), by its schema (``writeOnly``), by its shape (``ghp_…``), or
because it repeats a value that is secret by name or schema (`secrets_in`). `redact` puts the dots into JSON,
`redact_text` into a text. The digest by which people approve a call (`Proposal.digest`) is made of the true
values. Texts are hostile, so shapes are found by an engine that takes linear time (RE2).
"""

import json
import math
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import unquote

import re2

from bot.domain.digests import to_canonical_json
from bot.domain.preview import PreviewField

HIDDEN = "••••••"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset({
    "password", "passwords", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "token",
    "tokens",
    "credential", "credentials", "creds", "cookie", "cookies", "otp", "totp", "jwt",
    "authorization", "apikey",
    "apikeys", "privatekey", "secretkey", "accesskey",
})  # fmt: skip
"""Words that make a name secret, wherever they stand in it."""
_SECRET_LAST_WORDS = frozenset({"pass", "auth", "pin"})
"""Words that make a name secret at its end."""
_SECRET_KEYS = frozenset({"api", "private", "access", "signing", "encryption", "ssh", "master", "account"})
"""Words that make a name secret before "key"."""
_COUNTED_WORDS = frozenset({"token", "tokens", "cookie", "cookies", "secret", "secrets"})
"""Words for things that are counted: where the value is a number, as of ``max_tokens``, it is no secret."""

_SHAPES = (
    r"xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}",  # Slack
    r"\d{6,12}:[\w-]{30,}",  # Telegram, also after "bot"
    r"\b[MNO][\w-]{22,30}\.[\w-]{6}\.[\w-]{27,}",  # Discord
    r"\b[srp]k_(?:live|test)_\w{10,}|\bwhsec_[\w+/=]{16,}|\bsk-[\w-]{16,}",  # Stripe, OpenAI
    r"\bgh[opsur]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}",  # GitHub, GitLab
    r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b",  # AWS, by its prefix; the secret half is in _AMBIGUOUS
    r"\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bGOCSPX-[\w-]{16,}",  # Google
    r"\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{24,}|\bpypi-[\w-]{24,}|\bdckr_pat_[\w-]{16,}",
    r"\bdop_v1_[a-f0-9]{32,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bshp(?:at|ss|ca|pa)_[a-fA-F0-9]{24,}",
    r"\bhvs\.[\w-]{20,}|\blin_api_\w{20,}|\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # a JSON Web Token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----|(?s:.*))",
)
_NAME_WORDS = r"password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
# the following have a named group, the text in front of the secret: it stays. By the group's name
# `_replace_secret` knows which pattern it was
_AFTER_NAMES = (
    rf"(?P<set>(?i:{_NAME_WORDS})=)(?:[^\s\"'&;,$<{{(*=][^\s\"'&;,]*)",  # DB_PASSWORD=x
    rf"(?P<quote>(?i:{_NAME_WORDS})[\"']?\s{{0,3}}[:=]\s{{0,3}})(?:\"[^\"\n]+\"|'[^'\n]+')",  # "token": "x"
    r"(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@\"']*:)(?:[^\s/@\"']+)@",  # postgres://u:p@h
)
# a match of these is not always a secret: `_replace_secret` decides, by the name of the group
_AMBIGUOUS = (
    r"(?P<scheme>\b(?i:bearer|basic)\s{1,3})(?:[\w.~+/-]{8,}=*)",
    r"(?P<random>\b[A-Za-z0-9/+]{40}\b)",  # the secret half of an AWS key
)
_DOTS = HIDDEN.encode()
_MAX_SECRETS = 2000  # the most secrets that are looked for in one text
_MAX_CACHED_NAME_CHARS = 64  # longer names are not cached, since they may be anything
_MAX_SHORT_CHARS = 3  # a value of this length is a part of too many words to be hidden in them
_MAX_STEPS = 100_000  # the most parts of a schema that are read
_MIN_RANDOM_BITS = 4.4  # bits of entropy a letter: random texts have more, paths of words about 4
# the keywords of JSON Schema whose subschemas are about the same value as the schema that has the keyword,
# and not about its properties or items: keywords with a list of subschemas, and keywords with one
_LISTS_OF_PARTS = ("allOf", "anyOf", "oneOf")
_SINGLE_PARTS = ("if", "then", "else", "not")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes, which need not be UTF-8
    options.log_errors = False
    return re2.compile(pattern.encode(), options=options)


_SECRET = _compile("|".join((*_SHAPES, *_AFTER_NAMES, *_AMBIGUOUS)))
# the number of each named group: it has what stays in front of the secret
_GROUPS = {name: _SECRET.groupindex[name.encode()] for name in ("set", "quote", "url", "scheme", "random")}


def redact_text(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text with dots in place of what has the shape of a secret, and of each of ``secrets``."""
    text = hide_values(text, secrets)
    raw = text.encode(errors="surrogatepass")
    parts: list[bytes] = []
    end = 0
    for count, match in enumerate(_SECRET.finditer(raw)):
        if count == _MAX_SECRETS:  # no honest text has more: hide all that follows
            return b"".join((*parts, _DOTS)).decode(errors="surrogatepass")
        parts += (raw[end : match.start()], _replace_secret(match))
        end = match.end()
    if parts:
        return b"".join((*parts, raw[end:])).decode(errors="surrogatepass")
    return text


def hide_values(text: str, secrets: Sequence[str]) -> str:
    """Return a text with dots in place of each of ``secrets``, and of nothing else."""
    for secret in sorted(secrets, key=len, reverse=True):  # the longest first: one may be a part of another
        text = text.replace(secret, HIDDEN)
    return text


def _replace_secret(match: Any) -> bytes:
    """Return the match with dots instead of the secret; the match itself if it is no secret after all."""
    text: bytes = match.group()
    matched_groups = [name for name, number in _GROUPS.items() if match.start(number) >= 0]
    if not matched_groups:
        return _DOTS
    name = matched_groups[0]
    before: bytes = match.group(_GROUPS[name])
    if name == "quote":
        mark = text[-1:]
        return before + mark + _DOTS + mark
    if name == "url":
        return before + _DOTS + b"@"
    if name == "scheme":
        word = text[len(before) :].decode()
        is_plain_word = word.isalpha() and (word.islower() or word.istitle())  # "basic understanding"
        return text if is_plain_word else before + _DOTS
    if name == "random":
        return _DOTS if _looks_random(text.decode()) else text
    return before + _DOTS


def _looks_random(text: str) -> bool:
    """Return whether 40 letters look drawn by chance: no digest in hex, no path of words."""
    has_all_kinds = (
        any(map(str.isupper, text)) and any(map(str.islower, text)) and any(map(str.isdigit, text))
    )
    if not has_all_kinds:
        return False
    shares = [count / len(text) for count in Counter(text).values()]
    bits = -sum(share * math.log2(share) for share in shares)
    return bits > _MIN_RANDOM_BITS


def redact(value: Any, schema: Mapping[str, Any] | None = None, secrets: Sequence[str] = ()) -> Any:
    """Copy JSON data without its secrets.

    These are secrets:

    - a property whose name has a word such as "password"
    - a property with ``"writeOnly": true`` or ``"format": "password"`` in the schema
    - a text that looks like a known kind of key
    - anything that repeats one of ``secrets``
    """
    return _Redactor(schema, secrets).copy(value)


def redact_arguments(arguments: Any, schema: Mapping[str, Any] | None = None) -> Any:
    """Return a call's arguments redacted, also where one repeats what another one hides."""
    return redact(arguments, schema, secrets_in(arguments, schema))


def secrets_in(arguments: Any, schema: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the values that `redact` hides for their name or schema, as texts may repeat them.

    A value that JSON writes with escapes comes in that form, too. The longest values come first.
    """
    redactor = _Redactor(schema, redacts_texts=False)
    redactor.copy(arguments)
    secrets: set[str] = set()
    for value in redactor.hidden:
        for text in _list_texts(value):
            if len(text) > _MAX_SHORT_CHARS:
                secrets |= {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return tuple(sorted(secrets, key=len, reverse=True))


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _list_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


class _Redactor:
    """Copies one JSON value without its secrets, by one schema.

    The copy walks down the value, together with the *parts* of the schema, its subschemas, that could apply
    to the value it has reached. A value is secret if any of these parts says so; that the part does apply is
    not checked. Once the schema has taken too many steps, all values that are left are hidden.
    """

    def __init__(
        self, schema: Mapping[str, Any] | None, secrets: Sequence[str] = (), *, redacts_texts: bool = True
    ) -> None:
        """``redacts_texts`` False: leave texts as they are, for a caller that needs only ``hidden``."""
        self.hidden: list[Any] = []  # the values that were hidden for their name or schema
        self._redacts_texts = redacts_texts
        self._root = schema or {}
        self._secrets = secrets
        self._steps = 0
        self._has_secret_parts = _has_secret_parts(self._root)

    def copy(self, value: Any) -> Any:
        parts = self._expand([self._root]) if self._has_secret_parts else []
        return self._copy(value, parts)

    def _copy(self, value: Any, parts: list[Mapping[str, Any]]) -> Any:
        """Copy a value; ``parts``: all parts of the schema that could apply to it."""
        has_given_up = self._steps > _MAX_STEPS  # then all is hidden
        is_secret = has_given_up or any(_is_secret(part) for part in parts)
        if is_secret and value is not None:
            self.hidden.append(value)
            return HIDDEN
        if isinstance(value, str):
            return redact_text(value, self._secrets) if self._redacts_texts else value
        if isinstance(value, Mapping):
            copied = {}
            for key, item in value.items():
                if _is_named_like_secret(key, item):
                    self.hidden.append(item)
                    copied[key] = HIDDEN
                else:
                    copied[key] = self._copy(item, self._expand(_list_property_parts(parts, key)))
            return copied
        if isinstance(value, list | tuple):
            return [self._copy_item(item, number, parts) for number, item in enumerate(value)]
        if self._secrets and isinstance(value, int | float) and str(value) in self._secrets:
            return HIDDEN
        return value

    def _copy_item(self, item: Any, number: int, parts: Sequence[Mapping[str, Any]]) -> Any:
        return self._copy(item, self._expand(_list_item_parts(parts, number)))

    def _expand(self, parts: Sequence[Any]) -> list[Mapping[str, Any]]:
        """Return these parts, and all parts about the same value that they refer to or combine."""
        expanded: dict[int, Mapping[str, Any]] = {}  # by identity: references may lead in a circle
        followed: set[str] = set()
        waiting = list(parts)
        while waiting and self._steps <= _MAX_STEPS:
            part = waiting.pop()
            if not isinstance(part, Mapping) or id(part) in expanded:
                continue
            self._steps += 1
            expanded[id(part)] = part
            for keyword in _LISTS_OF_PARTS:
                waiting += _as_list(part.get(keyword))
            waiting += [part.get(keyword) for keyword in _SINGLE_PARTS]
            waiting += _list_values(part.get("dependentSchemas"))
            for reference in map(part.get, _REFERENCES):
                if isinstance(reference, str) and reference not in followed:
                    followed.add(reference)  # once: many parts may refer to an anchor that many parts have
                    waiting += self._list_referred(reference)
        return list(expanded.values())

    def _list_referred(self, reference: str) -> list[Any]:
        """Return the parts that a reference may mean: several, if several have its anchor."""
        fragment = _read_fragment(reference)
        if fragment is None:
            return []
        if _is_pointer(fragment):
            return [_follow_pointer(self._root, fragment)]
        return self._anchors.get(fragment, [])

    @cached_property
    def _anchors(self) -> Mapping[str, list[Any]]:
        return _list_anchored(self._root)


def find_referred(root: Any, reference: Any) -> Any:
    """Resolve a local reference in a schema; None where it leads nowhere.

    It has a JSON pointer (``#/$defs/Name``), an anchor (``#name``), or nothing (``#``), which is the root.
    """
    fragment = _read_fragment(reference)
    if fragment is None:
        return None
    if _is_pointer(fragment):
        return _follow_pointer(root, fragment)
    anchored = _recall_anchored(_SchemaKey(root)).get(fragment)
    return anchored[0] if anchored else None


class _SchemaKey:
    """A schema as the key of a cache: two are equal if they hold the same object."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SchemaKey) and other.schema is self.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=8)
def _recall_anchored(key: _SchemaKey) -> Mapping[str, list[Any]]:
    """Return `_list_anchored` of a schema, which may have thousands of references."""
    return _list_anchored(key.schema)


def _read_fragment(reference: Any) -> str | None:
    """Return the part of a local reference after its ``#``, percent-decoded; None for any other value."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    return unquote(reference[1:])


def _is_pointer(fragment: str) -> bool:
    return not fragment or fragment.startswith("/")


def _list_anchored(schema: Any) -> Mapping[str, list[Any]]:
    """Return the parts of a schema that have an anchor, by its name."""
    anchored: dict[str, list[Any]] = {}
    waiting = deque([schema])
    while waiting:
        part = waiting.popleft()
        if isinstance(part, Mapping):
            names = {part[word] for word in _ANCHORS if isinstance(part.get(word), str)}
            for name in names:
                anchored.setdefault(name, []).append(part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return anchored


def _follow_pointer(root: Any, pointer: str) -> Any:
    """Return the part of a schema at a JSON pointer; the root for an empty pointer, None for no part."""
    place = root
    for step in pointer.split("/")[1:]:
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
    find_signs = _find_secret_signs_cached if len(name) <= _MAX_CACHED_NAME_CHARS else _find_secret_signs
    signs = find_signs(name)
    words = signs.words
    if isinstance(value, int | float):
        words -= _COUNTED_WORDS
    return signs.is_key_or_pass or bool(words)


class _SecretSigns(NamedTuple):
    """The signs by which a name is secret."""

    words: frozenset[str]  # the words of the name that are in `_SECRET_WORDS`
    is_key_or_pass: bool  # True for a name such as ``api_key`` or ``db_pass``


def _find_secret_signs(name: str) -> _SecretSigns:
    words = [word.lower() for word in _WORD.findall(name)]
    is_key = any(word in _SECRET_KEYS and after in ("key", "keys") for word, after in pairwise(words))
    is_pass = bool(words) and words[-1] in _SECRET_LAST_WORDS
    return _SecretSigns(_SECRET_WORDS.intersection(words), is_key or is_pass)


_find_secret_signs_cached = lru_cache(maxsize=2048)(_find_secret_signs)


def _is_secret(part: Mapping[str, Any]) -> bool:
    return bool(part.get("writeOnly")) or part.get("format") == "password"


def _has_secret_parts(schema: Any) -> bool:
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


def _list_property_parts(parts: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the schemas, within the parts of an object's schema, that could apply to one property."""
    found: list[Any] = []
    for part in parts:
        properties = part.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            found.append(properties[name])
        found += _list_values(part.get("patternProperties"))
        found += [part.get("additionalProperties"), part.get("unevaluatedProperties")]
    return found


def _list_item_parts(parts: Sequence[Mapping[str, Any]], number: int) -> list[Any]:
    """Return the schemas, within the parts of a list's schema, that could apply to one item."""
    found: list[Any] = []
    for part in parts:
        # a list has a part for each item; "items" may be a list, or a single part for all further items
        for keyword in ("prefixItems", "items"):
            found += _as_list(part.get(keyword))[number : number + 1]
        found += [part.get(word) for word in ("items", "additionalItems", "unevaluatedItems", "contains")]
    return found


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else []


def list_differences(
    before: Mapping[str, Any], after: Mapping[str, Any], schema: Mapping[str, Any] | None = None
) -> tuple[PreviewField, ...]:
    """Return the properties in which two JSON objects differ, as texts for people without secrets."""
    secrets = (*secrets_in(before, schema), *secrets_in(after, schema))
    old = redact(before, schema, secrets)
    new = redact(after, schema, secrets)
    changed = []
    for name in dict.fromkeys((*before, *after)):
        is_in_both = name in before and name in after
        if not is_in_both or before[name] != after[name]:
            changed.append(PreviewField(name, _format_value(old, name), _format_value(new, name)))
    return tuple(changed)


def _format_value(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None or isinstance(value, str):
        return value
    return to_canonical_json(value)
