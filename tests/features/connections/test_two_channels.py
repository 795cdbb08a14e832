"""Two people in one Slack thread and one Telegram group, each with their own account at two servers.

All of it runs: Nod, both platforms' fakes, and two servers behind OAuth, which log who did what.
"""

from collections import deque
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.domain import kinds
from bot.domain.proposal_states import State
from bot.testing.world import Says, eventually
from tests.features.connections.office import ANA, BEN, Office
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.slow


def read(server: str) -> Says:
    return Says("I look.", ((f"{server}_list_issues", {}),))


def close(server: str, number: int) -> Says:
    return Says("Shall I?", ((f"{server}_close_issue", {"number": number, "approval_reason": "done"}),))


@pytest.fixture(params=["slack", "telegram"])
async def office(
    request: pytest.FixtureRequest,
    database_of: Urls,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Office]:
    monkeypatch.chdir(tmp_path)  # no .env of anybody's
    make_tables(url := database_of("nod"))
    made = Office(url, clock, tmp_path, chat=request.param)
    try:
        await made.open()
        yield made
    finally:
        await made.close()


async def connect_all(office: Office) -> None:
    for who in (ANA, BEN):
        for server in ("tracker", "hub"):
            assert f"As {who.name} at {server} ({who.user})" in await office.connect(who, server)
    office.forget_calls()


async def test_each_reads_and_changes_as_themselves_before_and_after_a_restart(office: Office) -> None:
    await connect_all(office)
    for _ in ("before", "after"):
        office.forget_calls()
        await office.whisper(ANA, "what is mine at the hub?", read("hub"), Says("One."))
        await office.whisper(BEN, "what is mine at the tracker?", read("tracker"), Says("One."))
        await office.expect(("hubot", "tracker", "list_issues"), ("octocat", "hub", "list_issues"))
        office.forget_calls()
        await office.say(ANA, "close 1", close("hub", 1))
        await office.say(BEN, "close 2", close("hub", 2))
        of_ana, of_ben = await office.find_open(2)
        assert [p.connection and p.connection.name for p in (of_ana, of_ben)] == ["octocat", "hubot"]
        await office.press(BEN, "Approve", of_ana)
        assert office.calls() == []
        await office.press(ANA, "Approve", of_ana)
        await office.press(BEN, "Approve", of_ben)
        await office.expect(("octocat", "hub", "close_issue"), ("hubot", "hub", "close_issue"))
        await office.restart()


async def test_a_read_where_both_are_asks_its_owner_in_private(office: Office) -> None:
    await connect_all(office)
    await office.say(ANA, "what is mine at the tracker?", read("tracker"), Says("One."))
    [asked] = await office.find_open()
    assert (asked.kind, office.calls()) == (kinds.READING, [])
    await office.press(ANA, "This conversation", asked)
    await office.expect(("octocat", "tracker", "list_issues"))
    await office.say(BEN, "and mine?", read("tracker"), Says("One."))
    [asked] = await office.find_open()
    assert asked.connection is not None
    assert (asked.connection.name, len(office.calls())) == ("hubot", 1)
    await office.press(BEN, "Not now", asked)
    assert len(office.calls()) == 1


async def test_the_tokens_of_both_are_renewed_and_stand_nowhere(office: Office) -> None:
    await connect_all(office)
    office.tracker.people.end_tokens()
    office.hub.end_tokens()
    for who in (ANA, BEN):
        for server in ("tracker", "hub"):
            await office.whisper(who, f"what is mine at the {server}?", read(server), Says("One."))
    await office.expect(
        *((who.user, server, "list_issues") for who in (ANA, BEN) for server in ("hub", "tracker"))
    )
    shown = str([m.blocks or m.text for m in office.slack.posted]) + str(office.telegram.messages)
    assert [each for each in office.secrets() if each in shown + str(office.model.seen)] == []


async def test_a_grant_of_one_holds_for_their_own_account_alone(office: Office) -> None:
    await connect_all(office)
    await office.say(ANA, "close 1", close("hub", 1))
    [p] = await office.find_open()
    await office.allow(ANA, p)
    await office.expect(("octocat", "hub", "close_issue"))
    office.forget_calls()
    await office.say(ANA, "close 2", close("hub", 2))
    await office.say(ANA, "close 3 at the tracker", close("tracker", 3))
    await office.say(BEN, "close 4", close("hub", 4))
    await office.expect(("octocat", "hub", "close_issue"))
    waiting = await office.find_open(2)
    assert [p.connection and p.connection.acts_as for p in waiting] == [
        "As Ana at tracker (octocat)",
        "As Ben at hub (hubot)",
    ]
    await office.restart()
    office.forget_calls()
    await office.say(ANA, "close 5", close("hub", 5))
    await office.expect(("octocat", "hub", "close_issue"))


async def test_an_edit_by_the_other_asks_the_owner_as_it_stands(office: Office) -> None:
    await connect_all(office)
    await office.say(ANA, "close 1", close("hub", 1))
    [p] = await office.find_open()
    await office.edit(BEN, p, {"number": 666})
    assert office.calls() == []
    [edited] = await office.find_open()
    assert (edited.arguments, edited.round) == ({"number": 666}, 2)
    await office.restart()
    await office.press(ANA, "Approve", edited)
    await office.expect(("octocat", "hub", "close_issue"))
    assert office.hub.log == [("octocat", "close_issue", {"number": 666})]


async def test_a_schedule_reads_and_changes_as_its_owner_who_is_asked(office: Office) -> None:
    await connect_all(office)
    task = {"task": "read what is late", "at": "23:00", "every": "day"}
    await office.say(ANA, "each day", Says("Shall I?", (("schedule_task", task),)))
    [asked] = await office.find_open()
    await office.press(ANA, "Approve", asked)
    office.model.answers.extend((read("tracker"), close("hub", 7), Says("Done.")))
    await office.idle(timedelta(days=1))
    [asked] = await office.find_open()
    assert (asked.kind, office.calls()) == (kinds.READING, [])
    await office.press(ANA, "This conversation", asked)
    await office.expect(("octocat", "tracker", "list_issues"))
    [p] = await office.find_open()
    assert (p.schedule, p.connection and p.connection.name) == (asked.schedule, "octocat")
    await office.restart()
    await office.press(ANA, "Approve", p)
    await office.expect(("octocat", "hub", "close_issue"), ("octocat", "tracker", "list_issues"))


async def test_a_teammate_reads_and_changes_as_who_asked_the_lead(office: Office) -> None:
    await connect_all(office)
    begins = {"role": "reader", "task": "Read and close.", "require_plan_approval": False}
    answers = (read("tracker"), close("hub", 8), Says("It is done."))
    office.model.of_teammates.setdefault("reader", deque()).extend(answers)
    await office.say(ANA, "have it read", Says("I start one.", (("spawn_teammate", begins),)))
    [asked] = await office.find_open()
    assert (asked.kind, asked.teammate, office.calls()) == (kinds.READING, "reader", [])
    await office.press(ANA, "This conversation", asked)
    [p] = await office.find_open()
    await office.press(BEN, "Approve", p)
    await office.expect(("octocat", "tracker", "list_issues"))
    await office.restart()
    await office.press(ANA, "Approve", p)
    await office.expect(("octocat", "hub", "close_issue"), ("octocat", "tracker", "list_issues"))


async def test_the_number_is_typed_as_a_plain_message_and_no_model_reads_it(
    office: Office,
) -> None:
    digits = await office.find_digits(ANA, "hub")
    await office.idle()
    before = len(office.model.seen)
    await office.write_alone(ANA, digits)
    await office.see_alone(ANA, "Connected: As Ana at hub (octocat)")
    assert len(office.model.seen) == before
    assert digits not in str(office.proposals())


async def test_a_wrong_number_typed_so_ends_it_and_other_messages_go_to_the_agent(office: Office) -> None:
    digits = await office.find_digits(ANA, "hub")
    wrong = f"{(int(digits) + 1) % 1_000_000:06}"
    await office.whisper(ANA, "call me 12345678", Says("I can't call."))
    await office.write_alone(ANA, wrong)
    await office.see_alone(ANA, "That is not the number")
    await office.whisper(ANA, digits, Says("What is this number?"))
    assert digits in str(office.model.seen[-1])


async def test_app_home_offers_to_connect_and_answers_that_person_alone(office: Office) -> None:
    if office.chat != "slack":
        return
    home = {
        "type": "app_home_opened",
        "user": ANA.slack,
        "channel": office.slack.dm(ANA.slack),
        "tab": "home",
    }
    await office.slack.deliver_event(home)
    await eventually(lambda: "Connect hub" in str(office.slack.homes.get(ANA.slack)), "the offer")
    await office.slack.click_home(ANA.slack, "Connect hub")
    mine = office.slack.dm(ANA.slack)
    found = await eventually(
        lambda: [m for m in office.slack.in_channel(mine) if "/connect/" in str(m.blocks)], "the link"
    )
    assert "Connect your account at hub" in str(found[0].blocks)
    assert not [m for m in office.slack.in_channel("C1") if "/connect/" in str(m.blocks)]


async def test_a_scope_is_asked_for_at_the_first_write_that_lacks_it(office: Office) -> None:
    await connect_all(office)
    office.hub.needs = "issues:write"
    await office.whisper(ANA, "what is mine?", read("hub"), Says("One."))
    await office.say(ANA, "close 1", close("hub", 1))
    [p] = await office.find_open()
    await office.press(ANA, "Approve", p)
    [failed] = await eventually(lambda: office.proposals(State.FAILED), "the refusal")
    assert "issues:write" in str(failed.error)
    assert "/nod connections connect hub" in str(failed.error)
    await office.restart()
    assert "As Ana at hub (octocat)" in await office.connect(ANA, "hub")
    assert office.hub.asked[-1].split() == ["openid", "email", "issues", "issues:write"]
    assert office.hub.asked[0].split() == ["openid", "email", "issues"]
    await office.press(ANA, "Retry", failed)
    await office.expect(("octocat", "hub", "list_issues"), ("octocat", "hub", "close_issue"))


async def test_a_connection_made_by_command_takes_the_turns_up_again_that_waited_for_it(
    office: Office,
) -> None:
    wants = Says("You have none there.", (("connect", {"server": "hub"}),))
    await office.whisper(ANA, "what is mine at the hub?", wants, Says("I have sent you a link."))
    await office.see_alone(ANA, "Connect")
    office.model.answers.extend((read("hub"), Says("One issue is yours.")))
    await office.connect(ANA, "hub")
    await office.expect(("octocat", "hub", "list_issues"))
    await office.see_alone(ANA, "One issue is yours.")


async def test_two_people_who_wait_in_one_place_are_each_continued_with_their_own_connection(
    office: Office,
) -> None:
    wants = Says("You have none there.", (("connect", {"server": "hub"}),))
    for who in (ANA, BEN):
        await office.say(who, "what is mine at the hub?", wants, Says("I have sent you a link."))
    for who in (BEN, ANA):
        office.model.answers.extend((read("hub"), Says("I asked.")))
        await office.connect(who, "hub")
        [asked] = await office.find_open()
        assert (asked.kind, asked.connection and asked.connection.name) == (kinds.READING, who.user)
        await office.press(who, "Not now", asked)
    assert office.calls() == []
