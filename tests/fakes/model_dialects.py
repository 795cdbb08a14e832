"""What the makers of models refuse in a request, each with the public page that says so. Pure.

Each check takes a body of Chat Completions and raises `RefusalError` in words like the maker's. A check knows
nothing of how Nod makes a request, and holds more rules than Nod comes near. Makers change their rules: where
an older rule was given up by its maker, it stays, since gateways and older deployments keep it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema

from tests.fakes.openai_rules import Json, RefusalError, check, check_strict

_DRAFT = jsonschema.Draft202012Validator
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_COMBINED = ("oneOf", "anyOf", "allOf")
_IN_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_IN_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}


@dataclass(frozen=True)
class Dialect:
    """A maker's interface: what it refuses in a request, and the shape of its errors.

    ``status`` is that of a refusal. ``error`` makes its body of the message and the code.
    """

    name: str
    check: Callable[[Json], None]
    error: Callable[[str, str | None], Any]
    status: int = 400


def _parts(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every part of a schema that is a schema itself, with its path."""
    yield path, schema
    if not isinstance(schema, Mapping):
        return
    for key in _IN_SCHEMAS:
        inside = schema.get(key)
        for name, part in inside.items() if isinstance(inside, Mapping) else ():
            yield from _parts(part, (*path, key, name))
    for key in _IN_LISTS:
        inside = schema.get(key)
        for at, part in enumerate(inside if isinstance(inside, list) else ()):
            yield from _parts(part, (*path, key, str(at)))
    for key in _IN_ONE:
        if key in schema:
            yield from _parts(schema[key], (*path, key))


def _types(part: Any) -> list[str]:
    found = part.get("type") if isinstance(part, Mapping) else None
    return list(found) if isinstance(found, list) else [found] if found else []


def _functions(body: Json) -> Iterator[tuple[int, Json, Json]]:
    """Each tool's position, its function and its schema."""
    for at, tool in enumerate(body.get("tools") or ()):
        function = tool["function"]
        yield at, function, function.get("parameters", {"type": "object", "properties": {}})


def _calls(message: Json) -> Sequence[Json]:
    return message.get("tool_calls") or ()


def _text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return content or ""


def _spoken(body: Json) -> list[Json]:
    """The messages that are not the system's."""
    return [each for each in body["messages"] if each["role"] not in ("system", "developer")]


# OpenAI


def check_openai(body: Json) -> None:
    """OpenAI's Chat Completions, where no schema has to be strict."""
    check(body)
    check_openai_tools([(function, schema) for _, function, schema in _functions(body)])


def check_openai_tools(tools: Sequence[tuple[Json, Json]]) -> None:
    """Hold each function and its schema to what both of OpenAI's interfaces refuse."""
    if len(tools) > 128:
        # https://github.com/zed-industries/zed/issues/32946
        raise RefusalError(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array "
            f"with length {len(tools)} instead.",
            "array_above_max_length",
        )
    for at, (function, schema) in enumerate(tools):
        if len(function.get("description") or "") > 1024:
            # https://github.com/rusiaaman/wcgw/issues/51; later models take more
            # (https://github.com/run-llama/llama_index/pull/18784)
            raise RefusalError(
                f"Invalid 'tools[{at}].function.description': string too long. Expected a string with "
                f"maximum length 1024, but got a string with length {len(function['description'])} instead.",
                "string_above_max_length",
            )
        _check_openai_schema(function["name"], schema)


def _check_openai_schema(name: str, schema: Any) -> None:
    about = f"Invalid schema for function '{name}': "
    if schema.get("type") != "object" or schema.keys() & {*_COMBINED, "enum", "not"}:
        # https://github.com/langchain-ai/langchainjs/issues/9804
        raise RefusalError(
            f"{about}schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the "
            "top level.",
            "invalid_function_parameters",
        )
    try:
        _DRAFT.check_schema(schema)
    except jsonschema.SchemaError as error:
        # https://github.com/cbdb-project/cbdb-online-main-server/pull/879: “[] is not of type 'object'”
        raise RefusalError(f"{about}{error.message}", "invalid_function_parameters") from None
    for path, part in _parts(schema):
        if "array" in _types(part) and not isinstance(part.get("items"), Mapping | bool):
            # https://github.com/mark3labs/mcphost/issues/35, in a list of types:
            # https://github.com/Automattic/wordpress-mcp/issues/103
            raise RefusalError(
                f"{about}In context={path}, array schema missing items.", "invalid_function_parameters"
            )


_STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref",
    "$defs", "description", "title", "pattern", "format", "minItems", "maxItems", "minimum", "maximum",
    "minLength", "maxLength", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}  # fmt: skip
_STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_STRICT_DEPTH = 10


def check_openai_strict(body: Json) -> None:
    """As `check_openai`, and each schema that says ``strict`` is held to it.

    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    check_openai(body)
    for _, function, schema in _functions(body):
        if function.get("strict"):
            check_strict_schema(function["name"], schema)


def check_strict_schema(name: str, schema: Json) -> None:
    """Raise RefusalError for what strict mode does not take.

    Each rule is a paragraph of https://platform.openai.com/docs/guides/structured-outputs#supported-schemas,
    in the order of that page; where someone met the refusal, that is named too.
    """
    check_strict(name, schema)
    for path, part in _parts(schema):
        if problem := _strict_problem(path, part):
            words = f"Invalid schema for function '{name}': In context={path}, {problem}"
            raise RefusalError(words, "invalid_function_parameters")
    if problem := _strict_size_problem(schema):
        raise RefusalError(f"Invalid schema for function '{name}': {problem}", "invalid_function_parameters")


def _strict_problem(path: tuple[str, ...], part: Any) -> str | None:
    if isinstance(part, bool):
        return None if path and path[-1] == "additionalProperties" else "schema must be an object."
    others = part.keys() - {"$ref"}
    if "$ref" in part:
        # https://github.com/camel-ai/camel/issues/3001
        return f"$ref cannot have keywords {sorted(others)}." if others else None
    if unknown := part.keys() - _STRICT_KEYWORDS:
        # “Some type-specific keywords are not yet supported”
        return f"'{min(unknown)}' is not permitted."
    if not part.keys() & {"type", "anyOf", "enum", "const"}:
        # “Supported types”
        return "schema must have a 'type' key."
    if ("object" in _types(part) or "properties" in part) and part.get("additionalProperties") is not False:
        # “additionalProperties: false must always be set in objects”
        return "'additionalProperties' is required to be supplied and to be false."
    if set(part.get("required", ())) != set(part.get("properties", ())):
        # “All fields must be required”
        return "'required' is required to be supplied and to be an array including every key in properties."
    if part.get("format", "date") not in _STRICT_FORMATS:
        # “Supported properties”: `format`
        return f"'{part['format']}' is not a valid format."
    if "(?" in part.get("pattern", ""):
        # “Supported properties”: `pattern`
        return "'pattern' has a look-around, which is not supported."
    if sum(key == "properties" for key in path) > _STRICT_DEPTH:
        # “Objects have limitations on nesting depth and size”; with five levels:
        # https://github.com/tidyverse/ellmer/issues/671
        return "schema is nested too deeply."
    return None


def _strict_size_problem(schema: Json) -> str | None:
    """“Objects have limitations on nesting depth and size”, “… on total string size”, “… on enum size”."""
    parts = [part for _, part in _parts(schema) if isinstance(part, Mapping)]
    names = [name for part in parts for key in ("properties", "$defs") for name in part.get(key, ())]
    enums = [[str(value) for value in part["enum"]] for part in parts if "enum" in part]
    values = [value for enum in enums for value in enum]
    consts = [str(part["const"]) for part in parts if "const" in part]
    if sum(len(part.get("properties", ())) for part in parts) > 5_000:
        return "schema has more than 5000 object properties."
    if sum(map(len, [*names, *values, *consts])) > 120_000:
        return "the names and values of the schema are longer than 120000 characters."
    if len(values) > 1_000:
        return "schema has more than 1000 enum values."
    if any(len(enum) > 250 and sum(map(len, enum)) > 15_000 for enum in enums):
        return "an enum of more than 250 values is longer than 15000 characters."
    return None


# Anthropic


def check_anthropic(body: Json) -> None:
    """Anthropic's compatible endpoint, and Claude at Bedrock and Vertex behind gateways.

    Its system messages are joined before the first (https://docs.claude.com/en/api/openai-sdk), so they
    may stand anywhere.
    """
    _check_any(body)
    seen: set[str] = set()
    for at, message in enumerate(_spoken(body)):
        if message["role"] != "assistant" and not _text(message).strip() and not _has_picture(message):
            # https://docs.claude.com/en/api/errors; Bedrock says “The content field … is empty”
            raise RefusalError(f"messages.{at}: text content blocks must be non-empty")
        for call in _calls(message):
            if not re.fullmatch(r"[a-zA-Z0-9_-]+", call["id"]):
                # https://docs.claude.com/en/api/messages: `tool_use.id`
                raise RefusalError(
                    f"messages.{at}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                )
            if call["id"] in seen:
                raise RefusalError(f"messages.{at}: `tool_use` ids must be unique")
            seen.add(call["id"])
    last = body["messages"][-1]
    if last["role"] == "assistant":
        # newer Claude models have no prefill: https://docs.claude.com/en/about-claude/models
        raise RefusalError("This model does not support assistant message prefill.")
    if _spoken(body)[0]["role"] != "user":
        raise RefusalError('messages: first message must use the "user" role')
    for at, _, schema in _functions(body):
        _check_anthropic_schema(f"tools.{at}.custom.input_schema", schema)


def _check_anthropic_schema(where: str, schema: Json) -> None:
    if schema.keys() & set(_COMBINED):
        # https://github.com/RooCodeInc/Roo-Code/pull/10726
        raise RefusalError(f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    if schema.get("type") != "object":
        raise RefusalError(f"{where}.type: Input should be 'object'")
    try:
        _DRAFT.check_schema(schema)
    except jsonschema.SchemaError:
        raise RefusalError(
            f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12"
        ) from None
    for _, part in _parts(schema):
        if not isinstance(part, Mapping):
            continue
        if "$ref" in part:
            # https://github.com/diegosouzapw/OmniRoute/issues/13552, which quotes
            # https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes
            raise RefusalError(f"{where}: $ref is not supported")
        for name in part.get("properties", ()):
            if not _KEY.fullmatch(name):
                # https://github.com/n8n-io/n8n/issues/30590, https://github.com/ComposioHQ/composio/issues/3500
                raise RefusalError(
                    f"{where}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
                )


# Gemini


def check_gemini(body: Json) -> None:
    """Gemini's compatible endpoint, by the stricter of its own rules and Vertex's.

    https://ai.google.dev/api/caching#Schema lists what a schema may hold.
    """
    _check_any(body)
    if body["messages"][-1]["role"] == "assistant":
        # https://github.com/crewAIInc/crewAI/pull/6973
        raise RefusalError("Please ensure that the request ends with a user turn or a function response.")
    _check_gemini_turns(_spoken(body), signed="gemini-3" in str(body.get("model")))
    for at, function, schema in _functions(body):
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", function["name"]):
            # https://ai.google.dev/api/caching#FunctionDeclaration
            raise RefusalError(
                f"* GenerateContentRequest.tools[0].function_declarations[{at}].name: Invalid function name. "
                "Must start with a letter or an underscore."
            )
        _check_gemini_schema(f"tools[0].function_declarations[{at}].parameters", schema)


def _check_gemini_turns(spoken: Sequence[Json], *, signed: bool) -> None:
    before, asked = "", max((at for at, each in enumerate(spoken) if each["role"] == "user"), default=0)
    for at, message in enumerate(spoken):
        if _calls(message) and before not in ("user", "tool"):
            # https://github.com/google-gemini/gemini-cli/issues/26486
            raise RefusalError(
                "Please ensure that function call turn comes immediately after a user turn or after a "
                "function response turn."
            )
        if signed and at > asked and _calls(message) and not _signature(_calls(message)[0]):
            # https://ai.google.dev/gemini-api/docs/thought-signatures
            name = _calls(message)[0]["function"]["name"]
            raise RefusalError(
                "Function call is missing a thought_signature in functionCall parts. This is required for "
                f"tools to work correctly. Additional data, function call `default_api:{name}`."
            )
        before = message["role"]


def _signature(call: Json) -> str:
    extra = call.get("extra_content") or {}
    return str((extra.get("google") or {}).get("thought_signature") or "")


_GEMINI_KEYWORDS = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties",
    "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf",
    "propertyOrdering", "default", "items", "minimum", "maximum",
    "additionalProperties",  # taken since strict schemas of the compatible endpoint are
}  # fmt: skip


def _check_gemini_schema(where: str, schema: Any) -> None:
    for path, part in _parts(schema):
        if isinstance(part, bool):
            if path and path[-1] == "additionalProperties":
                continue
            raise RefusalError(f"Invalid value at '{where}' ({'/'.join(path)}), {part}")
        if problem := _gemini_problem(part):
            raise RefusalError(f"* GenerateContentRequest.{where}.{'.'.join(path)}{problem}")


def _gemini_problem(part: Json) -> str | None:  # noqa: PLR0911 - one line for each rule
    if unknown := part.keys() - _GEMINI_KEYWORDS:
        # https://github.com/nanbingxyz/5ire/issues/42
        return f': Invalid JSON payload received. Unknown name "{min(unknown)}": Cannot find field.'
    if isinstance(part.get("type"), list):
        # https://github.com/WordPress/ai-provider-for-google/issues/33
        return ': Unknown name "type": Proto field is not repeating, cannot start list.'
    if "anyOf" in part:
        # https://github.com/google/adk-go/pull/1085
        others = part.keys() - {"anyOf"}
        return ": schema specified other fields alongside any_of." if others else None
    kind = part.get("type")
    if kind not in _TYPES:
        # https://github.com/UKGovernmentBEIS/inspect_ai/pull/3097: TYPE_UNSPECIFIED
        return ": schema didn't specify the schema type field."
    if kind == "array" and not isinstance(part.get("items"), Mapping):
        # https://github.com/kkrishnan90/gemini-desktop/pull/7
        return ".items: missing field."
    if kind != "object" and part.keys() & {"properties", "required"}:
        # https://github.com/anomalyco/opencode/issues/11889
        return ".properties: only allowed for OBJECT type"
    if kind != "array" and "items" in part:
        return ".items: only allowed for ARRAY type"
    if [name for name in part.get("required", ()) if name not in part.get("properties", {})]:
        # https://github.com/Kilo-Org/kilocode/pull/11955
        return ".required[0]: property is not defined"
    if "enum" in part and kind != "string":
        # https://github.com/diegosouzapw/OmniRoute/pull/760
        return ".enum: only allowed for STRING type"
    if not all(isinstance(each, str) for each in part.get("enum", ())):
        # https://github.com/microsoft/azure-devops-mcp/issues/139
        return ".enum[0]: Invalid value (TYPE_STRING)"
    if "enum" in part and (not part["enum"] or "" in part["enum"]):
        return ".enum[0]: cannot be empty"
    if kind == "string" and part.get("format", "enum") not in ("enum", "date-time"):
        # https://ai.google.dev/api/caching#Schema: `format`
        return ".format: only 'enum' and 'date-time' are supported for STRING type"
    return None


# Mistral

_MISTRAL_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
}


def check_mistral(body: Json) -> None:
    """Mistral's own interface: https://docs.mistral.ai/api/ and mistral-common's validator."""
    _check_any(body)
    before = ""
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if extra := message.keys() - _MISTRAL_FIELDS.get(role, set()):
            raise RefusalError(f"messages.{at}.{role}.{min(extra)}: Extra inputs are not permitted")
        if role == "system" and before not in ("", "system"):
            raise RefusalError(f"Unexpected role 'system' after role '{before}'")
        if role == "user" and before == "tool":
            # https://github.com/zed-industries/zed/issues/37021, https://github.com/mistralai/mistral-vibe/issues/578
            raise RefusalError("Unexpected role 'user' after role 'tool'", "3230")
        if role == "tool" and before not in ("assistant", "tool"):
            raise RefusalError(f"Unexpected role 'tool' after role '{before}'", "3230")
        if role == "assistant" and before not in ("user", "tool"):
            raise RefusalError(f"Unexpected role 'assistant' after role '{before or 'system'}'", "3230")
        for call in _calls(message):
            _check_mistral_id(call["id"])
            if call.keys() - {"id", "type", "function", "index"}:
                raise RefusalError(f"messages.{at}.assistant.tool_calls.0: Extra inputs are not permitted")
        if role == "tool":
            _check_mistral_id(message["tool_call_id"])
        before = role
    if before == "assistant":
        # https://github.com/0xPlaygrounds/rig/pull/1130
        raise RefusalError(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        )


def _check_mistral_id(ident: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9]{9}", ident):
        # https://github.com/langchain-ai/langchain/pull/24668
        raise RefusalError(f"Tool call id was {ident} but must be a-z, A-Z, 0-9, with a length of 9.", "3280")


# llama.cpp, vLLM, NIM: the model's own chat template, and a grammar made of the schemas

_GRAMMAR_ESCAPES = re.compile(r"\\[dDwWsSbBAZ]|\(\?")
_MOST_REPEATED = 2000


def check_templates(body: Json, *, single_calls: bool = False) -> None:
    """Strict chat templates, and llama.cpp's grammars.

    ``single_calls``: as Llama 3's template, which takes one call in an answer.
    """
    _check_any(body)
    first, *rest = body["messages"]
    if any(each["role"] in ("system", "developer") for each in rest):
        # https://github.com/vllm-project/vllm/issues/41114
        raise RefusalError("System message must be at the beginning.")
    _check_alternation([first, *rest])
    for message in [first, *rest]:
        if message.get("content") is None:
            # llama-cpp-python and LM Studio: docs/models.md, “Tried with a small real model”
            raise RefusalError("content: Input should be a valid string")
        if isinstance(message["content"], list) and not _has_picture(message):
            raise RefusalError('can only concatenate str (not "list") to str')
        if single_calls and len(_calls(message)) > 1:
            # https://github.com/vllm-project/vllm/blob/main/examples/tool_chat_template_llama3.1_json.jinja
            raise RefusalError("This model only supports single tool-calls at once!")
        for call in _calls(message):
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
                # https://github.com/ml-explore/mlx-lm/issues/1375
                raise RefusalError("Tool call IDs should be alphanumeric strings with length 9!")
    for _, function, schema in _functions(body):
        _check_grammar(function["name"], schema)


def _check_alternation(messages: Sequence[Json]) -> None:
    """Hold the order of https://github.com/vllm-project/vllm/issues/6862: user and assistant take turns.

    A template looks over the answers of tools and what called them, as Mistral's does, and another
    refuses a person's words right after a tool's.
    """
    before, awaits_user = "", True
    for message in messages:
        role = message["role"]
        if role == "user" and before == "tool":
            # https://github.com/NousResearch/hermes-agent/issues/20154
            raise RefusalError("Unexpected role 'user' after role 'tool'")
        if role == "user" or (role == "assistant" and not _calls(message)):
            if (role == "user") is not awaits_user:
                # https://github.com/mistralai/mistral-vibe/issues/1006
                raise RefusalError(
                    "After the optional system message, conversation roles must alternate user and assistant "
                    "roles except for tool calls and results."
                )
            awaits_user = role == "assistant"
        if _calls(message) and before not in ("user", "tool"):
            raise RefusalError("Conversation roles must alternate user/assistant/user/assistant/...")
        before = role
    if before == "assistant":
        raise RefusalError("Cannot continue from an assistant message when tools are given.")


def _check_grammar(name: str, schema: Any) -> None:
    for path, part in _parts(schema):
        if isinstance(part, bool):
            if path and path[-1] == "additionalProperties":
                continue
            raise RefusalError(f"JSON schema conversion failed:\nUnrecognized schema: {str(part).lower()}")
        if any(kind not in _TYPES for kind in _types(part)):
            raise RefusalError(f"JSON schema conversion failed:\nUnrecognized schema of {name}")
        pattern = part.get("pattern", "^$")
        if not (pattern.startswith("^") and pattern.endswith("$")):
            # https://github.com/ggml-org/llama.cpp/issues/26930
            raise RefusalError("JSON schema conversion failed:\nPattern must start with '^' and end with '$'")
        if _GRAMMAR_ESCAPES.search(pattern):
            # https://github.com/ggml-org/llama.cpp/issues/22314
            raise RefusalError(f"failed to parse grammar: unknown escape at {pattern[:20]}")
        if "enum" in part and not part["enum"]:
            raise RefusalError(f"JSON schema conversion failed:\nUnrecognized schema at {'/'.join(path)}")
        bounds = [part.get(key) for key in ("minLength", "maxLength", "minItems", "maxItems")]
        if any(isinstance(each, int) and each > _MOST_REPEATED for each in bounds):
            # https://github.com/AtomicBot-ai/Atomic-Chat/pull/272
            raise RefusalError("failed to parse grammar: number of repetitions exceeds sane defaults")
        if str(part.get("$ref", "#")).startswith(("http:", "file:")):
            raise RefusalError(f"JSON schema conversion failed:\nUnsupported ref {part['$ref']}")


# all of them


def _check_any(body: Json) -> None:
    """What every one of them refuses: a call without its result, two of one name, no messages."""
    check(body)
    for at, function, _ in _functions(body):
        if not _NAME.fullmatch(function["name"]):
            raise RefusalError(
                f"tools.{at}.function.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
            )


def _has_picture(message: Json) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(part.get("type") == "image_url" for part in content)


def plain_error(message: str, code: str | None) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def _anthropic_error(message: str, _: str | None) -> Any:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _gemini_error(message: str, _: str | None) -> Any:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def _mistral_error(message: str, code: str | None) -> Any:
    kind = "invalid_request_message_order"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def _llama_error(message: str, _: str | None) -> Any:
    return {"error": {"code": 400, "message": message, "type": "invalid_request_error"}}


DIALECTS = (
    Dialect("openai", check_openai, plain_error),
    Dialect("openai-strict", check_openai_strict, plain_error),
    Dialect("anthropic", check_anthropic, _anthropic_error),
    Dialect("gemini", check_gemini, _gemini_error),
    Dialect("mistral", check_mistral, _mistral_error),
    Dialect("templates", check_templates, _llama_error),
)
