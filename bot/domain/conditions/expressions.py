"""Expressions of a condition, which judge a call: True, False, or None where the answer is unknown.

The parser makes a tree of these classes, and `holds` of its root gives the `Answer`. None is unknown, as in
SQL: `Not` keeps None, and `Several` answers None unless another part decides.

A rule whose condition is unknown counts where it makes the call stricter. So False has to be certain. The
answer is None where another argument of the call may hold the path, host or name that the condition means:
for example for ``path matches "infra/**"`` if ``path`` does not fit, but an argument ``target`` does.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from bot.domain import spellings
from bot.domain.conditions import schemas
from bot.domain.conditions.schemas import MAX_DEPTH, NUMBER, Schema
from bot.domain.connections import Identity
from bot.domain.risks import Level
from bot.domain.spellings import PATHS, Answer
from bot.domain.spellings.terms import Referent, WantedText
from bot.domain.text import host_of

Value = str | int | float | bool

ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# names of fields that often hold a path, such as the two ends of a move
_FIELD_LIKE_PATH = re.compile(r"(to|into|from|target|new|old)([_A-Z].*)?$")
_NOT_IN_HOST = re.compile(r"[\s\\\x00-\x1f]")  # with these in an address, its host is unclear
_MISSING = object()  # the value of a field that a call does not have


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of a call's arguments, by the steps that lead to it: ``options.force``, ``files.0``."""

    path: tuple[str, ...]  # the steps: names of fields, and indexes of items in a list
    is_host: bool = False  # the condition is about the host in the address at this path: ``host(url)``

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def last_field_name(self) -> str:
        """The last step that is the name of a field, not an index; empty without such a step."""
        names = [step for step in self.path if not step.isdecimal()]
        return names[-1] if names else ""

    def read(self, arguments: Mapping[str, Any], schema: Schema) -> Any:
        """Return the value of the field, or the schema's default for an argument that is not given.

        `_MISSING` if there is no value, or if the condition is about a host and the value has none.
        """
        value: Any = arguments
        for step in self.path:
            if isinstance(value, Mapping) and value.get(step) is not None:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            elif value is arguments:  # the first step: only an argument itself has a default here
                value = schemas.find_part(schema, step).get("default")
            else:
                return _MISSING
        if value is None:
            return _MISSING
        if self.is_host and not _has_host(value):
            return _MISSING
        return value

    def list_schemas(self, schema: Schema) -> list[Schema]:
        """Return the schemas that a tool's schema has for this path, one for each alternative."""
        parts = [schema]
        for step in self.path:
            parts = [schemas.find_part(part, step) for part in _list_all_alternatives(parts, schema)]
        return parts


def _has_host(value: object) -> bool:
    return isinstance(value, str) and not _NOT_IN_HOST.search(value) and bool(host_of(value))


def _list_all_alternatives(parts: Sequence[Schema], root: Schema) -> list[Schema]:
    return [alternative for part in parts for alternative in schemas.list_alternatives(part, root)]


def _find_first_referent(parts: Iterable[Schema]) -> Referent | None:
    """Return the first kind of thing, such as a path, that one of these schemas declares, or None."""
    for part in parts:
        if declared := spellings.find_declared(part):
            return declared
    return None


class OtherPath(NamedTuple):
    """A path of a file in an argument that the condition does not name."""

    field_name: str
    text: str
    referent: Referent | None  # the kind of thing that the tool declares for the argument, if it declares one


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """The facts of a call that a condition reads."""

    arguments: Mapping[str, Any]
    schema: Schema  # the tool's
    condition_fields: frozenset[str]  # the names of the arguments that the condition is about
    identity: Identity = Identity.NOD
    level: Level | None = None  # the risk of the call; None where it is not known yet

    def list_other_paths(self) -> Iterator[OtherPath]:
        """Yield the texts in other arguments that are paths by their declaration or their field's name."""
        properties = self.schema.get("properties")
        declared = properties if isinstance(properties, Mapping) else {}
        for name in sorted((self.arguments.keys() | declared.keys()) - self.condition_fields):
            part = declared.get(name)
            value = self.arguments.get(name)
            referent = None
            if isinstance(part, Mapping):
                referent = _find_first_referent([part, *schemas.list_alternatives(part, self.schema)])
                value = part.get("default") if value is None else value
            for field_name, text in _list_texts(value, name):
                if (referent or spellings.guess_referent(field_name)) in PATHS:
                    yield OtherPath(field_name, text, referent)

    def list_possible_paths(self) -> Iterator[str]:
        """Yield the texts in other arguments that may be paths, though nothing declares it."""
        for name in sorted(self.arguments.keys() - self.condition_fields):
            for field_name, text in _list_texts(self.arguments[name], name):
                is_one_word = len(text.split()) == 1
                if _FIELD_LIKE_PATH.match(field_name) or (is_one_word and spellings.is_path_like(text)):
                    yield text


def _list_texts(value: object, field_name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the name of the field and the text, for each text in a value."""
    if isinstance(value, str):
        yield field_name, value
    elif depth < MAX_DEPTH and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _list_texts(inner, str(name), depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner, field_name, depth + 1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a field with values: one of several (``in``), a bound, or a pattern (``matches``)."""

    field: FieldRef
    operator: Literal["in", "matches", "<", "<=", ">", ">="]
    values: tuple[Value, ...]  # only for ``in`` there may be more than one

    def holds(self, call: GivenArguments) -> Answer:
        """Judge a call; None if the field is missing or its value is of a kind that can't be compared."""
        value = self.field.read(call.arguments, call.schema)
        if value is _MISSING:
            return None
        if self.operator in ORDER:
            if schemas.kind_of(value) == NUMBER:
                return ORDER[self.operator](value, self.values[0])
            return None
        if isinstance(value, str):
            return self._compare_field(value, call)
        if self.operator == "in":
            return self._is_one_of_values(value)
        return None

    def _compare_field(self, text: str, call: GivenArguments) -> Answer:
        """Compare the field's text, and answer None if other texts of the call make the answer uncertain.

        - If the field is a path, all other paths of the call must give the same answer.
        - For False, each other text that may be what the rule means must give False, too.
        """
        name = self.field.last_field_name
        referent = self._find_declared_referent(call.schema)
        answer = self._compare_text(text, referent, name)
        is_path = not self.field.is_host and (referent or spellings.guess_referent(name)) in PATHS
        if is_path and any(other != answer for other in self._compare_other_paths(call)):
            return None
        if answer is not False:
            return answer
        for candidate in self._list_candidates(call, referent, is_path=is_path):
            if self._compare_text(candidate, referent, name) is not False:
                return None
        return False

    def _list_candidates(
        self, call: GivenArguments, referent: Referent | None, *, is_path: bool
    ) -> Iterator[str]:
        """Return the other texts of a call that may be what the rule means, besides its other paths.

        ``referent`` is the kind of thing that the tool declares for the field. A tool that declares its paths
        has no candidates: `_compare_other_paths` has them all.
        """
        if not is_path:
            return self._list_other_items(call)
        if referent is None:
            return call.list_possible_paths()
        return iter(())

    def _compare_other_paths(self, call: GivenArguments) -> Iterator[Answer]:
        for other in call.list_other_paths():
            yield self._compare_text(other.text, other.referent, other.field_name)

    def _list_other_items(self, call: GivenArguments) -> Iterator[str]:
        """Yield the other texts of a list, if the field is one of its items and the rule may mean a path."""
        *list_path, step = self.field.path
        if not (list_path and step.isdecimal()):
            return
        if not any(isinstance(value, str) and spellings.is_path_like(value) for value in self.values):
            return
        items = FieldRef(tuple(list_path)).read(call.arguments, call.schema)
        if isinstance(items, list):
            for index, item in enumerate(items):
                if index != int(step) and isinstance(item, str):
                    yield item

    def may_be_in_other_argument(self, call: GivenArguments) -> bool:
        """Tell if any argument of a tool that lacks the field may be a path that the values name.

        Only for a field whose name suggests a path.
        """
        is_about_text = not self.field.is_host and self.operator not in ORDER
        if not is_about_text or spellings.guess_referent(self.field.last_field_name) not in PATHS:
            return False
        return any(answer is not False for answer in self._compare_other_paths(call))

    def is_lacking_in(self, schema: Schema) -> bool:
        """Tell if a tool with this schema has no field of that name."""
        alternatives = schemas.list_alternatives(schema, schema)
        if not alternatives:
            return False
        return all(schemas.lacks_field(part, self.field.path[0]) for part in alternatives)

    def _is_one_of_values(self, value: object) -> Answer:
        """Compare a value that is not a text; None if one of the condition's values is of another kind."""
        values_of_kind = [other for other in self.values if schemas.kind_of(other) == schemas.kind_of(value)]
        if value in values_of_kind:
            return True
        if len(values_of_kind) == len(self.values):
            return False
        return None

    def _compare_text(self, text: str, referent: Referent | None, field_name: str) -> Answer:
        """Compare a text with the values: True if a value names the text, False if no value may name it.

        ``referent`` is the kind that the tool declares for the text, ``field_name`` the name of its field.
        """
        is_pattern = self.operator == "matches"
        answers: list[Answer] = []
        for value in self.values:
            if not isinstance(value, str):
                answers.append(None)
            elif self.field.is_host:
                answers.append(spellings.compare_host(text, WantedText(value, is_pattern)))
            else:
                answers.append(spellings.compare(text, WantedText(value, is_pattern), referent, field_name))
        if True in answers:
            return True
        return None if None in answers else False

    def _find_declared_referent(self, schema: Schema) -> Referent | None:
        """Return the kind of thing that the tool declares for the field."""
        parts = self.field.list_schemas(schema)
        return _find_first_referent([*parts, *_list_all_alternatives(parts, schema)])

    def describe_misfit(self, schema: Schema) -> str | None:
        """Return why no call with this schema can have one of the values, in words; None if a call can."""
        parts = [schema]
        for depth, step in enumerate(self.field.path):
            parts = _list_all_alternatives(parts, schema)
            if parts and all(schemas.lacks_field(part, step) for part in parts):
                return self._describe_missing(step, parts)
            if parts and not any(schemas.may_have_field(part, step) for part in parts):
                return self._describe_value_without_parts(depth, parts)
            parts = [schemas.find_part(part, step) for part in parts]
        parts = _list_all_alternatives(parts, schema)
        if not parts:
            return None
        return self._describe_other_kind(parts) or self._describe_impossible_value(parts)

    def _describe_missing(self, step: str, parts: Sequence[Schema]) -> str:
        field_names = {name for part in parts for name in part["properties"]}
        near = get_close_matches(step, field_names, 1)
        suggestion = f" (did you mean {near[0]}?)" if near else ""
        return f"it has no {self.field.name}{suggestion}"

    def _describe_value_without_parts(self, depth: int, parts: Sequence[Schema]) -> str:
        """Describe the value after ``depth`` steps, which does not have the next step of the path."""
        name = ".".join(self.field.path[:depth])
        kinds = sorted({kind for part in parts for kind in schemas.list_kinds(part)})
        if kinds == [schemas.LIST]:
            return f"{name} is a list. Write {name}.0 for its first item"
        return f"{name} is {' or '.join(kinds)} and has no {self.field.path[depth]}. Write {name} alone"

    def _describe_other_kind(self, parts: Sequence[Schema]) -> str | None:
        kinds = {kind for part in parts for kind in schemas.list_kinds(part)}
        kind_of_value = schemas.TEXT if self.field.is_host else schemas.kind_of(self.values[0])
        if not kinds or kind_of_value in kinds:
            return None
        hint = f". Write {self.field.name}.0 for its first item" if kinds == {schemas.LIST} else ""
        return f"{self.field.name} is {' or '.join(sorted(kinds))}, not {kind_of_value}{hint}"

    def _describe_impossible_value(self, parts: Sequence[Schema]) -> str | None:
        if self.operator != "in":
            return None
        if all(part.get("type") == "integer" for part in parts):
            fractions = [
                value for value in self.values if isinstance(value, float) and not value.is_integer()
            ]
            if fractions:
                return f"{self.field.name} is a whole number, never {fractions[0]}"
        if not self.field.is_host and all("enum" in part for part in parts):
            possible = {str(value) for part in parts for value in part["enum"]}
            impossible = [str(value) for value in self.values if str(value) not in possible]
            if impossible:
                choices = ", ".join(sorted(possible))
                return f"{self.field.name} is never {impossible[0]}. It is one of {choices}"
        return None


@dataclass(frozen=True, slots=True)
class ConnectionIs:
    """The condition on the account under which the call is made: Nod's own, a person's, or a chat's."""

    identity: Identity

    def holds(self, call: GivenArguments) -> Answer:
        return call.identity is self.identity


@dataclass(frozen=True, slots=True)
class RiskIs:
    """The condition on the level of the call's risk, by the rules or else by its tool."""

    level: Level

    def holds(self, call: GivenArguments) -> Answer:
        if call.level is None:
            return None
        return call.level is self.level


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of another expression; unknown where that is unknown."""

    part: "Expression"

    def holds(self, call: GivenArguments) -> Answer:
        answer = self.part.holds(call)
        if answer is None:
            return None
        return not answer


@dataclass(frozen=True, slots=True)
class Several:
    """Several expressions, joined by ``and`` or by ``or``."""

    parts: tuple["Expression", ...]
    decisive: bool  # the answer of a single part that decides for all: False for ``and``, True for ``or``

    def holds(self, call: GivenArguments) -> Answer:
        answers = [part.holds(call) for part in self.parts]
        if self.decisive in answers:
            return self.decisive
        if None in answers:
            return None
        return not self.decisive


Expression = Comparison | ConnectionIs | RiskIs | Not | Several


def list_parts(part: Expression | None) -> Iterator[Comparison | ConnectionIs | RiskIs]:
    """Yield the parts of an expression that are no combination of others; nothing for None."""
    match part:
        case Comparison() | ConnectionIs() | RiskIs():
            yield part
        case Not(inner):
            yield from list_parts(inner)
        case Several(parts):
            for inner in parts:
                yield from list_parts(inner)
