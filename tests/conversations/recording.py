"""The requests of one conversation as text that people can read. Pure.

Each message has a number from where it is first sent; where it is sent again, its number alone says so. So
what a request has in common with those before it can be seen, and what was left out of it.
"""

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import ndiff
from hashlib import sha256
from itertools import groupby
from typing import Any

Json = Mapping[str, Any]

_BEGINNING, _END = 160, 40  # characters of a long text that are shown
_LONG = 260
_WIDTH = 110
_HANDLE = re.compile(r"\bout-[0-9a-f]{16}\b")
_CODE = 8  # characters of a hash


def whole(request: Json) -> str:
    """One request in full: the prompt, and each tool as it is offered."""
    fields = {name: value for name, value in request.items() if name not in ("messages", "tools")}
    parts = [json.dumps(fields), *(f"── {m['role']}\n{m['content']}" for m in request["messages"])]
    parts += [f"── tool {_tool(each)}" for each in request.get("tools", ())]
    return "\n".join(part.rstrip() for part in parts) + "\n"


def _tool(offered: Json) -> str:
    function = dict(offered["function"])
    parameters = dict(function.pop("parameters"))
    lines = [function.pop("name"), function.pop("description")]
    lines += [f"  {name}: {_json(each)}" for name, each in parameters.pop("properties").items()]
    return "\n".join([*lines, _json(parameters | function)])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def told(requests: Sequence[Json], usual: Json) -> str:
    """All requests of a conversation. What is as in the ``usual`` one is not said again."""
    return "\n".join(_Recording(usual).lines(requests)) + "\n"


class _Recording:
    def __init__(self, usual: Json) -> None:
        self._usual = usual
        self._numbers: dict[str, int] = {}
        self._ids: dict[str, str] = {}
        self._calls = re.compile(r"(?!)")

    def lines(self, requests: Sequence[Json]) -> Iterator[str]:
        self._name_calls(requests)
        for at, request in enumerate(requests, 1):
            yield f"request {at}{self._unusual(request)}"
            seen: Counter[str] = Counter()
            again: list[int] = []
            for message in request["messages"]:
                key = self._plain(_json(message))
                seen[key] += 1
                key += str(seen[key])  # the same words may be said twice
                if key in self._numbers:
                    again.append(self._numbers[key])
                    continue
                yield from _again(again)
                again.clear()
                self._numbers[key] = len(self._numbers) + 1
                yield from self._message(len(self._numbers), message)
            yield from _again(again)

    def _name_calls(self, requests: Sequence[Json]) -> None:
        """Number the calls as they come: their ids are other ones in each run."""
        messages = (message for request in requests for message in request["messages"])
        for call in (call for message in messages for call in message.get("tool_calls", ())):
            self._id(call["id"], "c")
        self._calls = re.compile("|".join(map(re.escape, self._ids)) or r"(?!)")

    def _unusual(self, request: Json) -> str:
        """What is other than in the usual request, besides its messages."""
        names, usual = ([_name(t) for t in r.get("tools", ())] for r in (request, self._usual))
        fields = {
            name: request.get(name)
            for name in {**self._usual, **request}
            if name not in ("messages", "tools") and request.get(name) != self._usual.get(name)
        }
        parts = [
            f"without {', '.join(missing)}" if (missing := [n for n in usual if n not in names]) else "",
            f"with {', '.join(more)}" if (more := [n for n in names if n not in usual]) else "",
            json.dumps(fields) if fields else "",
        ]
        return "".join(f", {part}" for part in parts if part)

    def _message(self, number: int, message: Json) -> Iterator[str]:
        if message["role"] == "system":
            yield f"  {number} system: the usual"
            before = self._usual["messages"][0]["content"].splitlines()
            for line in ndiff(before, message["content"].splitlines()):
                if line[0] in "+-":
                    yield f"      {self._shortened(line)}"
            return
        whose = " ".join(str(message[name]) for name in ("role", "name", "tool_call_id") if name in message)
        content = message.get("content")
        said = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        words = self._shortened(said) if content else "(no text)"
        yield f"  {number} {self._plain(whose)}: " + words.replace("\n", "\n      ")
        for call in message.get("tool_calls", ()):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            yield f"      {self._plain(call['id'])} {name} {self._shortened(arguments)}"

    def _shortened(self, text: str) -> str:
        text = self._plain(text)
        if len(text) <= _LONG:
            return text
        code = sha256(text.encode()).hexdigest()[:_CODE]
        return f"{text[:_BEGINNING]} [… {len(text):,} characters, {code} …] {text[-_END:]}"

    def _plain(self, text: str) -> str:
        """With ids that are the same each time."""
        text = self._calls.sub(lambda found: self._ids[found[0]], text)
        return _HANDLE.sub(lambda found: self._id(found[0], "handle-"), text)

    def _id(self, ident: str, beginning: str) -> str:
        return self._ids.setdefault(ident, f"{beginning}{len(self._ids) + 1}")


def _name(offered: Json) -> str:
    return str(offered["function"]["name"])


def _again(numbers: Sequence[int]) -> Sequence[str]:
    """The numbers of messages that are sent again, those that follow each other as ``3 to 7``."""
    runs = groupby(enumerate(numbers), key=lambda each: each[1] - each[0])
    spans = [[number for _, number in run] for _, run in runs]
    told = ", ".join(str(s[0]) if len(s) == 1 else f"{s[0]} to {s[-1]}" for s in spans)
    return textwrap.wrap(told, _WIDTH, initial_indent="  ", subsequent_indent="  ")
