"""The commands of the chats: what is listed for whom, and what they mean to the core."""

import pytest

from bot.channels.telegram.commands import ENTRIES, Typed, list_menu, read_command, write_introduction
from bot.domain.chat import Address, Command
from bot.domain.people import NO_NAMES, Actor

ANA, HERE = Actor("telegram", "101", "Ana"), Address("telegram", "101")
EVERYONE = ["help", "new", "status", "team", "stop", "link"]
DECIDING = ["pending", "show", "approve", "decline", "cancel"]


@pytest.mark.parametrize(
    ("admin", "decides", "more"),
    [
        (False, False, []),
        (False, True, DECIDING),
        (True, False, ["approvals"]),
        (True, True, [*DECIDING, "approvals"]),
    ],
)
def test_what_is_listed_follows_what_a_person_may_do(admin: bool, decides: bool, more: list[str]) -> None:
    assert [entry.typed for entry in list_menu(admin=admin, decides=decides)] == [*EVERYONE, *more]


def test_start_names_the_first_steps_and_help_all_there_is() -> None:
    shown = write_introduction(Typed("start", "", ""), admin=False, decides=True)
    assert [line.split(":")[0] for line in shown.splitlines()[2:]] == ["/status", "/pending", "/new", "/help"]
    shown = write_introduction(Typed("help", "", ""), admin=True, decides=True, notice="Nod is paused.")
    assert shown.splitlines()[1] == "Nod is paused."
    assert len(shown.splitlines()) == 3 + len(list_menu(admin=True, decides=True))


@pytest.mark.parametrize(
    ("name", "arguments", "confidential"),
    [
        ("help", "", False),
        ("status", "", False),
        ("link", "", True),
        ("pending", "", True),
        ("approvals", "rules", True),
        ("nod", "status", False),
    ],
)
def test_every_answer_to_a_command_is_private_where_its_menu_entry_is_not_for_all(
    name: str, arguments: str, confidential: bool
) -> None:
    assert Typed(name, "", arguments).is_confidential is confidential


def test_a_command_reaches_the_core_in_its_own_words() -> None:
    def said(name: str, arguments: str) -> Command:
        return Typed(name, "", arguments).make_command(ANA, HERE, private=True, names=NO_NAMES)

    assert (said("decline", "ab12 no").name, said("decline", "ab12 no").text) == (
        "approvals",
        "decline ab12 no",
    )
    assert (said("start", "ab12").name, said("start", "ab12").text) == ("nod", "help")
    assert [Typed(entry.typed, "", "").is_known for entry in ENTRIES] == [True] * len(ENTRIES)
    assert not Typed("nothing", "", "").is_known


def test_usage_is_told_with_the_name_that_was_typed() -> None:
    assert Typed("decline", "", "").rewrite_usage("Write /approvals decline ID.") == "Write /decline ID."
    assert Typed("nod", "", "").rewrite_usage("Write /nod link CODE.") == "Write /nod link CODE."


@pytest.mark.parametrize("text", ["/ approve ab12", "/", "approve ab12", "/@bot"])
def test_a_slash_without_a_name_right_after_it_is_no_command(text: str) -> None:
    assert read_command(text) is None
