"""Whichever logger says it: a token of a platform is known by its shape."""

import logging

import pytest

from bot.telemetry import logs

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
