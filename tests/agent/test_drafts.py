"""How a tool's own code is awaited."""

import asyncio
from collections.abc import Iterator

import pytest

from bot.approvals.drafts import title_of
from bot.approvals.hidden_secrets import restore_secrets
from bot.approvals.tool_code import await_tool, log_blocking
from bot.domain.redaction import HIDDEN, redact_arguments
from bot.errors import BadArguments, ToolTimedOut
from bot.tools.decorator import tool


def clock(*moments: float) -> Iterator[float]:
    yield from moments


async def test_a_tool_that_holds_the_loop_is_named_with_how_long(capsys, caplog) -> None:
    async def works() -> str:
        await asyncio.sleep(0)
        return "done"

    moments = clock(0.0, 0.5, 1.0, 5.0)
    assert await log_blocking(works(), "greedy", lambda: next(moments)) == "done"
    said = caplog.text + "".join(capsys.readouterr())
    assert "a tool held the loop" in said
    assert "greedy" in said
    assert "4.0" in said


async def test_a_watched_tool_is_cancelled_in_time_and_its_faults_come_through() -> None:
    cleaned = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ToolTimedOut):
        await await_tool("hangs", hangs(), 0.01)
    assert cleaned == [True]
    with pytest.raises(ValueError, match="no"):
        await await_tool("fails", fails(), 5)


async def test_a_tool_s_own_time_limit_is_not_told_as_that_of_nod_and_is_logged(capsys, caplog) -> None:
    async def gives_up() -> None:
        raise TimeoutError("the printer's socket")

    with pytest.raises(ToolTimedOut) as raised:
        await await_tool("printer", gives_up(), 500)
    assert raised.value.message == "printer failed with TimeoutError; the log has the details."
    assert "the printer's socket" in caplog.text + "".join(capsys.readouterr())


async def test_a_secret_in_a_name_that_a_tool_looks_up_is_hidden_wherever_the_title_is_told() -> None:
    async def named(arguments: dict[str, int]) -> str:
        return f"Close #{arguments['number']} “rotate {'ghp_' + 'a' * 36}”"

    @tool(title=named)
    async def close(number: int) -> None: ...

    assert await title_of(close, {"number": 3}) == f"Close #3 “rotate {HIDDEN}”"


def test_an_edit_may_replace_an_object_that_was_hidden_as_a_whole() -> None:
    before = {"name": "ana", "credentials": {"user": "ana", "key": "0451"}}
    shown = redact_arguments(before)
    assert shown == {"name": "ana", "credentials": HIDDEN}
    edited = {"name": "ana", "credentials": {"user": "ben", "key": "0452"}}
    assert restore_secrets(edited, before, shown) == edited
    with pytest.raises(BadArguments):
        restore_secrets({"name": "ana", "credentials": {"user": "ben", "key": HIDDEN}}, before, shown)
