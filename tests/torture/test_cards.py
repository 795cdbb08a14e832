"""The checker of cards sees a card that lies, one that is missing, and a press without an answer."""

import random
import sqlite3
from pathlib import Path

import pytest

from tests.fakes.telegram_server import Posted
from tests.fakes.telegram_state import Query
from tests.torture import cards
from tests.torture.chats import Chats

_CHAT = 5000


def _chats(*messages: tuple[str, str]) -> Chats:
    """A Telegram that shows these texts, each with a button of this label for proposal p1."""
    chats = Chats(random.Random(1))
    for number, (words, label) in enumerate(messages):
        button = {"text": label, "callback_data": "ap.p1.1"}
        chats.telegram.messages.append(Posted(_CHAT, number, words, [], {"inline_keyboard": [[button]]}))
    return chats


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with proposal p1, about milk, that succeeded in Telegram."""
    with sqlite3.connect(tmp_path / "nod.db") as connection:
        connection.executescript("""
            CREATE TABLE conversation (id TEXT, channel TEXT);
            CREATE TABLE proposal (id TEXT, conversation_id TEXT, state TEXT, arguments TEXT);
            INSERT INTO conversation VALUES ('c1', 'telegram');
            INSERT INTO proposal VALUES ('p1', 'c1', 'succeeded', '{"text": "milk"}');
        """)
    connection.close()
    return f"sqlite:///{tmp_path}/nod.db"


def test_a_card_that_shows_what_is_has_no_fault(url: str) -> None:
    assert cards.faults(url, _chats(("✅ Mark milk", "Details"))) == []


@pytest.mark.parametrize(
    ("words", "label", "fault"),
    [
        ("🟡 Mark milk", "Approve", "as open, and it is succeeded"),
        ("⚪️ Mark milk", "Details", "otherwise than as succeeded"),
        ("✅ Mark bread", "Details", "without what it is about"),
    ],
)
def test_a_card_that_lies_is_seen(url: str, words: str, label: str, fault: str) -> None:
    [found] = cards.faults(url, _chats(("✅ Mark milk", "Details"), (words, label)))
    assert fault in found


def test_a_card_that_is_missing_and_a_press_without_an_answer_are_seen(url: str) -> None:
    chats = _chats()
    chats.telegram.queries["q1"] = Query("q1", _CHAT)
    assert cards.faults(url, chats) == [
        "p1 has no card in telegram",
        "1 presses in Telegram were not answered",
    ]
