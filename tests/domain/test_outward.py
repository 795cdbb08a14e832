"""Which addresses a call may send unasked: those that the requester wrote, letter for letter."""

from datetime import UTC, datetime

import pytest

from bot.domain.chat import Address
from bot.domain.conversations import Conversation, Line, LineRole, Transcript
from bot.domain.outbound_addresses import find_addresses, find_allowed_addresses, judge_addresses
from bot.domain.people import Actor
from bot.domain.risks import Level, Risk
from bot.domain.text import host_of

NOW = datetime(2026, 3, 2, tzinfo=UTC)
ANA, BEN = Actor("chat", "ana"), Actor("chat", "ben")
PAGE = "https://a.example/page"
READ = Risk(Level.READ, "")


def heard(text: str, actor: Actor = ANA) -> set[str]:
    """What is known of the page and a longer address after this was written."""
    line = Line(1, LineRole.USER, text, 1, actor, (), {}, NOW)
    chat = Address("chat", "ana")
    conversation = Conversation("c1", chat, chat, private=True, requester=ANA, title="", created_at=NOW)
    return find_allowed_addresses(
        Transcript(conversation, [line], {}), [str(ANA)], "fetch", [PAGE, f"{PAGE}/2"]
    )


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        f"Read {PAGE}, please",
        f"Read {PAGE}. Then stop.",
        f"(see {PAGE})",
        f"**{PAGE}**!",
        f"“{PAGE}”, {PAGE}…",
        f"Is it {PAGE}?!?!?!?!",
        f"<{PAGE}>",
        f"{PAGE}#part",
        "a.example/page",
    ],
)
def test_an_address_is_known_without_the_marks_around_it(text: str) -> None:
    assert heard(text) == {"a.example/page"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"> {PAGE}",
        f"{PAGE}s",
        f"{PAGE}?q=1",
        f"x{PAGE}",
        "https://a.example",
        f"{PAGE}{'!' * 9}",
        "a.example/PAGE",
    ],
)
def test_what_is_quoted_or_differs_in_a_letter_is_not_known(text: str) -> None:
    assert heard(text) == set()


def test_only_what_the_requester_wrote_is_known() -> None:
    assert heard(PAGE, BEN) == set()
    assert heard(f"{PAGE} {PAGE}/2") == {"a.example/page", "a.example/page/2"}


def test_addresses_are_found_by_their_look_and_by_the_name_of_their_field() -> None:
    arguments = {
        "url": "a.example",
        "words": ["WWW.b.example", "no address"],
        "deep": [{"target_host": "c.example", "note": "wss://d.example/x"}],
        "uri": "issue://7",
        "empty_url": "",
    }
    assert list(find_addresses(arguments)) == ["a.example", "WWW.b.example", "c.example", "wss://d.example/x"]


@pytest.mark.parametrize(
    ("address", "host"),
    [(PAGE, "a.example"), ("B.example:81/x", "b.example"), ("https://[::1", ""), ("", "")],
)
def test_an_address_has_a_host_or_none(address: str, host: str) -> None:
    assert host_of(address) == host


def test_a_read_that_sends_what_is_not_known_is_asked_for() -> None:
    assert judge_addresses(READ, [PAGE, "b.example/"], {"a.example/page", "b.example"}, []) == READ
    assert judge_addresses(READ, [PAGE], set(), ["*.example"]) == READ
    asked = judge_addresses(READ, [PAGE, "c.example/x"], {"a.example/page"}, ["b.*"])
    assert (asked.level, asked.vouched) == (Level.WRITE, False)
    assert "c.example" in asked.reason
    assert "a server outside" in judge_addresses(READ, ["https://[::1"], set(), []).reason
