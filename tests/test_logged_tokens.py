"""Whichever logger says it: a token is known by its shape, or from the connection under which a tool runs."""

import logging

import pytest

from bot.domain.connections import encodings_of
from bot.telemetry import logs
from bot.tools.account_tools import hide_secrets
from bot.tools.call import Arguments, CallContext, ToolOutput

TELEGRAM = "123456789:AAH" + "x9Zk" * 8


@pytest.mark.parametrize(
    "before", ["", "https://api.telegram.org/bot", "https://api.telegram.org/file/bot", "x_"]
)
def test_a_telegram_token_is_in_no_line_of_any_logger(
    before: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure("debug")
    logging.getLogger("telegram.Bot").debug("Set Bot API URL: %s", f"{before}{TELEGRAM}")
    logging.getLogger("telegram.Bot").debug("Set Bot API URL: %s/getMe", f"{before}{TELEGRAM}")
    said = capsys.readouterr().err
    assert said.count("Set Bot API URL") == 2
    assert TELEGRAM[10:] not in said


async def test_a_token_that_a_run_itself_fetches_is_in_none_of_its_log_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("debug")
    known: list[str] = []

    async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
        for token in ("correct-horse", "battery-staple"):
            known.append(token)
            logging.getLogger("desk").debug("signed in with %s", token)
            logs.logger("desk").info("asked", sent=token)
        return ToolOutput(None)

    await hide_secrets(run, lambda: encodings_of(known))({}, CallContext("", ""))
    logging.getLogger("desk").debug("another run prints %s", known[0])
    said = capsys.readouterr().err
    assert said.count("signed in with") == said.count("asked") == 2
    assert said.count("battery-staple") == 0
    assert said.count("correct-horse") == 1
