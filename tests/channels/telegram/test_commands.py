"""The commands of the chats: what is listed for whom, and what they mean to the core."""

import pytest

from bot.channels.telegram.commands import ENTRIES, TypedCommand, list_menu, read_command, write_introduction
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
    assert [entry.typed_name for entry in list_menu(is_admin=admin, is_decider=decides)] == [*EVERYONE, *more]


def test_start_names_the_first_steps_and_help_all_there_is() -> None:
    shown = write_introduction(TypedCommand("start", "", ""), is_admin=False, is_decider=True)
    assert [line.split(":")[0] for line in shown.splitlines()[2:]] == ["/status", "/pending", "/new", "/help"]
    shown = write_introduction(
        TypedCommand("help", "", ""), is_admin=True, is_decider=True, notice="Nod is paused."
    )
    assert shown.splitlines()[1] == "Nod is paused."
    assert len(shown.splitlines()) == 3 + len(list_menu(is_admin=True, is_decider=True))


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
    assert TypedCommand(name, "", arguments).is_confidential is confidential


def test_a_command_reaches_the_core_in_its_own_words() -> None:
    def said(name: str, arguments: str) -> Command:
        return TypedCommand(name, "", arguments).make_command(ANA, HERE, private=True, names=NO_NAMES)

    assert (said("decline", "ab12 no").name, said("decline", "ab12 no").text) == (
        "approvals",
        "decline ab12 no",
    )
    assert (said("start", "ab12").name, said("start", "ab12").text) == ("nod", "help")
    assert [TypedCommand(entry.typed_name, "", "").is_known for entry in ENTRIES] == [True] * len(ENTRIES)
    assert not TypedCommand("nothing", "", "").is_known


def test_usage_is_told_with_the_name_that_was_typed() -> None:
    assert (
        TypedCommand("decline", "", "").rewrite_usage("Write /approvals decline ID.") == "Write /decline ID."
    )
    assert TypedCommand("nod", "", "").rewrite_usage("Write /nod link CODE.") == "Write /nod link CODE."


@pytest.mark.parametrize("text", ["/ approve ab12", "/", "approve ab12", "/@bot"])
def test_a_slash_without_a_name_right_after_it_is_no_command(text: str) -> None:
    assert read_command(text) is None
