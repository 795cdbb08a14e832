"""A line that breaks in the middle of a call: the answer comes on a new one, and nothing is done twice."""

from collections.abc import Iterator

import pytest

from bot.errors import ToolTimedOut
from bot.tools.mcp.config import Http, ServerConfig
from tests.tools.mcp.servers.breaking import Breaking

pytestmark = pytest.mark.slow


@pytest.fixture
def breaking() -> Iterator[Breaking]:
    server = Breaking()
    yield server
    server.close()


def config(server: Breaking) -> ServerConfig:
    return ServerConfig("breaking", Http(server.url))


async def test_the_answer_comes_after_the_line_was_cut_and_the_call_ran_once(connect, breaking):
    lamps = connect(config(breaking))
    assert await lamps.run("paint", lamp="desk") == "desk is red"
    assert await lamps.run("paint", lamp="door") == "door is red"
    assert breaking.done == ["paint desk", "paint door"]
    assert breaking.resumed == ["e1", "e2"]


async def test_a_write_whose_answer_the_server_forgot_may_have_happened_and_is_not_sent_again(
    connect, breaking
):
    breaking.forgets = True
    with pytest.raises(ToolTimedOut, match="breaking ended before it answered"):
        await connect(config(breaking)).run("paint", lamp="desk")
    assert breaking.done == ["paint desk"]
    assert set(breaking.resumed) == {"e1"}
