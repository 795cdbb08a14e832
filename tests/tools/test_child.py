"""The killable child: what an asker gets where it can't be started."""

import os
import resource
from pathlib import Path

import pytest

from bot.tools import child
from bot.tools.child import Child, TookTooLong

ECHO = f"""\
import sys

sys.path.insert(0, {str(Path(child.__file__).parents[2])!r})
from bot.tools.child import serve

serve(lambda question: question, 5)
"""


def test_a_child_that_can_not_be_started_is_no_answer_and_the_next_question_has_one(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    asked = Child(script, seconds=20)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, before[1]))  # there is no file for a pipe
    try:
        with pytest.raises(TookTooLong):
            asked.ask("hello")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        assert asked.ask("hello") == "hello"
    finally:
        asked.stop()
