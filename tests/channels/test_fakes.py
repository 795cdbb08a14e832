"""The platforms on this machine can be talked to from a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_the_command_prints_the_settings_with_which_nod_connects_and_ends_with_its_input():
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes"],
        cwd=ROOT,
        input="what\nslack: Approve\n",
        capture_output=True,
        text=True,
        check=True,
    )
    *settings, unknown, missing = done.stdout.splitlines()
    assert [line.partition("=")[0] for line in settings] == [
        "SLACK_API_URL",
        "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",
        "TELEGRAM_API_URL",
        "TELEGRAM_BOT_TOKEN",
        "NOD_ADMINS",
    ]
    assert unknown == "Begin the line with slack or telegram."
    assert missing == "No card has that button."
