"""Expressions of a condition, and how each judges a call: True, False, or None where it can't be told."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from bot.domain import spellings
from bot.domain.conditions import schemas
from bot.domain.conditions.schemas import MAX_DEPTH, NUMBER, Schema
from bot.domain.connections import Identity
from bot.domain.spellings import PATHS, Answer, NamedText, Referent
from bot.domain.text import host_of

Value = str | int | float | bool

ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_END_OF_MOVE = re.compile(r"(to|into|from|target|new|old)([_A-Z].*)?$")  # names of fields that hold one
_NOT_IN_HOST = re.compile(r"[\s\\\x00-\x1f]")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class ArgumentPath:
    """A place in the arguments, or the host of the address that stands there."""

    path: tuple[str, ...]
    host: bool = False

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def last_name(self) -> str:
        """The last step that names a field rather than an item's place; empty if no step does."""
        names = [step for step in self.path if not step.isdecimal()]
        return names[-1] if names else ""

    def read(self, arguments: Mapping[str, Any], schema: Schema) -> Any:
        """Return the value at this path, or the schema's default for an argument that is not given.

        `_MISSING` where there is no value, or no host in it.
        """
        value: Any = arguments
        for step in self.path:
            if isinstance(value, Mapping) and value.get(step) is not None:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            elif value is arguments:
                value = schemas.find_part(schema, step).get("default")
            else:
                return _MISSING
        if value is None:
            return _MISSING
        if self.host and not _has_host(value):
            return _MISSING
        return value

    def list_parts(self, schema: Schema) -> list[Schema]:
        """Return what a tool's schema says of this place, one schema for each alternative."""
        parts = [schema]
        for step in self.path:
            parts = [schemas.find_part(part, step) for part in _list_all_alternatives(parts, schema)]
        return parts


def _has_host(value: object) -> bool:
    return isinstance(value, str) and not _NOT_IN_HOST.search(value) and bool(host_of(value))


def _list_all_alternatives(parts: Sequence[Schema], root: Schema) -> list[Schema]:
    return [alternative for part in parts for alternative in schemas.list_alternatives(part, root)]


def _find_referent(parts: Iterable[Schema]) -> Referent | None:
    """Return the kind of thing that the first of these schemas declares, or None."""
    for part in parts:
        if declared := spellings.find_declared(part):
            return declared
    return None


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """The arguments of a call, the tool's JSON schema, and the arguments that a condition names."""

    arguments: Mapping[str, Any]
    schema: Schema
    named: frozenset[str]
    identity: Identity = Identity.NOD

    def other_paths(self) -> Iterator[tuple[str, str, Referent | None]]:
        """Yield each path among the other arguments, after its field's name, with what the tool declares."""
        properties = self.schema.get("properties")
        parts = properties if isinstance(properties, Mapping) else {}
        for key in sorted((self.arguments.keys() | parts.keys()) - self.named):
            part = parts.get(key)
            value = self.arguments.get(key)
            referent = None
            if isinstance(part, Mapping):
                referent = _find_referent([part, *schemas.list_alternatives(part, self.schema)])
                value = part.get("default") if value is None else value
            for name, text in _list_texts(value, key):
                if (referent or spellings.guess_referent(name)) in PATHS:
                    yield name, text, referent

    def other_texts(self) -> Iterator[str]:
        """Yield each text among the other arguments that may be a path, if its name does not say so."""
        for key in sorted(self.arguments.keys() - self.named):
            for name, text in _list_texts(self.arguments[key], key):
                is_one_word = len(text.split()) == 1
                if _END_OF_MOVE.match(name) or (is_one_word and spellings.is_path_like(text)):
                    yield text


def _list_texts(value: object, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each after the name of its field."""
    if isinstance(value, str):
        yield key, value
    elif depth < MAX_DEPTH and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _list_texts(inner, str(name), depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner, key, depth + 1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field against values: one of them (``in``), a number by order, or a pattern (``matches``)."""

    field: ArgumentPath
    verb: Literal["in", "matches", "<", "<=", ">", ">="]
    values: tuple[Value, ...]

    def holds(self, call: GivenArguments) -> Answer:
        value = self.field.read(call.arguments, call.schema)
        if self.verb in ORDER:
            if schemas.kind_of(value) == NUMBER:
                return ORDER[self.verb](value, self.values[0])
            return None
        if isinstance(value, str):
            return self._compare_text(value, call)
        if self.verb == "in":
            return self._is_among(value)
        return None

    def _compare_text(self, value: str, call: GivenArguments) -> Answer:
        """Compare a text, and with it what else in the call may be the thing that the rule names."""
        referent = self._find_referent(call.schema)
        key = self.field.last_name
        answers = {self._names(value, referent, key)}
        others = self._list_texts_next_to_it(call)
        if (referent or spellings.guess_referent(key)) in PATHS and not self.field.host:
            answers |= {self._names(path, kind, name) for name, path, kind in call.other_paths()}
            others = iter(()) if referent else call.other_texts()
        if len(answers) > 1:
            return None
        answer = answers.pop()
        if answer is False and any(self._names(other, referent, key) is not False for other in others):
            return None  # what the rule names may be there, in another place
        return answer

    def is_near(self, call: GivenArguments) -> bool:
        """Tell if the value may be in another argument: the tool lacks the field but has paths elsewhere."""
        key = self.field.path[-1]
        if self.field.host or self.verb in ORDER or spellings.guess_referent(key) not in PATHS:
            return False
        answers = (self._names(path, kind, name) for name, path, kind in call.other_paths())
        return any(answer is not False for answer in answers)

    def is_lacking_in(self, schema: Schema) -> bool:
        """Tell if a tool with this schema has nothing of the field's name."""
        alternatives = schemas.list_alternatives(schema, schema)
        if not alternatives:
            return False
        return all(schemas.is_left_out(part, self.field.path[0]) for part in alternatives)

    def _list_texts_next_to_it(self, call: GivenArguments) -> Iterator[str]:
        """Yield the other texts of the list that the field is an item of, for values that look like paths."""
        *list_path, place = self.field.path
        if not (list_path and place.isdecimal()):
            return
        if not any(isinstance(value, str) and spellings.is_path_like(value) for value in self.values):
            return
        items = ArgumentPath(tuple(list_path)).read(call.arguments, call.schema)
        if isinstance(items, list):
            for index, item in enumerate(items):
                if index != int(place) and isinstance(item, str):
                    yield item

    def _is_among(self, value: object) -> Answer:
        """Return whether what is no text is one of the values."""
        same_kind = [each for each in self.values if schemas.kind_of(each) == schemas.kind_of(value)]
        if value in same_kind:
            return True
        if len(same_kind) == len(self.values):
            return False
        return None

    def _names(self, text: str, referent: Referent | None, key: str) -> Answer:
        """Return whether a text is what one of the values names. ``key``: the name of the text's field."""
        is_pattern = self.verb == "matches"
        answers: list[Answer] = []
        for value in self.values:
            if not isinstance(value, str):
                answers.append(None)
            elif self.field.host:
                answers.append(spellings.compare_host(text, NamedText(value, is_pattern)))
            else:
                answers.append(spellings.compare(text, NamedText(value, is_pattern), referent, key))
        if True in answers:
            return True
        return None if None in answers else False

    def _find_referent(self, schema: Schema) -> Referent | None:
        """Return the kind of thing that the tool declares for the field."""
        parts = self.field.list_parts(schema)
        return _find_referent([*parts, *_list_all_alternatives(parts, schema)])

    def misfit(self, schema: Schema) -> str | None:
        """Return why no call with this schema can have the value, in words, or None where one can."""
        parts = [schema]
        for place, step in enumerate(self.field.path):
            parts = _list_all_alternatives(parts, schema)
            if parts and all(schemas.is_left_out(part, step) for part in parts):
                return self._describe_missing(step, parts)
            if parts and not any(schemas.may_have(part, step) for part in parts):
                return self._describe_whole(place, parts)
            parts = [schemas.find_part(part, step) for part in parts]
        parts = _list_all_alternatives(parts, schema)
        if not parts:
            return None
        return self._describe_other_kind(parts) or self._describe_impossible_value(parts)

    def _describe_missing(self, step: str, parts: Sequence[Schema]) -> str:
        known = {name for part in parts for name in part["properties"]}
        near = get_close_matches(step, known, 1)
        suggestion = f" (did you mean {near[0]}?)" if near else ""
        return f"it has no {self.field.name}{suggestion}"

    def _describe_whole(self, length: int, parts: Sequence[Schema]) -> str:
        """Say that the field is part of what has no such parts: the first so many names of its path."""
        name = ".".join(self.field.path[:length])
        kinds = sorted({kind for part in parts for kind in schemas.list_kinds(part)})
        if kinds == [schemas.LIST]:
            return f"{name} is a list. Write {name}.0 for its first item"
        return f"{name} is {' or '.join(kinds)} and has no {self.field.path[length]}. Write {name} alone"

    def _describe_other_kind(self, parts: Sequence[Schema]) -> str | None:
        kinds = {kind for part in parts for kind in schemas.list_kinds(part)}
        wanted = schemas.TEXT if self.field.host else schemas.kind_of(self.values[0])
        if not kinds or wanted in kinds:
            return None
        hint = f". Write {self.field.name}.0 for its first item" if kinds == {schemas.LIST} else ""
        return f"{self.field.name} is {' or '.join(sorted(kinds))}, not {wanted}{hint}"

    def _describe_impossible_value(self, parts: Sequence[Schema]) -> str | None:
        if self.verb != "in":
            return None
        if all(part.get("type") == "integer" for part in parts):
            fractions = [each for each in self.values if isinstance(each, float) and not each.is_integer()]
            if fractions:
                return f"{self.field.name} is a whole number, never {fractions[0]}"
        if not self.field.host and all("enum" in part for part in parts):
            known = {str(value) for part in parts for value in part["enum"]}
            unknown = [str(value) for value in self.values if str(value) not in known]
            if unknown:
                return f"{self.field.name} is never {unknown[0]}. It is one of {', '.join(sorted(known))}"
        return None


@dataclass(frozen=True, slots=True)
class ConnectionIs:
    """The account under which the call is made: Nod's own, a person's, or a chat's."""

    identity: Identity

    def holds(self, call: GivenArguments) -> Answer:
        return call.identity is self.identity


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: "Expression"

    def holds(self, call: GivenArguments) -> Answer:
        answer = self.part.holds(call)
        if answer is None:
            return None
        return not answer


@dataclass(frozen=True, slots=True)
class Several:
    """All of these (``and``), or any of these (``or``)."""

    parts: tuple["Expression", ...]
    decisive: bool  # the answer of one part that settles it: False for all, True for any

    def holds(self, call: GivenArguments) -> Answer:
        answers = [part.holds(call) for part in self.parts]
        if self.decisive in answers:
            return self.decisive
        if None in answers:
            return None
        return not self.decisive


Expression = Comparison | ConnectionIs | Not | Several


def list_comparisons(part: Expression | None) -> Iterator[Comparison]:
    match part:
        case Comparison():
            yield part
        case Not(inner):
            yield from list_comparisons(inner)
        case Several(parts):
            for each in parts:
                yield from list_comparisons(each)
