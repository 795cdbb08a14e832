"""Tools in the form in which a model is offered them, which the servers of all makers accept. Pure.

A `ToolOffer` has the name, description and schema that are sent. They may differ from the tool's own: makers
limit names and lengths, and refuse parts of schemas (``schemas/``). The tool keeps its own name and schema,
by which arguments are checked and cards are shown. So a model's call is translated back (*restored*) when it
arrives, and an earlier call is translated (*renamed*) when it is sent in a history.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from bot.agent.openai.schemas.names import make_tool_name
from bot.agent.openai.schemas.parts import Json
from bot.agent.openai.schemas.writer import SchemaWriter, close_objects
from bot.domain.model import ToolCall, ToolSpec
from bot.tools.schema import fits_strict_mode
from bot.tools.tool import APPROVED_FIRST

MAX_TOOLS = 128
"""The most tools of one request; OpenAI's limit."""
MAX_DESCRIPTION_CHARS = 1024
_CUT_TEXT = "… (This description was too long and is cut here.)"
_CUT_OMISSION = "the end of its description"


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool in the form in which a model server receives it."""

    spec: ToolSpec
    name: str
    description: str
    parameters: Json | None  # the schema; None for a tool without arguments, if the form is ``plain``
    strict: bool = False  # the server is told that the model must keep to the schema exactly
    omissions: tuple[str, ...] = ()  # the parts of the tool that the model does not see, in words for admins
    # the arguments' own names, by the sent names
    own_name_by_sent: Mapping[str, str] = field(default_factory=dict)
    text_arguments: AbstractSet[str] = frozenset()  # sent names of arguments whose objects are sent as text
    plain: bool = False  # the schema is in the plainest form, for servers that refuse more: see `offer_tool`

    def restore_arguments(self, arguments: str) -> str:
        """Return the arguments of a model's call under the tool's own names, objects as objects again.

        Arguments that are no JSON object stay as they are.
        """
        if not self.own_name_by_sent and not self.text_arguments:
            return arguments
        given = _parse_object(arguments)
        if given is None:
            return arguments
        return json.dumps(self._restore_value(given, self.parameters), ensure_ascii=False)

    def rename_arguments(self, arguments: str) -> str:
        """Return the arguments of an earlier call under the names that are sent.

        Arguments that are no JSON object stay as they are.
        """
        given = _parse_object(arguments) if self.own_name_by_sent else None
        if given is None:
            return arguments
        sent_names = {own: sent for sent, own in self.own_name_by_sent.items()}
        return json.dumps(_rename_fields(given, sent_names), ensure_ascii=False)

    def _restore_value(self, value: Any, schema: Any) -> Any:
        """Return a value with the tool's own names in it.

        ``schema`` is the sent schema of the value. Names that it doesn't have stay as they are.
        """
        if isinstance(value, list):
            item_schema = _find_item_schema(schema)
            return [self._restore_value(item, item_schema) for item in value]
        if not isinstance(value, dict):
            return value
        properties = _list_properties(schema)
        restored = {}
        for name, inner in value.items():
            is_sent_name = properties.get(name) is not None
            own_name = self.own_name_by_sent.get(name, name) if is_sent_name else name
            decoded = _parse_object(inner) if name in self.text_arguments and isinstance(inner, str) else None
            if decoded is None:
                decoded = self._restore_value(inner, properties.get(name))
            restored[own_name] = decoded
        return restored


class ToolOffers:
    """The tools of one request. They translate calls between the sent names and the tools' own names."""

    def __init__(self, offers: Sequence[ToolOffer]) -> None:
        self.all = tuple(offers)
        self._by_sent_name = {offer.name: offer for offer in offers}
        self._by_own_name = {offer.spec.name: offer for offer in offers}

    def restore_call(self, call: ToolCall) -> ToolCall:
        """Return a model's call with the tool's own names; as it is, if it names no tool of the request."""
        offer = self._by_sent_name.get(call.name)
        if offer is None:
            return call
        return replace(call, name=offer.spec.name, arguments=offer.restore_arguments(call.arguments))

    def rename_call(self, call: ToolCall) -> ToolCall:
        """Return an earlier call with the names that are sent. Its tool may be gone by now."""
        offer = self._by_own_name.get(call.name)
        if offer is None:
            return replace(call, name=make_tool_name(call.name))
        return replace(call, name=offer.name, arguments=offer.rename_arguments(call.arguments))


def offer_tool(spec: ToolSpec, *, strict: bool = True, plain: bool = False) -> ToolOffer:
    """Return a tool in the form that every maker accepts.

    ``strict``: the server may be told that the model must keep to the schema exactly, if the schema allows
    that. ``plain``: the form for servers that refuse more parts of schemas, such as Gemini's. An argument
    that is an object with unknown names becomes a text, and a tool without arguments has no schema.
    """
    writer = SchemaWriter(spec.parameters, plain=plain)
    parameters: Json | None = writer.write()
    description, is_cut = _cut_description(spec.description)
    strict_parameters = None
    if strict and spec.strict and not writer.omissions and not writer.own_name_by_sent:
        strict_parameters = close_objects(parameters)
    is_strict = strict_parameters is not None and fits_strict_mode(strict_parameters)
    if is_strict:
        parameters = strict_parameters
    if plain and not (parameters or {}).get("properties"):
        parameters = None
        is_strict = False
    cut = [_CUT_OMISSION] if is_cut else []
    return ToolOffer(
        spec=spec,
        name=make_tool_name(spec.name),
        description=description,
        parameters=parameters,
        strict=is_strict,
        omissions=(*cut, *sorted(writer.omissions)),
        own_name_by_sent=writer.own_name_by_sent,
        text_arguments=frozenset(writer.text_properties),
        plain=plain,
    )


def list_omissions(spec: ToolSpec) -> tuple[str, ...]:
    """Return in words the parts of a tool that no model sees, since some maker's server would refuse them."""
    return offer_tool(spec).omissions


def _cut_description(description: str) -> tuple[str, bool]:
    """Return a description of at most 1,024 characters, and True if it was cut.

    The remark at its end that people approve the call first is never cut.
    """
    if len(description) <= MAX_DESCRIPTION_CHARS:
        return description, False
    end = _CUT_TEXT
    if description.endswith(APPROVED_FIRST):
        end += APPROVED_FIRST
    return f"{description[: MAX_DESCRIPTION_CHARS - len(end)]}{end}", True


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rename_fields(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value with its fields renamed, at any depth. ``names``: the new names, by the old."""
    if isinstance(value, list):
        return [_rename_fields(item, names) for item in value]
    if isinstance(value, dict):
        return {names.get(name, name): _rename_fields(inner, names) for name, inner in value.items()}
    return value


def _list_properties(schema: Any) -> Mapping[str, Any]:
    """Return the properties of a schema that was sent, and of all its alternatives."""
    if not isinstance(schema, dict):
        return {}
    properties = dict(schema.get("properties", {}))
    for alternative in schema.get("anyOf", ()):
        properties |= _list_properties(alternative)
    return properties


def _find_item_schema(schema: Any) -> Any:
    """Return the schema of a list's items, or of the items of the first alternative that is a list."""
    if not isinstance(schema, dict):
        return None
    if schema.get("items"):
        return schema["items"]
    item_schemas = (_find_item_schema(alternative) for alternative in schema.get("anyOf", ()))
    return next(filter(None, item_schemas), None)
