"""A writer that turns a tool's JSON schema into a schema that every maker's server accepts.

A *part* is the schema itself or a schema inside it, such as that of a property. Each part is written again
with only the keys that all makers accept. References (``$ref``) are replaced by their targets, and
``allOf`` and conditions are merged into the part. Other facts become words in its description. The rest is
left out and recorded as an *omission*. `SchemaWriter.write` returns the result.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from bot.agent.openai.schemas import parts
from bot.agent.openai.schemas.descriptions import KEPT_FORMATS, describe_part, end_sentence
from bot.agent.openai.schemas.names import is_accepted_name, list_property_names, make_argument_name
from bot.agent.openai.schemas.parts import Json, Part

_MAX_DEPTH = 10  # levels of objects and lists inside each other
_MAX_PARTS = 3_000  # parts of one schema, with its references written out
_MAX_REPEATS = 2  # how often a reference may be inside itself
_ANYTHING: Sequence[Json] = (
    {"type": "string"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "object"},
    {"type": "array", "items": {"type": "string"}},
)
"""The alternatives for a part that may have any type."""
_OMISSIONS = {
    "not": "what is not allowed",
    "if": "conditions between arguments",
    "dependentSchemas": "conditions between arguments",
    "dependentRequired": "conditions between arguments",
    "dependencies": "conditions between arguments",
    "patternProperties": "names of arguments by a pattern",
    "contains": "what a list must contain",
}
"""The keys that can be written neither in other keys nor in words, each with the name of the omission."""
_BRANCH_LEVEL = ""  # no reference is empty
_DEEP_OMISSION = "what is nested deeply in its arguments"  # also for a reference that leads to nothing
_ALTERNATIVES_OMISSION = "alternatives of its arguments"
_AS_TEXT_REMARK = "A JSON object, written as text."  # in the description of an object that is sent as text


class SchemaWriter:
    """A writer of one tool's schema. It records its omissions, and the names that it changed.

    In its methods, ``depth`` is the number of levels above a part, and ``references`` are the ``$ref`` values
    on the way from the top to the part. `_BRANCH_LEVEL` among them stands for a level of ``allOf``,
    conditions or alternatives, so that these levels are limited, too.
    """

    def __init__(self, schema: Mapping[str, Any], *, plain: bool) -> None:
        """Take the tool's schema. ``plain``: an object with unknown property names is sent as text."""
        self.own_name_by_sent: dict[str, str] = {}  # the tool's names, by the names that are sent instead
        self.omissions: set[str] = set()  # the omissions, in words for admins
        self.text_properties: set[str] = set()  # the sent names of properties whose objects are sent as text
        self._schema = schema
        self._is_plain = plain
        self._part_count = 0
        self._sent_names: dict[str, str] = {}  # the names that are sent, by the tool's own names
        self._taken_names = set(filter(is_accepted_name, list_property_names(schema)))

    def write(self) -> Json:
        """Return the schema of the arguments: an object, without alternatives at its top."""
        part, references = self._resolve(self._schema, ())
        part = self._merge_branches(part, references, is_top=True)
        return self._write_object({**part, "type": "object"}, 0, references)

    def _write_part(self, given: Any, depth: int, references: tuple[str, ...]) -> Json:
        """Return a part of any type, with its description. ``given``: a schema, or True or False.

        In JSON schema True allows anything, and False nothing.
        """
        self._part_count += 1
        if given is False:
            return {"type": "string", "description": "Leave this out."}
        if not isinstance(given, Mapping):
            return _write_any_of(_ANYTHING, "")
        if depth > _MAX_DEPTH or self._part_count > _MAX_PARTS:
            self.omissions.add(_DEEP_OMISSION)
            return {"type": "object", "description": "Anything that fits here."}
        part, references = self._resolve(given, references)
        part = self._merge_branches(part, references, is_top=False)
        self.omissions.update(omission for key, omission in _OMISSIONS.items() if key in part)
        description = describe_part(part)
        alternatives = parts.list_alternatives(part)
        if alternatives:
            written = [self._write_part(alternative, depth + 1, references) for alternative in alternatives]
            return _write_any_of(written, description)
        types = parts.list_types(part)
        if not types:
            return _write_any_of(_ANYTHING, description)
        written = [self._write_type(part, name, depth, references) for name in types]
        if len(written) > 1:
            return _write_any_of(written, description)
        return parts.add_description(written[0], description)

    def _write_type(self, part: Part, type_name: str, depth: int, references: tuple[str, ...]) -> Json:
        """Return a part of one type, without its description."""
        match type_name:
            case "object":
                return self._write_object(part, depth, references)
            case "array":
                items = self._write_part(parts.find_item(part), depth + 1, references)
                return {"type": "array", "items": items}
            case "string":
                return _write_text(part)
            case _:
                return {"type": type_name}

    def _write_object(self, part: Part, depth: int, references: tuple[str, ...]) -> Json:
        """Return an object with its properties under the names that are sent."""
        given = part.get("properties")
        properties = dict(given) if isinstance(given, Mapping) else {}
        required = parts.list_required(part)
        for name in required:
            properties.setdefault(name, True)
        written: Json = {"type": "object", "properties": {}}
        for name, value in properties.items():
            sent_name = self._choose_name(name)
            written["properties"][sent_name] = self._write_property(sent_name, value, depth, references)
        if required:
            written["required"] = [self._choose_name(name) for name in required]
        # makers want ``properties`` at the top; an inner object without known names is open to any
        if depth > 0 and not written["properties"]:
            del written["properties"]
        return written

    def _write_property(self, sent_name: str, given: Any, depth: int, references: tuple[str, ...]) -> Json:
        """Return a property of an object; in the plain form, an object with unknown names becomes a text."""
        written = self._write_part(given, depth + 1, references)
        has_unknown_names = written.get("type") == "object" and not written.get("properties")
        if not self._is_plain or not has_unknown_names:
            return written
        self.text_properties.add(sent_name)
        description = f"{written.get('description', '')} {_AS_TEXT_REMARK}".strip()
        return {"type": "string", "description": description}

    def _choose_name(self, name: str) -> str:
        """Return the name under which a property is sent, always the same for one of the tool's names."""
        if is_accepted_name(name):
            return name
        if name not in self._sent_names:
            sent_name = make_argument_name(name, self._taken_names)
            self._taken_names.add(sent_name)
            self._sent_names[name] = sent_name
            self.own_name_by_sent[sent_name] = name
        return self._sent_names[name]

    def _resolve(self, part: Part, references: tuple[str, ...]) -> tuple[Part, tuple[str, ...]]:
        """Return a part with its reference replaced by the target, and the references on the way to it.

        A target may have a reference itself. A reference that leads too deep, or to nothing, is left out.
        """
        for _ in range(_MAX_DEPTH):
            reference = part.get("$ref")
            if not isinstance(reference, str):
                return part, references
            other_keys = {key: value for key, value in part.items() if key != "$ref"}
            is_too_deep = references.count(reference) >= _MAX_REPEATS
            target = None if is_too_deep else self._find_target(reference)
            if not isinstance(target, Mapping):
                self.omissions.add(_DEEP_OMISSION)
                return {"type": "object", **other_keys}, references
            part = {**target, **other_keys}
            references = (*references, reference)
        return {"type": "object"}, references

    def _find_target(self, reference: str) -> Any:
        """Return the target of a reference within the schema; None for any other reference."""
        if not reference.startswith("#"):
            return None
        path = reference.removeprefix("#").strip("/")
        target: Any = self._schema
        for step in path.split("/") if path else ():
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping):
                target = target.get(name)
            elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                return None
        return target

    def _merge_branches(self, part: Part, references: tuple[str, ...], *, is_top: bool) -> Part:
        """Return a part with its branches (``allOf``, ``then``, ``else``, alternatives) merged into it.

        Of the alternatives (``anyOf``, ``oneOf``), not all are merged:

        - Alternatives at the top, or of an object, become one object with all of their arguments.
        - Alternatives of a part that states one other type only narrow this type, and are left out.
        - Alternatives of any other part stay as they are.
        """
        merged = dict(part)
        for branch in self._read_branches(merged.pop("allOf", None), references):
            merged = parts.merge_part(merged, branch)
        for key in ("then", "else"):
            given = [merged[key]] if key in merged else None
            for branch in self._read_branches(given, references):
                merged = parts.add_optional_properties(merged, branch)
        for key in ("anyOf", "oneOf"):
            has_arguments = is_top or parts.is_object(merged)
            if key in merged and (has_arguments or parts.has_one_type(merged)):
                alternatives = self._read_branches(merged.pop(key), references)
                merged = _merge_alternatives(merged, alternatives, has_arguments=has_arguments)
                self.omissions.add(_ALTERNATIVES_OMISSION)
        return merged

    def _read_branches(self, given: Any, references: tuple[str, ...]) -> list[Part]:
        """Return a list of schemas, each resolved and merged; empty for anything else and beyond limits."""
        self._part_count += 1
        if not isinstance(given, list) or self._part_count > _MAX_PARTS or len(references) > _MAX_DEPTH:
            return []
        branches = []
        for branch in given:
            if isinstance(branch, Mapping):
                part, references_within = self._resolve(branch, references)
                branches.append(self._merge_branches(part, (*references_within, _BRANCH_LEVEL), is_top=False))
        return branches


def close_objects(written: Any) -> Any:
    """Return a written schema whose objects take no further properties, as OpenAI's strict mode demands."""
    if isinstance(written, list):
        return [close_objects(item) for item in written]
    if not isinstance(written, dict):
        return written
    closed = dict(written)
    for key in {"items", "anyOf"} & written.keys():
        closed[key] = close_objects(written[key])
    if written.get("type") == "object" and "properties" in written:
        closed["properties"] = {name: close_objects(part) for name, part in written["properties"].items()}
        closed.setdefault("required", [])
        closed["additionalProperties"] = False
    return closed


def _write_text(part: Part) -> Json:
    written: Json = {"type": "string"}
    values = parts.list_enum_texts(part)
    if values:
        written["enum"] = values
    if part.get("format") in KEPT_FORMATS:
        written["format"] = part["format"]
    return written


def _write_any_of(alternatives: Sequence[Json], description: str) -> Json:
    """Return ``anyOf`` with each alternative once; one alternative alone is returned without ``anyOf``.

    An alternative that is itself an ``anyOf`` is replaced by its own alternatives. No other key may be next
    to ``anyOf``, so the first alternative has the description of all.
    """
    flat: list[Json] = []
    for alternative in alternatives:
        for inner in alternative.get("anyOf", (alternative,)):
            if inner not in flat:
                flat.append(inner)
    first, *others = flat
    if first.get("description"):
        description = " ".join(filter(None, [end_sentence(description), first["description"]]))
    first = parts.add_description(first, description)
    return {"anyOf": [first, *others]} if others else first


def _merge_alternatives(part: Json, alternatives: Sequence[Part], *, has_arguments: bool) -> Json:
    """Return a part with the arguments of its alternatives.

    Its description says which arguments belong together: "Give one of: id; or name and place." An argument
    that all alternatives require is required. ``has_arguments``: the alternatives may add arguments.
    """
    merged = part
    if has_arguments:
        for alternative in alternatives:
            merged = parts.add_optional_properties(merged, alternative)
    required = [set(parts.list_required(alternative)) for alternative in alternatives]
    always_required = set.intersection(*required) if required else set()
    merged["required"] = [*parts.list_required(merged), *sorted(always_required)]
    choices = [" and ".join(sorted(names - always_required)) for names in required if names - always_required]
    if len(choices) > 1:
        sentence = f"Give one of: {'; or '.join(choices)}."
        merged["description"] = f"{merged.get('description') or ''} {sentence}".strip()
    return merged
