"""Calls tools as the core does: arguments are validated, then previewed or run."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bot.domain.preview import PreviewField
from bot.domain.risks import Risk
from bot.tools.call import CallContext
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

Shown = list[tuple[str, str | None, str | None]]


class Hands:
    def __init__(self, toolset: FixedToolset) -> None:
        self.tools: dict[str, Tool] = {each.name: each for each in toolset.fixed}

    async def run_as_shown(self, name: str, /, shown: Shown, **arguments: Any) -> Any:
        """After a person approved what ``shown`` (of `preview`) shows."""
        tool = self.tools[name]
        preview = tuple(PreviewField(*each) for each in shown)
        context = CallContext("c1", "http:ana", "key-1", preview)
        return (await tool.run(tool.validate(arguments), context)).data

    async def run(self, name: str, /, conversation: str = "c1", **arguments: Any) -> Any:
        tool = self.tools[name]
        return (await tool.run(tool.validate(arguments), CallContext(conversation, "http:ana"))).data

    async def preview(self, name: str, /, **arguments: Any) -> Shown:
        tool = self.tools[name]
        fields = await tool.preview_fields(tool.validate(arguments))
        return [(each.field, each.old_value, each.new_value) for each in fields]

    def risk(self, name: str, /, **arguments: Any) -> Risk:
        tool = self.tools[name]
        return tool.classify(tool.validate(arguments))


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Fail where the work inside takes more of the processor: far more than it ever should."""

    def enough(*_: Any) -> None:
        raise AssertionError(f"this takes more than {seconds} s")

    before = signal.signal(signal.SIGPROF, enough)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
