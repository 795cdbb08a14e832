"""What runs in a person's name runs after that person's own press, next to what the rules ask for."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from bot.channels.card_text import card_text
from bot.channels.discord import card as discord
from bot.channels.slack import card as slack
from bot.channels.telegram import card as telegram
from bot.domain.call_text import format_call
from bot.domain.chat import Address, Answer, Request
from bot.domain.connections import Connection, Identity
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import HIDDEN
from bot.domain.rule_values import Mode
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store.audit import log
from tests.kit import ADA, ANA, BEN, EVE, FakeClock, call, cores, says
from tests.kit.accounts import ConnectedNod
from tests.kit.urls import Urls

THREAD = Address("chat", "group")
APPROVERS = Policy(approvers=frozenset({str(BEN)}), admins=frozenset({str(ADA)}))


@pytest.fixture
async def make(database_of: Urls, clock: FakeClock) -> AsyncIterator[Callable[..., ConnectedNod]]:
    async with cores(ConnectedNod, database_of, clock) as make:
        yield make


@pytest.fixture
def nod(make: Callable[..., ConnectedNod]) -> ConnectedNod:
    return make(policy=APPROVERS)


@pytest.fixture
def octocat(nod: ConnectedNod) -> Connection:
    return nod.accounts.connect("forge", ANA, "octocat")


async def close(nod: ConnectedNod, **more: object) -> Proposal:
    [p] = await nod.asked(
        call("close_issue", number=3, approval_reason="done"), at=THREAD, private=False, **more
    )
    return p


async def test_the_owners_own_press_is_enough_where_they_may_decide(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    assert p.connection == octocat
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert nod.forge.log == [(nod.token(octocat), "close_issue", "3")]


@pytest.mark.parametrize("other", [BEN, ADA])
async def test_no_role_replaces_the_owners_press(nod: ConnectedNod, octocat: Connection, other):
    p = await close(nod)
    reply = await nod.press(Verb.APPROVE, p, by=other)
    await nod.idle()
    assert reply.text == "Your approval counts. It runs as Ana, so Ana must approve it, too."
    assert (await nod.now(p)).state is State.PROPOSED
    assert nod.forge.log == []
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_stranger_presses_in_vain(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    assert (await nod.press(Verb.APPROVE, p, by=EVE)).answer is Answer.REFUSED


async def test_the_owners_yes_is_no_vote_where_others_must_decide(nod: ConnectedNod, octocat: Connection):
    [p] = await nod.asked(call("delete_issue", number=3, approval_reason="x"), at=THREAD, private=False)
    assert p.deciders.four_eyes
    said = await nod.press(Verb.APPROVE, p)
    assert said.text == "Your yes counts. It waits for the approval of others as well."
    assert (await nod.now(p)).state is State.PROPOSED
    assert (await nod.approve(p, by=BEN)).state is State.SUCCEEDED
    assert nod.forge.log == [(nod.token(octocat), "delete_issue", "3")]


async def test_a_quorum_of_others_waits_for_the_owner(nod: ConnectedNod, octocat: Connection):
    await nod.command("/approvals quorum 2 for close_*", by=ADA)
    p = await close(nod)
    await nod.press(Verb.APPROVE, p, by=BEN)
    await nod.press(Verb.APPROVE, p, by=ADA)
    await nod.idle()
    assert (await nod.now(p)).state is State.PROPOSED
    assert (await nod.approve(p)).state is State.SUCCEEDED


@pytest.mark.parametrize("mode", [Mode.NEVER, Mode.DESTRUCTIVE])
async def test_no_rule_that_lets_it_run_replaces_the_owners_press(make, mode):
    nod = make(policy=Policy(mode, admins=frozenset({str(ADA)})))
    nod.accounts.connect("forge", ANA, "octocat")
    p = await close(nod)
    assert p.state is State.PROPOSED
    assert (await nod.press(Verb.APPROVE, p, by=ADA)).answer is Answer.REFUSED  # no one else is asked at all
    assert nod.forge.log == []
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_rule_that_calls_it_reading_does_not_either(nod: ConnectedNod, octocat: Connection):
    await nod.command("/approvals risk read for close_issue", by=ADA)
    p = await close(nod)
    assert (p.state, nod.forge.log) == (State.PROPOSED, [])


async def test_what_someone_else_edited_asks_the_owner_as_it_stands(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    await nod.press(Verb.APPROVE, p, by=BEN, arguments={"number": 4, "comment": "by Ben"})
    await nod.idle()
    edited = await nod.now(p)
    assert (edited.state, edited.round, nod.forge.log) == (State.PROPOSED, 2, [])
    stale = await nod.press(Verb.APPROVE, p, round_shown=1)
    assert stale.answer is Answer.STALE
    assert (await nod.approve(edited)).state is State.SUCCEEDED
    assert nod.forge.log == [(nod.token(octocat), "close_issue", "4 by Ben")]


async def test_an_edit_takes_the_owners_yes_back(nod: ConnectedNod, octocat: Connection):
    await nod.command("/approvals quorum 2 for close_*", by=ADA)
    p = await close(nod)
    await nod.press(Verb.APPROVE, p)
    await nod.press(Verb.APPROVE, p, by=BEN, arguments={"number": 9})
    await nod.press(Verb.APPROVE, p, by=ADA)
    await nod.idle()
    assert ((await nod.now(p)).state, nod.forge.log) == (State.PROPOSED, [])


async def test_a_retry_by_someone_else_asks_the_owner_again(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    nod.accounts.disconnect("forge", ANA)
    failed = await nod.approve(p)
    assert (failed.state, failed.cause) == (State.FAILED, Cause.DISCONNECTED)
    nod.accounts.connect("forge", ANA, "octocat")
    said = await nod.press(Verb.RETRY, failed, by=BEN)
    await nod.idle()
    assert said.text == "It runs as Ana, so Ana is asked again."
    assert ((await nod.now(p)).state, nod.forge.log) == (State.PROPOSED, [])
    assert (await nod.approve(p)).state is State.SUCCEEDED
    assert len(nod.forge.log) == 1


async def test_the_owner_may_withdraw_until_the_claim(nod: ConnectedNod, octocat: Connection):
    await nod.command("/approvals pause", by=ADA)
    p = await close(nod)
    await nod.press(Verb.APPROVE, p)
    approved = await nod.now(p)
    assert approved.state is State.APPROVED
    assert (await nod.press(Verb.CANCEL, approved, by=ADA)).answer is Answer.ALREADY
    assert (await nod.press(Verb.CANCEL, approved)).answer is Answer.ACCEPTED
    await nod.command("/approvals resume", by=ADA)
    await nod.tick()
    assert ((await nod.now(p)).state, nod.forge.log) == (State.CANCELLED, [])


async def test_a_stand_in_of_the_owner_does_not_say_their_yes(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    await nod.command("/nod away until friday, chat:eve decides", by=ANA)
    await nod.press(Verb.APPROVE, p, by=EVE)
    await nod.idle()
    assert ((await nod.now(p)).state, nod.forge.log) == (State.PROPOSED, [])


async def test_a_linked_account_of_the_owner_is_the_owner(nod: ConnectedNod, octocat: Connection):
    assert "one person" in await nod.link(ANA, EVE)
    p = await close(nod)
    assert (await nod.approve(p, by=EVE)).state is State.SUCCEEDED


# grants


async def allow(nod: ConnectedNod, p: Proposal, **by: object):
    said = await nod.press(
        Verb.SIMILAR, p, rung=GrantScope.TOOL, lasting=GrantDuration.DAY, reach=GrantAudience.REQUESTER, **by
    )
    await nod.idle()
    return said


async def test_a_grant_of_the_owner_lets_it_run_under_that_account_alone(
    nod: ConnectedNod, octocat: Connection
):
    assert (await allow(nod, await close(nod))).answer is Answer.ACCEPTED
    again = await close(nod)
    assert (again.state, again.grant_id) == (State.SUCCEEDED, 1)
    nod.accounts.connect("forge", ANA, "hubot")
    assert (await close(nod)).state is State.PROPOSED
    nod.accounts.connect("forge", ANA, "octocat")
    assert (await close(nod)).state is State.SUCCEEDED


async def test_no_one_else_can_allow_it_in_advance(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    refused = await allow(nod, p, by=ADA)
    assert refused.text == "It runs as Ana, so only Ana can allow calls like it. It stays open."
    assert ((await nod.now(p)).state, nod.forge.log) == (State.PROPOSED, [])


async def test_a_grant_of_before_the_account_covers_nothing_under_it(make):
    nod = make(policy=APPROVERS)
    nod.accounts.connect("forge", BEN, "hubot")
    nod.accounts.connect("forge", ANA, "octocat")
    p = await close(nod, by=BEN)
    await allow(nod, p, by=BEN)
    assert (await close(nod, by=BEN)).state is State.SUCCEEDED
    assert (await close(nod, by=ANA)).state is State.PROPOSED


# at the run


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda nod: nod.accounts.disconnect("forge", ANA), "Ana's account at forge is no longer connected."),
        (lambda nod: nod.accounts.connect("forge", ANA, "hubot"), "is another one since this was asked."),
        (lambda nod: nod.accounts.expire("forge", ANA), "no longer accepts the connection of Ana's account."),
    ],
)
async def test_an_account_that_is_not_the_one_of_the_card_runs_nothing(nod, octocat, change, words):
    p = await close(nod)
    change(nod)
    failed = await nod.approve(p)
    assert (failed.state, failed.cause, nod.forge.log) == (State.FAILED, Cause.DISCONNECTED, [])
    assert words in failed.error
    assert failed.error.endswith("Connect the same account again, then retry.")
    assert words in nod.model.results[-1]
    assert (await nod.press(Verb.RETRY, failed)).answer is Answer.ACCEPTED
    await nod.idle()
    assert ((await nod.now(p)).state, nod.forge.log) == (State.FAILED, [])
    again = nod.accounts.connect("forge", ANA, "octocat")
    await nod.press(Verb.RETRY, failed)
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert nod.forge.log == [(nod.token(again), "close_issue", "3")]


async def test_who_has_no_account_is_not_offered_the_tools(nod: ConnectedNod, octocat: Connection):
    await nod.say("hello", by=BEN, at=THREAD, private=False)
    await nod.idle()
    assert "close_issue" not in {spec.name for spec in nod.model.offered[-1]}
    await nod.say("hello", by=ANA, at=THREAD, private=False)
    await nod.idle()
    assert "close_issue" in {spec.name for spec in nod.model.offered[-1]}


async def test_a_request_of_a_script_runs_as_no_person(nod: ConnectedNod, octocat: Connection):
    reply = await nod.assistant.handle(Request(ANA, "close_issue", {"number": 3}, THREAD, "please"))
    assert reply.answer is not Answer.ACCEPTED
    assert nod.forge.log == []


# what is kept and shown


async def test_the_record_says_in_whose_name(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    [first, *_] = await nod.database.read(log.list_rows_of_proposal, p.id)
    assert first.about is not None
    assert first.about["connection"] == {
        "server": "forge",
        "identity": "person",
        "owner": "chat:ana",
        "name": "octocat",
        "issuer": "https://forge.example",
        "subject": "id-of-octocat",
    }


async def test_a_token_is_in_no_row_no_card_and_no_prompt(nod: ConnectedNod, octocat: Connection):
    nod.model.will(says("I look.", call("read_issue", number=7)))
    await nod.say("what is 7?")
    await nod.idle()
    token = nod.token(octocat)
    assert nod.forge.log == [(token, "read_issue", "7")]
    assert nod.model.results == [f"issue 7 as seen with {HIDDEN}"]
    assert token not in str(nod.model.transcripts)
    assert token not in "".join(await nod.said())


async def test_a_place_s_account_serves_everyone_of_the_team_there(make):
    nod = make(policy=APPROVERS, identity=Identity.PLACE)
    room = nod.accounts.connect("forge", "chat:group", "room-bot", identity=Identity.PLACE)
    p = await close(nod, by=BEN)
    assert (await nod.approve(p, by=BEN)).state is State.SUCCEEDED
    assert nod.forge.log == [(nod.token(room), "close_issue", "3")]
    await nod.say("hello", by=BEN, at=Address("chat", "elsewhere"), private=False)
    await nod.idle()
    assert "close_issue" not in {spec.name for spec in nod.model.offered[-1]}


async def test_it_expires_as_any_other(nod: ConnectedNod, octocat: Connection):
    p = await close(nod)
    await nod.press(Verb.APPROVE, p, by=BEN)
    await nod.tick(timedelta(days=2))
    assert ((await nod.now(p)).state, nod.forge.log) == (State.EXPIRED, [])


# rules


@pytest.mark.parametrize(
    "rule", ["policy forbid for close_* as person in chat:group", "policy forbid where connection is person"]
)
async def test_a_rule_may_name_the_account(nod: ConnectedNod, octocat: Connection, rule):
    said = await nod.command(f"/approvals {rule}", by=ADA)
    assert "where connection is person" in said.text
    assert await nod.asked(call("close_issue", number=3, approval_reason="x"), at=THREAD, private=False) == []
    assert nod.model.results[-1].startswith(("REFUSED", "ERROR"))
    assert nod.forge.log == []


async def test_a_rule_about_nods_own_account_does_not_reach_a_person_s(
    nod: ConnectedNod, octocat: Connection
):
    await nod.command("/approvals policy forbid as nod", by=ADA)
    assert (await nod.approve(await close(nod))).state is State.SUCCEEDED


async def test_a_rule_set_since_is_looked_at_before_the_run(nod: ConnectedNod, octocat: Connection):
    await nod.command("/approvals pause", by=ADA)
    p = await close(nod)
    await nod.press(Verb.APPROVE, p)
    await nod.command("/approvals policy forbid as person", by=ADA)
    await nod.command("/approvals resume", by=ADA)
    await nod.tick()
    failed = await nod.now(p)
    assert (failed.cause, nod.forge.log) == (Cause.FORBIDDEN, [])


async def test_an_unknown_account_in_a_rule_is_refused(nod: ConnectedNod):
    said = await nod.command("/approvals policy forbid as somebody", by=ADA)
    assert said.text.startswith("After `as` comes nod, person, place")


async def test_insights_tell_in_whose_name(nod: ConnectedNod, octocat: Connection):
    await nod.approve(await close(nod))
    said = await nod.command("/approvals insights connection", by=ANA)
    assert "As Ana at forge (octocat): asked 1, approved 1" in said.text


@pytest.mark.parametrize(
    "name", ["octocat", "<!channel> @everyone <@U7>", "[click](http://evil.example)", "a" * 10_000]
)
async def test_every_channel_says_in_whose_name_before_and_after_the_decision(nod: ConnectedNod, name: str):
    nod.accounts.connect("forge", ANA, name, token="token-of-someone")
    p = await close(nod)
    cards = [next(iter(nod.chat.cards.values()))]
    await nod.approve(p)
    cards += [next(iter(nod.chat.cards.values()))]
    assert [card.pending for card in cards] == [True, False]
    for card in cards:
        said = card.acts_as
        assert said.startswith("As Ana at forge (")
        assert len(said) < 200
        [line] = [each for each in _texts(slack.render(card).blocks) if each["text"] == said]
        assert line["type"] == "plain_text"  # in which nothing is a mention or a link
        assert said in telegram.render_card(card).rich.text
        written = discord.render(card).message["embeds"][0]["description"]
        assert said in written.replace("\\", "")
        assert not any(mark in written for mark in ("[click]", "<@U7>", "<!channel>"))
        assert said in card_text(card)
        assert said in format_call(card)


def _texts(part: object) -> list[dict[str, str]]:
    """Every text of Slack's blocks, with its type."""
    if isinstance(part, list):
        return [each for one in part for each in _texts(one)]
    if not isinstance(part, dict):
        return []
    own = [part] if isinstance(part.get("text"), str) else []
    return own + [each for one in part.values() for each in _texts(one)]
