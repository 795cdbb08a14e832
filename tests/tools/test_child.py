"""The killable child: what an asker gets where it can't be started, and where it takes too long."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.tools import child
from bot.tools.child import Child, TookTooLong

pytestmark = pytest.mark.slow

BEGIN = f"""\
import sys, time

sys.path.insert(0, {str(Path(child.__file__).parents[2])!r})
from bot.tools.child import serve

def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return seconds

"""
ECHO = f"{BEGIN}serve(lambda question: question, 5)\n"


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


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Child]:
    """A child that works for longer when it starts than a question may take; each says how long it takes."""
    script = tmp_path / "slow.py"
    script.write_text(f"{BEGIN}work(1)\nserve(work, float(sys.argv[1]))\n")
    asked = Child(script, seconds=0.5)  # by the clock five times that, for a busy machine
    yield asked
    asked.stop()


def test_the_start_of_a_child_takes_nothing_from_the_time_of_its_first_question(slow: Child) -> None:
    assert slow.ask(0.05) == 0.05


def test_a_question_that_takes_more_processor_time_has_no_answer_and_the_next_one_has(slow: Child) -> None:
    with pytest.raises(TookTooLong):
        slow.ask(60)
    assert slow.ask(0.05) == 0.05
