"""Conditions of rules on the arguments of a call: a small typed language, read with a bound.

    amount > 100 and currency in (EUR, USD)
    path matches "infra/**" or not (options.force = true)
    host(url) not in (docs.python.org, pypi.org)

The grammar, with words in any case::

    any    = all ("or" all)*
    all    = one ("and" one)*
    one    = "not" one | "(" any ")" | field compared
    compared = ("=" | "!=") value | ("<" | "<=" | ">" | ">=") NUMBER
             | ["not"] "in" "(" value ("," value)* ")" | ["not"] "matches" TEXT
             | "connection" "is" ("nod" | "person" | "place")
    field  = PATH | "host" "(" PATH ")"       where PATH is NAME ("." NAME | "." NUMBER)*
    value  = NUMBER | "true" | "false" | WORD | "quoted text"

``connection is person`` looks at the account under which the call is made, and at no argument.

A condition answers True or False, or None where that can't be told: a field is missing or of another kind,
the condition does not fit the tool, or spellings of one path, address or name disagree
(``bot/domain/spellings.py``). What a rule makes of None is told in ``bot/domain/rules.py``.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from bot.domain import spellings
from bot.domain.connections import Identity
from bot.domain.redaction import find_referred
from bot.domain.spellings import PATHS, Answer, NamedText, Referent
from bot.domain.text import host_of

Value = str | int | float | bool

LONGEST = 500  # characters of a condition
_DEEPEST = 8  # nested brackets and nots; names in a path; references in a schema
_EXAMPLE = "An example: where amount > 100 and currency in (EUR, USD)"
_TOKEN = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(<=|>=|!=|==|[=<>(),])|([^\s"'=<>!(),]+))""")
_QUOTES = str.maketrans("\u201c\u201d\u201e\u2018\u2019", '"""\'\'')  # as phones write them
_PATH = re.compile(r"[^\W\d][\w-]*(\.[\w-]+)*")
_DATE = re.compile(r"[12][0-9]{3}-[0-9]{2}")  # as a date begins: its year and month
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ENDS = re.compile(r"(to|into|from|target|new|old)([_A-Z].*)?$")  # fields that name an end of a move
_MISSING = object()
_SAME, _OTHER, _PART = "{0} = x", "{0} != x", '{0} matches "*x*"'
_BEGIN, _END, _ANY = '{0} matches "x*"', '{0} matches "*x"', "{0} in (x, y)"
_MORE, _LESS, _LEAST, _MOST = "{0} > 10", "{0} < 10", "{0} >= 10", "{0} <= 10"
_MEANT = {
    **dict.fromkeys(("is", "equals", "equal", "eq", "===", "be", "are", "like", "ilike", "~", "~="), _SAME),
    **dict.fromkeys(("isnt", "isn't", "<>", "ne", "neq", "differs", "unlike", "!", "!=="), _OTHER),
    **dict.fromkeys(
        ("contains", "contain", "has", "have", "includes", "include", "containing", "with"), _PART
    ),
    **dict.fromkeys(
        ("=~", "regex", "regexp", "rlike", "glob", "match", "matching", "similar", "search"), _PART
    ),
    **dict.fromkeys(
        ("starts", "startswith", "begins", "beginswith", "starting", "beginning", "prefix"), _BEGIN
    ),
    **dict.fromkeys(("under", "inside", "below_folder"), '{0} matches "x/**"'),
    **dict.fromkeys(("ends", "endswith", "ending", "suffix"), _END),
    **dict.fromkeys(("any", "one", "among", "of", "oneof", "either"), _ANY),
    **dict.fromkeys(("none", "nor", "outside", "except", "without"), "{0} not in (x, y)"),
    **dict.fromkeys(
        ("over", "above", "exceeds", "more", "greater", "gt", "larger", "bigger", "after"), _MORE
    ),
    **dict.fromkeys(("below", "less", "lower", "lt", "smaller", "fewer", "before"), _LESS),
    **dict.fromkeys(("at", "least", "gte", "ge", "min", "minimum", "from", "=>", "≥"), _LEAST),
    **dict.fromkeys(("most", "lte", "le", "max", "maximum", "upto", "up", "=<", "≤"), _MOST),
    **dict.fromkeys(("between", "within", "range", ".."), "{0} >= 10 and {0} <= 20"),
    **dict.fromkeys(("exists", "set", "given", "present", "empty", "null", "missing"), "{0} != x"),
}
"""How to write what people write after a field, by that word."""

_LIST = "a list"
_JSON_KINDS = {
    "boolean": "yes or no",
    "integer": "a number",
    "number": "a number",
    "string": "text",
    "array": _LIST,
    "object": "an object",
}


class ConditionError(ValueError):
    """A condition that does not parse; the message names the word that is wrong and gives an example."""


@dataclass(frozen=True, slots=True)
class ArgumentPath:
    """A place in the arguments, or the host of the address that stands there."""

    path: tuple[str, ...]
    host: bool = False

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def read(self, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
        """Return the value at this path, or the schema's default for an argument that is not given.

        `_MISSING` where there is no value, or no host in it.
        """
        found: Any = arguments
        for step in self.path:
            if isinstance(found, Mapping) and found.get(step) is not None:
                found = found[step]
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            elif found is arguments:
                found = _find_schema(schema, step).get("default")
            else:
                return _MISSING
        if found is None or not self.host:
            return _MISSING if found is None else found
        plain = isinstance(found, str) and not re.search(r"[\s\\\x00-\x1f]", found)
        if plain and host_of(found):
            return found
        return _MISSING


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """The arguments of a call, the tool's JSON schema, and the arguments that a condition names."""

    arguments: Mapping[str, Any]
    schema: Mapping[str, Any]
    named: frozenset[str]
    identity: Identity = Identity.NOD

    def other_paths(self) -> Iterator[tuple[str, str, Referent | None]]:
        """Yield each path among the other arguments, after its field's name, with what the tool declares."""
        listed = self.schema.get("properties")
        parts = listed if isinstance(listed, Mapping) else {}
        for key in sorted((self.arguments.keys() | parts.keys()) - self.named):
            part = parts.get(key)
            plain = [each for each in (part, *_plain(part or {}, self.schema)) if isinstance(each, Mapping)]
            kind = next(filter(None, map(spellings.find_declared, plain)), None)
            given = self.arguments.get(key)
            if given is None and isinstance(part, Mapping):
                given = part.get("default")
            for name, text in _texts(given, key):
                if (kind or spellings.guess_referent(name)) in PATHS:
                    yield name, text, kind

    def other_texts(self) -> Iterator[str]:
        """Yield each text among the other arguments that may be a path, if its name does not say so."""
        for key in sorted(self.arguments.keys() - self.named):
            for name, text in _texts(self.arguments[key], key):
                if _ENDS.match(name) or (spellings.is_path_like(text) and len(text.split()) == 1):
                    yield text


def _texts(value: object, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each after the name of its field."""
    if isinstance(value, str):
        yield key, value
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(each, str(name), depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for each in value:
            yield from _texts(each, key, depth + 1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field against values: one of them (``in``), a number by order, or a pattern (``matches``)."""

    field: ArgumentPath
    verb: Literal["in", "matches", "<", "<=", ">", ">="]
    values: tuple[Value, ...]

    def holds(self, call: "GivenArguments") -> Answer:
        found = self.field.read(call.arguments, call.schema)
        if self.verb in _ORDER:
            if _kind(found) == "a number":
                return _ORDER[self.verb](found, self.values[0])
            return None
        if not isinstance(found, str):
            return self._is_among(found)
        referent = self._referent(call.schema)
        key = next((step for step in reversed(self.field.path) if not step.isdecimal()), "")
        answers = {self._names(found, referent, key)}
        others = self._beside(call)
        if (referent or spellings.guess_referent(key)) in PATHS and not self.field.host:
            answers |= {self._names(path, kind, name) for name, path, kind in call.other_paths()}
            others = iter(()) if referent else call.other_texts()
        if answers == {False} and any(self._names(each, referent, key) is not False for each in others):
            return None  # what the rule names may be there, in another place
        if len(answers) == 1:
            return answers.pop()
        return None

    def is_near(self, call: "GivenArguments") -> bool:
        """Tell if the value may be in another argument: the tool lacks the field but has paths elsewhere."""
        key = self.field.path[-1]
        if self.field.host or self.verb in _ORDER or spellings.guess_referent(key) not in PATHS:
            return False
        near = (self._names(path, kind, name) for name, path, kind in call.other_paths())
        return any(answer is not False for answer in near)

    def lacking(self, schema: Mapping[str, Any]) -> str | None:
        """Return the field's name where a tool with this schema has nothing of that name."""
        lacks = _plain(schema, schema) and all(
            _is_left_out(part, self.field.path[0]) for part in _plain(schema, schema)
        )
        return self.field.name if lacks else None

    def _beside(self, call: "GivenArguments") -> Iterator[str]:
        """Yield the other texts of the list that the field is an item of, for values that look like paths."""
        *before, last = self.field.path
        if last.isdecimal() and any(isinstance(v, str) and spellings.is_path_like(v) for v in self.values):
            if before:
                items = ArgumentPath(tuple(before)).read(call.arguments, call.schema)
            else:
                items = None
            others = enumerate(items) if isinstance(items, list) else ()
            yield from (each for at, each in others if at != int(last) and isinstance(each, str))

    def _is_among(self, found: object) -> Answer:
        """Return whether what is no text is one of the values."""
        if self.verb != "in":
            return None
        if any(_kind(found) == _kind(each) and found == each for each in self.values):
            return True
        if all(_kind(found) == _kind(each) for each in self.values):
            return False
        return None

    def _names(self, found: str, referent: Referent | None, key: str) -> Answer:
        """Return whether a text is what one of the values names."""
        pattern = self.verb == "matches"
        answers: list[Answer] = []
        for value in self.values:
            if not isinstance(value, str):
                answers.append(None)
            elif self.field.host:
                answers.append(spellings.compare_host(found, NamedText(value, pattern)))
            else:
                answers.append(spellings.compare(found, NamedText(value, pattern), referent, key))
        if True in answers:
            return True
        return None if None in answers else False

    def _referent(self, schema: Mapping[str, Any]) -> Referent | None:
        """Return the kind of thing that the tool declares for the field."""
        parts: list[Mapping[str, Any]] = [schema]
        for step in self.field.path:
            parts = [_find_schema(each, step) for part in parts for each in _plain(part, schema)]
        wrapped = [*parts, *(each for part in parts for each in _plain(part, schema))]
        return next(filter(None, map(spellings.find_declared, wrapped)), None)

    def misfit(self, schema: Mapping[str, Any]) -> str | None:
        """Return why no call with this schema can have the value, in words, or None where one can."""
        parts: list[Mapping[str, Any]] = [schema]
        for at, step in enumerate(self.field.path):
            parts = [each for part in parts for each in _plain(part, schema)]
            if parts and all(_is_left_out(part, step) for part in parts):
                known = {name for part in parts for name in part["properties"]}
                near = get_close_matches(step, known, 1)
                return f"it has no {self.field.name}" + (f" (did you mean {near[0]}?)" if near else "")
            if parts and not any(_may_hold(part, step) for part in parts):
                return self._describe_whole(at, parts)
            parts = [_find_schema(part, step) for part in parts]
        parts = [each for part in parts for each in _plain(part, schema)]
        kinds = {kind for part in parts for kind in _kinds(part)}
        wanted = "text" if self.field.host else _kind(self.values[0])
        if kinds and wanted not in kinds:
            listed = f". Write {self.field.name}.0 for its first item" if kinds == {_LIST} else ""
            return f"{self.field.name} is {' or '.join(sorted(kinds))}, not {wanted}{listed}"
        if self.verb == "in" and parts and all(part.get("type") == "integer" for part in parts):
            broken = [each for each in self.values if isinstance(each, float) and not each.is_integer()]
            if broken:
                return f"{self.field.name} is a whole number, never {broken[0]}"
        if self.verb == "in" and not self.field.host and all("enum" in part for part in parts) and parts:
            known = {str(each) for part in parts for each in part["enum"]}
            never = [str(each) for each in self.values if str(each) not in known]
            if never:
                return f"{self.field.name} is never {never[0]}. It is one of {', '.join(sorted(known))}"
        return None

    def _describe_whole(self, length: int, parts: Sequence[Mapping[str, Any]]) -> str:
        """Say that the field is part of what has no such parts: the first so many names of its path."""
        name = ".".join(self.field.path[:length])
        kinds = sorted({kind for part in parts for kind in _kinds(part)})
        if kinds == [_LIST]:
            return f"{name} is a list. Write {name}.0 for its first item"
        return f"{name} is {' or '.join(kinds)} and has no {self.field.path[length]}. Write {name} alone"


@dataclass(frozen=True, slots=True)
class ConnectionIs:
    """The account under which the call is made: Nod's own, a person's, or a chat's."""

    identity: Identity

    def holds(self, call: "GivenArguments") -> Answer:
        return call.identity is self.identity


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: "Expression"

    def holds(self, call: "GivenArguments") -> Answer:
        answer = self.part.holds(call)
        if answer is None:
            return None
        return not answer


@dataclass(frozen=True, slots=True)
class Several:
    """All of these (``and``), or any of these (``or``)."""

    parts: tuple["Expression", ...]
    decisive: bool  # the answer of one part that settles it: False for all, True for any

    def holds(self, call: "GivenArguments") -> Answer:
        answers = [part.holds(call) for part in self.parts]
        if self.decisive in answers:
            return self.decisive
        if None in answers:
            return None
        return not self.decisive


Expression = Comparison | ConnectionIs | Not | Several


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition that an admin wrote after ``where``.

    ``root`` is None for one of another release that this one can't parse.
    """

    text: str
    root: Expression | None

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Raise ConditionError."""
        plain = " ".join(text.translate(_QUOTES).split())
        if len(plain) > LONGEST:
            raise ConditionError(f"A condition has at most {LONGEST} characters. This has {len(plain)}.")
        return cls(plain, _Reader(plain).condition())

    @classmethod
    def restore(cls, text: str) -> "Condition":
        """Read a condition from a row. Never raises: an unreadable one can't be told of any call."""
        try:
            return cls.parse(text)
        except ConditionError:
            return cls(text, None)

    @property
    def fields(self) -> list[ArgumentPath]:
        return [each.field for each in _comparisons(self.root)]

    def holds(
        self,
        arguments: Mapping[str, Any],
        schema: Mapping[str, Any],
        *,
        of_several: bool = False,
        identity: Identity = Identity.NOD,
    ) -> Answer:
        """Return whether a call with these arguments, of a tool with this JSON schema, is meant.

        ``of_several``: the rule is about several tools, so one that lacks the field is not meant.
        ``identity``: under whose account it is made.
        """
        if self.root is not None and of_several and self.lacking(schema):
            given = GivenArguments(arguments, schema, frozenset())
            if any(each.is_near(given) for each in _comparisons(self.root)):
                return None
            return False
        if self.root is None or self.misfit(schema):
            return None
        named = frozenset(field.path[0] for field in self.fields)
        return self.root.holds(GivenArguments(arguments, schema, named, identity))

    def lacking(self, schema: Mapping[str, Any]) -> str | None:
        """Return the first field that a tool with this JSON schema lacks; None where it has all."""
        return next(filter(None, (each.lacking(schema) for each in _comparisons(self.root))), None)

    def misfit(self, schema: Mapping[str, Any]) -> str | None:
        """Return why it does not fit a tool's JSON schema, in words; None where it does."""
        if self.root is None:
            return "this release can't read it"
        return next(filter(None, (each.misfit(schema) for each in _comparisons(self.root))), None)


def _comparisons(part: Expression | None) -> Iterator[Comparison]:
    match part:
        case Comparison():
            yield part
        case Not(inner):
            yield from _comparisons(inner)
        case Several(parts):
            for each in parts:
                yield from _comparisons(each)


class _Reader:
    """Reads a condition by recursive descent, one method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self._words: list[tuple[str, bool]] = []  # each with whether it was quoted
        self._at = self._depth = end = 0
        while end < len(text):
            found = _TOKEN.match(text, end)
            if found is None:
                raise ConditionError(f"`{text[end:].strip()[:40]}` can't be read here. {_EXAMPLE}.")
            end = found.end()
            quoted = found[1] if found[1] is not None else found[2]
            self._words.append((found[3] or found[4], False) if quoted is None else (quoted, True))

    def condition(self) -> Expression:
        read = self._any()
        if self._at < len(self._words):
            raise self._wrong(" Write `where` and its condition last.")
        return read

    def _any(self) -> Expression:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        if len(parts) == 1:
            return parts[0]
        return Several(tuple(parts), decisive=True)

    def _all(self) -> Expression:
        parts = [self._one()]
        while self._takes("and"):
            parts.append(self._one())
        if len(parts) == 1:
            return parts[0]
        return Several(tuple(parts), decisive=False)

    def _one(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ConditionError(f"This is nested too deeply: at most {_DEEPEST} brackets and nots.")
        if self._takes("not"):
            read: Expression = Not(self._one())
        elif self._takes("("):
            read = self._any()
            self._needs(")")
        elif self._names_connection():
            read = self._read_identity()
        else:
            read = self._read_comparison(self._field())
        self._depth -= 1
        return read

    def _names_connection(self) -> bool:
        """Tell if what comes is about the account, and not about an argument of that name."""
        words = self._words[self._at : self._at + 2]
        return [(word.lower(), quoted) for word, quoted in words] == [("connection", False), ("is", False)]

    def _read_identity(self) -> Expression:
        self._at += 2
        word, _ = self._peek()
        if word.lower() not in set(Identity):
            raise self._wrong(f" After `connection is` comes {', '.join(Identity)}.")
        self._at += 1
        return ConnectionIs(Identity(word.lower()))

    def _field(self) -> ArgumentPath:
        word, quoted = self._peek()
        host = word.lower() == "host" and self._words[self._at + 1 : self._at + 2] == [("(", False)]
        if host:
            self._at += 2
            word, quoted = self._peek()
        path = tuple(word.split("."))
        if quoted or not _PATH.fullmatch(word) or len(path) > _DEEPEST:
            raise self._wrong(" Name a field of the tool.")
        self._at += 1
        if host:
            self._needs(")")
        return ArgumentPath(path, host)

    def _read_comparison(self, field: ArgumentPath) -> Expression:
        pair = "".join(word for word, quoted in self._words[self._at : self._at + 2] if not quoted)
        if pair in _MEANT and len(pair) == len("<>"):
            raise self._wrong(_hint(pair, field.name))
        negated = self._takes("not")
        read: Expression
        if self._takes("in"):
            self._needs("(")
            values = [self._value()]
            while self._takes(","):
                values.append(self._value())
            self._needs(")")
            read = _among(field, *values)
        elif self._takes("matches"):
            read = Comparison(field, "matches", (str(self._value(text=True)),))
        elif not negated and (self._takes("=") or self._takes("==")):
            read = _among(field, self._value())
        elif not negated and self._takes("!="):
            read = Not(_among(field, self._value()))
        elif not negated and self._peek()[0] in _ORDER:
            verb, _ = self._words[self._at]
            self._at += 1
            value = self._value()
            if _kind(value) != "a number":
                self._at -= 1
                raise self._wrong(_hint_at_date(str(value), field.name) or f" After {verb} comes a number.")
            read = Comparison(field, verb, (value,))  # type: ignore[arg-type]
        else:
            following = "".join(word for word, _ in self._words[self._at + 1 : self._at + 2])
            date = _hint_at_date(following, field.name)
            raise self._wrong(date or _hint(self._peek()[0], field.name))
        return Not(read) if negated else read

    def _value(self, *, text: bool = False) -> Value:
        word, quoted = self._peek()
        if not quoted and word in ("(", ")", ",", *_ORDER):
            raise self._wrong(" A value belongs here.")
        self._at += 1
        if quoted or text:
            return word
        if _NUMBER.fullmatch(word):
            if "." in word:
                return float(word)
            return int(word)
        return {"true": True, "false": False}.get(word.lower(), word)

    def _peek(self) -> tuple[str, bool]:
        if self._at == len(self._words):
            raise ConditionError(f"The condition stops too early. {_EXAMPLE}.")
        return self._words[self._at]

    def _takes(self, word: str) -> bool:
        """Consume the next word if it is this one, and tell if it was."""
        taken = [(found.lower(), quoted) for found, quoted in self._words[self._at : self._at + 1]]
        self._at += (word, False) in taken
        return (word, False) in taken

    def _needs(self, word: str) -> None:
        self._peek()
        if not self._takes(word):
            raise self._wrong(f" `{word}` belongs here.")

    def _wrong(self, hint: str = "") -> ConditionError:
        word, _ = self._peek()
        return ConditionError(f"`{word[:40]}` does not fit here.{hint} {_EXAMPLE}.")


def _hint(word: str, field: str) -> str:
    meant = _MEANT.get(word.lower().strip("."))
    if meant is None:
        return " After a field comes =, !=, <, <=, >, >=, in or matches."
    return f" Write `{meant.format(field)}`."


def _hint_at_date(word: str, field: str) -> str:
    """Say how to write a condition on a date, which has no order here. Empty for another word."""
    found = _DATE.match(word)
    if not found:
        return ""
    return f' Dates are text and have no order here. Write `{field} matches "{found[0]}-*"`.'


def _among(field: ArgumentPath, *values: Value) -> Comparison:
    return Comparison(field, "in", tuple(str(each).lower() if field.host else each for each in values))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "something else"


def _kinds(part: Mapping[str, Any]) -> list[str]:
    """Return the kinds of value that a schema allows, from its types or from its enum."""
    named = part.get("type")
    if not named:
        return [_kind(each) for each in part.get("enum", ())]
    listed = named if isinstance(named, list) else [named]
    return [_JSON_KINDS[each] for each in listed if each in _JSON_KINDS]


def _plain(part: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> list[Mapping[str, Any]]:
    """Return a schema's alternatives, references followed; those that say nothing are left out."""
    reference = part.get("$ref")
    if isinstance(reference, str) and depth < _DEEPEST:
        found = find_referred(root, reference)
        if isinstance(found, Mapping):
            return _plain(found, root, depth + 1)
        return []
    either = part.get("anyOf") or part.get("oneOf")
    if isinstance(either, list) and depth < _DEEPEST:
        return [
            each
            for one in either
            if isinstance(one, Mapping) and one.get("type") != "null"
            for each in _plain(one, root, depth + 1)
        ]
    if {"type", "enum", "properties"} & part.keys():
        return [part]
    return []


def _may_hold(part: Mapping[str, Any], step: str) -> bool:
    """Return whether a value of this schema may have something of that name, or at that place of a list."""
    kinds = _kinds(part)
    if not kinds or "an object" in kinds or "properties" in part:
        return True
    return _LIST in kinds and step.isdecimal()


def _is_left_out(part: Mapping[str, Any], step: str) -> bool:
    listed = part.get("properties")
    return isinstance(listed, Mapping) and step not in listed and not part.get("additionalProperties")


def _find_schema(part: Mapping[str, Any], step: str) -> Mapping[str, Any]:
    """Return the schema of a field, or of an item of a list; empty where it is not told."""
    if step.isdecimal() and "items" in part:
        found = part["items"]
    else:
        listed = part.get("properties")
        found = listed.get(step) if isinstance(listed, Mapping) else None
    if isinstance(found, Mapping):
        return found
    return {}
