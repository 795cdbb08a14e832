"""Tools in the form that all model servers accept: name, description, schema. Pure.

Makers refuse a complete request because of one part of one schema, each for parts of its own: no ``items``, a
list of types, ``anyOf`` next to other keys or at the top, numbers in an ``enum``, a ``$ref``, a pattern. What
is sent here is what is left when all of that is written in other ways or in words: `type`, `description`,
`properties`, `required`, `items`, `enum` of strings, `anyOf` alone. The tool keeps its own schema: arguments
are checked against that, and cards show it. Sources: the checkers of the tests' model server.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from bot.domain.model import ToolCall, ToolSpec
from bot.tools.schema import fits_strict
from bot.tools.tool import APPROVED_FIRST

Json = dict[str, Any]

MAX_TOOLS = 128
"""Most tools of one request, as OpenAI has it."""
MAX_DESCRIPTION_CHARS = 1024
_MAX_NAME_CHARS = 64
_MAX_DEPTH = 10  # objects and lists inside each other
_MAX_PARTS = 3_000  # of one schema, with its references written out
_MAX_REPEATS = 2  # times that a type may contain itself
_MAX_ENUM_VALUES = 200
_MAX_WORDS_CHARS = 2_000  # of the description of one argument
_MAX_VALUE_CHARS = 300  # of values or a pattern in it
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_TYPES_OF_VALUES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}
_HINTS = {
    "object": ("properties", "additionalProperties", "required", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_BOUNDS = {
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "exclusiveMinimum": "More than {}.",
    "exclusiveMaximum": "Less than {}.",
    "multipleOf": "A multiple of {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
}
_KEPT_FORMATS = frozenset({"date-time"})
_UNSAID = {
    "not": "what is not allowed",
    "if": "conditions between arguments",
    "dependentSchemas": "conditions between arguments",
    "dependentRequired": "conditions between arguments",
    "dependencies": "conditions between arguments",
    "patternProperties": "names of arguments by a pattern",
    "contains": "what a list must contain",
}
_ANY: Sequence[Json] = (
    {"type": "string"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "object"},
    {"type": "array", "items": {"type": "string"}},
)
_FAR = 1_000_000
_AS_TEXT = "A JSON object, written as text."
_CUT_TEXT = "… (This description was too long and is cut here.)"


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as a server is told of it.

    ``parameters`` is None where a maker wants none for a tool without arguments. ``left_out`` says in words
    for admins what of the tool a model is not told. ``own_names`` has the tool's own name of each argument
    that is sent under another; ``texts`` the arguments whose objects travel as text.
    """

    spec: ToolSpec
    name: str
    description: str
    parameters: Json | None
    strict: bool = False
    left_out: tuple[str, ...] = ()
    own_names: Mapping[str, str] = field(default_factory=dict)
    texts: AbstractSet[str] = frozenset()
    plain: bool = False  # in the plainest form

    def arguments_received(self, arguments: str) -> str:
        """Return the arguments of a model's call under the tool's own names."""
        if not self.own_names and not self.texts:
            return arguments
        given = _decode_object(arguments)
        if given is None:
            return arguments
        return json.dumps(self._map_back(given, self.parameters), ensure_ascii=False)

    def arguments_sent(self, arguments: str) -> str:
        """Return the arguments of an earlier call under the names that the model is given."""
        given = _decode_object(arguments) if self.own_names else None
        if given is None:
            return arguments
        names = {own: sent for sent, own in self.own_names.items()}
        return json.dumps(_rename_fields(given, names), ensure_ascii=False)

    def _map_back(self, given: Any, part: Any) -> Any:
        if isinstance(given, list):
            return [self._map_back(each, _items(part)) for each in given]
        if not isinstance(given, dict):
            return given
        properties = _properties(part)
        found = {}
        for name, value in given.items():
            inside = properties.get(name)
            own = self.own_names.get(name, name) if inside is not None else name
            if (
                name in self.texts
                and isinstance(value, str)
                and (decoded := _decode_object(value)) is not None
            ):
                found[own] = decoded
            else:
                found[own] = self._map_back(value, inside)
        return found


def offer_tool(spec: ToolSpec, *, strict: bool = True, plain: bool = False) -> ToolOffer:
    """Make of a tool what every maker takes.

    ``strict``: the model's server may be told that a schema is strict, where it is. ``plain``: for servers
    that refuse an object whose names are not known, such as Gemini's: those travel as text.
    """
    writer = _SchemaWriter(spec.parameters, plain=plain)
    parameters = writer.write()
    description, cut = _description(spec.description)
    left = [*(["the end of its description"] if cut else []), *sorted(writer.left_out)]
    is_strict = strict and spec.strict and not writer.left_out and not writer.own_names
    if is_strict:
        closed = _close_objects(parameters)
        is_strict = fits_strict(closed)
        if is_strict:
            parameters = closed
    bare = plain and not parameters.get("properties")
    return ToolOffer(
        spec,
        make_offered_name(spec.name),
        description,
        None if bare else parameters,
        is_strict and not bare,
        tuple(left),
        writer.own_names,
        frozenset(writer.texts),
        plain,
    )


def find_untold(spec: ToolSpec) -> tuple[str, ...]:
    """Return in words what of a tool no model is told, since some maker's server would refuse it."""
    return offer_tool(spec).left_out


def make_offered_name(name: str) -> str:
    """Return a tool's name in the form that every maker accepts: a letter first, at most 64 characters."""
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    clean = clean if clean[:1].isalpha() else f"t{clean}"
    if clean == name and len(name) <= _MAX_NAME_CHARS:
        return clean
    return _shorten_name(clean, name, name != clean)


class ToolOffers:
    """The tools of one request, and what calls of them are in the tools' own words."""

    def __init__(self, offers: Sequence[ToolOffer]) -> None:
        self.all = tuple(offers)
        self._by_sent = {each.name: each for each in offers}
        self._by_own = {each.spec.name: each for each in offers}

    def call_received(self, call: ToolCall) -> ToolCall:
        """Return a model's call with the tool's own names."""
        offer = self._by_sent.get(call.name)
        if offer is None:
            return call
        return replace(call, name=offer.spec.name, arguments=offer.arguments_received(call.arguments))

    def call_sent(self, call: ToolCall) -> ToolCall:
        """Return an earlier call as the model made it, also of a tool that is gone."""
        offer = self._by_own.get(call.name)
        arguments = offer.arguments_sent(call.arguments) if offer else call.arguments
        return replace(call, name=offer.name if offer else make_offered_name(call.name), arguments=arguments)


class _SchemaWriter:
    """Writes one schema again, with the few keys that everyone takes; what they can't say becomes words."""

    def __init__(self, root: Mapping[str, Any], *, plain: bool) -> None:
        self.own_names: dict[str, str] = {}  # by the name that is sent
        self.left_out: set[str] = set()
        self.texts: set[str] = set()  # names of properties whose objects travel as text
        self._root, self._plain, self._parts = root, plain, 0
        self._sent: dict[str, str] = {}
        self._taken = {name for name in _all_names(root) if _is_plain_name(name)}

    def write(self) -> Json:
        """Return the schema of the arguments: an object, without alternatives at its top."""
        node, inside = self._resolve_references(self._root, ())
        node = self._join_alternatives(node, inside, flat=True)
        return self._object({**node, "type": "object"}, 0, inside)

    def _part(self, given: Any, depth: int, inside: tuple[str, ...]) -> Json:
        self._parts += 1
        if given is False:
            return {"type": "string", "description": "Leave this out."}
        if not isinstance(given, Mapping):
            return _any_of(_ANY, "")
        if depth > _MAX_DEPTH or self._parts > _MAX_PARTS:
            self.left_out.add("what is nested deeply in its arguments")
            return _add_description({"type": "object"}, "Anything that fits here.")
        node, inside = self._resolve_references(given, inside)
        node = self._join_alternatives(node, inside, flat=False)
        for key, words in _UNSAID.items():
            if key in node:
                self.left_out.add(words)
        words = self._words(node)
        branches = self._branches(node)
        if branches:
            made = [self._part(each, depth + 1, inside) for each in branches]
            return _any_of(made, words)
        kinds = _kinds(node)
        if not kinds:
            return _any_of(_ANY, words)
        if len(kinds) > 1:
            return _any_of([self._write_type(node, kind, depth, inside) for kind in kinds], words)
        return _add_description(self._write_type(node, kinds[0], depth, inside), words)

    def _write_type(self, node: Mapping[str, Any], kind: str, depth: int, inside: tuple[str, ...]) -> Json:
        """Return a part of one type, without its description."""
        match kind:
            case "object":
                return self._object(node, depth, inside)
            case "array":
                return {"type": "array", "items": self._part(_items_of(node), depth + 1, inside)}
            case "string":
                made: Json = {"type": "string"}
                values = _strings(node)
                if values:
                    made["enum"] = values
                if node.get("format") in _KEPT_FORMATS:
                    made["format"] = node["format"]
                return made
            case _:
                return {"type": kind}

    def _object(self, node: Mapping[str, Any], depth: int, inside: tuple[str, ...]) -> Json:
        properties = node.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        needed = _names(node.get("required"))
        missing = {name: True for name in needed if name not in properties}
        made: Json = {"type": "object", "properties": {}}
        for own, part in {**properties, **missing}.items():
            sent = self._name(own)
            written = self._part(part, depth + 1, inside)
            if self._plain and written.get("type") == "object" and not written.get("properties"):
                written = {
                    "type": "string",
                    "description": f"{written.get('description', '')} {_AS_TEXT}".strip(),
                }
                self.texts.add(sent)
            made["properties"][sent] = written
        if needed:
            made["required"] = [self._name(name) for name in needed]
        if depth and not made["properties"]:
            del made["properties"]
        return made

    def _name(self, own: str) -> str:
        """Return the name under which a property is sent, one for each of the tool's own."""
        if _is_plain_name(own):
            return own
        if own not in self._sent:
            clean = re.sub(r"[^a-zA-Z0-9_.-]+", "_", own).strip("_") or "argument"
            again = len(clean) > _MAX_NAME_CHARS or clean in self._taken
            sent = _shorten_name(clean, own, again)
            self._taken.add(sent)
            self._sent[own], self.own_names[sent] = sent, own
        return self._sent[own]

    def _resolve_references(
        self, node: Mapping[str, Any], inside: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return a part with what it refers to written out; ``inside`` are the references that led to it."""
        for _ in range(_MAX_DEPTH):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node, inside
            beside = {key: value for key, value in node.items() if key != "$ref"}
            if inside.count(reference) < _MAX_REPEATS:
                found = self._find_reference(reference)
            else:
                found = None
            if not isinstance(found, Mapping):
                self.left_out.add("what is nested deeply in its arguments")
                return {"type": "object", **beside}, inside
            node, inside = {**found, **beside}, (*inside, reference)
        return {"type": "object"}, inside

    def _find_reference(self, reference: str) -> Any:
        """Resolve a reference within the schema; None for any other."""
        if not reference.startswith("#"):
            return None
        path = reference.removeprefix("#").strip("/")
        found: Any = self._root
        for step in path.split("/") if path else ():
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = found.get(name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return None
        return found

    def _join_alternatives(
        self, node: Mapping[str, Any], inside: tuple[str, ...], *, flat: bool
    ) -> Mapping[str, Any]:
        """Return a part with all that must hold of it at the same time in one.

        ``flat``: alternatives as well. An object that has arguments of its own next to alternatives is one
        object with all of them.
        """
        joined = dict(node)
        for each in self._all_of(joined.pop("allOf", None), inside):
            joined = _unite_parts(joined, each, optional=False)
        for key in ("then", "else"):
            for each in self._all_of([joined[key]] if key in joined else None, inside):
                joined = _unite_parts(joined, each, optional=True)
        for key in ("anyOf", "oneOf"):
            if key not in joined or not (flat or _is_object(joined) or _is_settled(joined)):
                continue
            branches = self._all_of(joined.pop(key), inside)
            needed = [set(_names(each.get("required"))) for each in branches]
            both = set.intersection(*needed) if needed else set()
            for each in branches if flat or _is_object(joined) else ():
                joined = _unite_parts(joined, each, optional=True)
            joined["required"] = [*_names(joined.get("required")), *sorted(both)]
            told = [" and ".join(sorted(each - both)) for each in needed if each - both]
            if len(told) > 1:
                words = f"Give one of: {'; or '.join(told)}."
                joined["description"] = f"{joined.get('description') or ''} {words}".strip()
            self.left_out.add("alternatives of its arguments")
        return joined

    def _all_of(self, given: Any, inside: tuple[str, ...]) -> list[Mapping[str, Any]]:
        self._parts += 1
        if self._parts > _MAX_PARTS or len(inside) > _MAX_DEPTH or not isinstance(given, list):
            return []
        found = []
        for each in given:
            if isinstance(each, Mapping):
                node, within = self._resolve_references(each, inside)
                found.append(self._join_alternatives(node, (*within, ""), flat=False))
        return found

    def _branches(self, node: Mapping[str, Any]) -> list[Any]:
        """Return the alternatives of a part, with null where it may be that."""
        for key in ("anyOf", "oneOf"):
            found = node.get(key)
            if isinstance(found, list) and found:
                null = [{"type": "null"}] if node.get("nullable") is True else []
                return [*found, *null]
        return []

    def _words(self, node: Mapping[str, Any]) -> str:
        """Return the description of a part, with what its schema can't say to everyone."""
        said = [_end_sentence(str(node.get("description") or "").strip())]
        values = _values(node)
        if values and not (_strings(node) and all(isinstance(each, str | None) for each in values)):
            said.append(f"One of: {_format_values(values)}.")
        said += _bounds(node)
        if isinstance(node.get("format"), str) and node["format"] not in _KEPT_FORMATS:
            said.append(f"Format: {node['format'][:_MAX_VALUE_CHARS]}.")
        if isinstance(node.get("pattern"), str):
            said.append(f"Pattern: {node['pattern'][:_MAX_VALUE_CHARS]}")
        if node.get("uniqueItems") is True:
            said.append("No item twice.")
        free = node.get("additionalProperties")
        if isinstance(free, Mapping) and free:
            kinds = " or ".join(_kinds(free)) or "anything"
            said.append(f"Its names are free; each value: {kinds}.")
        if node.get("default") is not None:
            said.append(f"Default: {_format_values([node['default']])}.")
        examples = node.get("examples")
        if isinstance(examples, list) and examples:
            said.append(f"For example: {_format_values(examples[:3])}.")
        told = [each for each in said if each]
        if len(told) == 1 and node.get("description"):
            return str(node["description"]).strip()[:_MAX_WORDS_CHARS]
        return " ".join(told)[:_MAX_WORDS_CHARS]


def _end_sentence(said: str) -> str:
    if said and said[-1] not in ".!?:;…":
        return f"{said}."
    return said


def _bounds(node: Mapping[str, Any]) -> list[str]:
    """Return the bounds of a part in words, without those that no one comes near."""
    found = [(key, node[key]) for key in _BOUNDS if _is_number(node.get(key)) and abs(node[key]) < _FAR]
    empty = ["Not empty." for key, value in found if key in ("minLength", "minItems") and value == 1]
    return empty + [
        _BOUNDS[key].format(value)
        for key, value in found
        if key not in ("minLength", "minItems") or value > 1
    ]


def _add_description(made: Json, words: str) -> Json:
    if words:
        return {**made, "description": words}
    return made


def _any_of(branches: Sequence[Json], words: str) -> Json:
    """Return the alternatives alone; what they have in common is described in the first."""
    flat: list[Json] = []
    for each in branches:
        for one in each.get("anyOf", (each,)):
            if one not in flat:
                flat.append(one)
    first, *others = flat
    told = [_end_sentence(words) if first.get("description") else words, first.get("description", "")]
    first = _add_description(first, " ".join(filter(None, told)))
    if others:
        return {"anyOf": [first, *others]}
    return first


def _close_objects(part: Any) -> Any:
    """Return a part whose objects take no other names, as strict mode wants it."""
    if isinstance(part, list):
        return [_close_objects(each) for each in part]
    if not isinstance(part, dict):
        return part
    closed = {
        key: _close_objects(value) if key in ("items", "anyOf") else value for key, value in part.items()
    }
    if part.get("type") == "object" and "properties" in part:
        closed["properties"] = {name: _close_objects(each) for name, each in part["properties"].items()}
        closed.setdefault("required", [])
        closed["additionalProperties"] = False
    return closed


def _unite_parts(node: dict[str, Any], other: Mapping[str, Any], *, optional: bool) -> dict[str, Any]:
    """Merge two schemas; the first wins where both say something. ``optional``: nothing more is required."""
    made = {**{key: value for key, value in other.items() if key not in ("required", "properties")}, **node}
    if optional:
        made = {**node}
    theirs = other.get("properties")
    if isinstance(theirs, Mapping):
        own = node.get("properties")
        own = dict(own) if isinstance(own, Mapping) else {}
        for name, part in theirs.items():
            own[name] = _either(own[name], part) if optional and name in own else own.get(name, part)
        made["properties"] = own
    if not optional and "required" in other:
        made["required"] = [*_names(node.get("required")), *_names(other["required"])]
    return made


def _either(first: Any, second: Any) -> Any:
    """Return a part that may be either; two sets of texts become one."""
    if first == second or not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return first
    values = [*(_values(first) or ()), *(_values(second) or ())]
    if _values(first) and _values(second) and all(isinstance(each, str) for each in values):
        kept = {key: value for key, value in first.items() if key not in ("const", "enum")}
        return {**kept, "enum": list(dict.fromkeys(values))}
    if _kinds(first) == _kinds(second):
        return first
    return {"anyOf": [first, second]}


def _is_object(node: Mapping[str, Any]) -> bool:
    return isinstance(node.get("properties"), Mapping) or node.get("type") == "object"


def _is_settled(node: Mapping[str, Any]) -> bool:
    """Tell if a schema names its own type, so that its alternatives only narrow it."""
    return isinstance(node.get("type"), str) and node["type"] in _TYPES


def _kinds(node: Mapping[str, Any]) -> list[str]:
    """Return the types that a part may have, also where it only hints at them; empty for any."""
    said = node.get("type")
    listed = said if isinstance(said, list) else [said]
    kinds = [kind for kind in listed if kind in _TYPES]
    if not kinds:
        values = _values(node)
        of_values = (
            "null" if each is None else _TYPES_OF_VALUES.get(type(each), "") for each in values or ()
        )
        kinds = [kind for kind in of_values if kind]
    if not kinds:
        kinds = [kind for kind, keys in _HINTS.items() if any(key in node for key in keys)][:1]
    if node.get("nullable") is True and kinds:
        kinds.append("null")
    if "integer" in kinds and "number" in kinds:
        kinds.remove("integer")
    return list(dict.fromkeys(kinds))


def _values(node: Mapping[str, Any]) -> list[Any] | None:
    if "const" in node:
        return [node["const"]]
    found = node.get("enum")
    if isinstance(found, list) and found:
        return found
    return None


def _strings(node: Mapping[str, Any]) -> list[str]:
    """Return the texts of an ``enum`` that everyone takes: none of them empty, and not too many.

    Else none.
    """
    texts = list(dict.fromkeys(each for each in _values(node) or () if isinstance(each, str)))
    good = (
        all(texts) and len(texts) <= _MAX_ENUM_VALUES and max(map(len, texts), default=0) <= _MAX_VALUE_CHARS
    )
    return texts if good else []


def _items_of(node: Mapping[str, Any]) -> Any:
    """Return the schema of each item; of a list with a schema for each place, any of those."""
    items, places = node.get("items", True), node.get("prefixItems")
    if isinstance(places, list) and places:
        return {"anyOf": places}
    if isinstance(items, list):
        return {"anyOf": items} if items else True
    return items if items is not False else True


def _names(required: Any) -> list[str]:
    if isinstance(required, list):
        return list(dict.fromkeys(each for each in required if isinstance(each, str)))
    return []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format_values(values: Sequence[Any]) -> str:
    said = ", ".join(json.dumps(each, ensure_ascii=False, default=str) for each in values)
    if len(said) <= _MAX_VALUE_CHARS:
        return said
    return f"{said[:_MAX_VALUE_CHARS]}…"


def _is_plain_name(name: str) -> bool:
    return re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) is not None


def _all_names(root: Any) -> Iterator[str]:
    """Yield the names of all properties in a schema, without going deeper than its text is."""
    left, seen = [root], 0
    while left and seen < 20 * _MAX_PARTS:
        node = left.pop()
        seen += 1
        if isinstance(node, Mapping):
            inside = node.get("properties")
            yield from inside if isinstance(inside, Mapping) else ()
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _shorten_name(clean: str, own: str, marked: bool) -> str:  # noqa: FBT001 - whether another may be called the same
    """Shorten a name to the limit. ``marked`` adds a digest of the tool's full name, to keep it unique."""
    if not marked and len(clean) <= _MAX_NAME_CHARS:
        return clean
    digest = hashlib.sha256(own.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{clean[: _MAX_NAME_CHARS - 9]}_{digest}"


def _description(said: str) -> tuple[str, bool]:
    """Cut a description to the limit, and tell if it was cut.

    The remark that people approve the call first is kept.
    """
    if len(said) <= MAX_DESCRIPTION_CHARS:
        return said, False
    if said.endswith(APPROVED_FIRST):
        end = f"{_CUT_TEXT}{APPROVED_FIRST}"
    else:
        end = _CUT_TEXT
    return f"{said[: MAX_DESCRIPTION_CHARS - len(end)]}{end}", True


def _decode_object(arguments: str) -> dict[str, Any] | None:
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        return found
    return None


def _rename_fields(given: Any, names: Mapping[str, str]) -> Any:
    if isinstance(given, list):
        return [_rename_fields(each, names) for each in given]
    if isinstance(given, dict):
        return {names.get(name, name): _rename_fields(value, names) for name, value in given.items()}
    return given


def _properties(part: Any) -> Mapping[str, Any]:
    """Return the properties of a part that was sent, of all its alternatives."""
    if not isinstance(part, dict):
        return {}
    found = dict(part.get("properties", {}))
    for each in part.get("anyOf", ()):
        found |= _properties(each)
    return found


def _items(part: Any) -> Any:
    if not isinstance(part, dict):
        return None
    inside = [_items(each) for each in part.get("anyOf", ())]
    return part.get("items") or next(filter(None, inside), None)
