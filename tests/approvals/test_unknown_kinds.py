"""A row of a kind that this build does not know: people see it and end it, and it never runs."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.approvals.lookup.proposals import ProposalLookup
from bot.channels.discord import card as discord
from bot.channels.slack import card as slack
from bot.channels.telegram import card as telegram
from bot.domain.chat import Answer
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, ProposalKind
from bot.domain.verbs import Verb
from bot.store import posted_cards, transitions
from bot.store.audit import verification
from bot.store.audit.log import Author
from bot.tools.toolset import FixedToolset
from bot.web.schemas.proposals import ProposalView
from tests.kit import ANA, MakeNod, Nod, call
from tests.kit.world import lamp_tools

WAGER = ProposalKind("wager", "The wager is open.")


async def propose_wager(make_nod: MakeNod) -> tuple[Nod, Proposal]:
    """Open one while a tool has the kind; then another build reads it, whose tool does not."""
    nod = make_nod()
    nod.toolset = FixedToolset("lamps", tuple(replace(each, kind=WAGER) for each in nod.toolset.fixed))
    nod.rebuild()
    [proposal] = await nod.asked(call("paint", lamp="desk", color="red"))
    nod.toolset = lamp_tools(nod.world)
    await nod.restart()
    nod.database.write_now(posted_cards.mark_open_outdated)
    await nod.recovery.recover(nod.clock())
    await nod.idle()
    return nod, await nod.now(proposal)


async def test_it_is_shown_everywhere_without_buttons_that_decide(make_nod: MakeNod) -> None:
    nod, proposal = await propose_wager(make_nod)
    assert (proposal.kind.name, proposal.kind.runs) == ("wager", False)
    card = nod.chat.card_of(proposal)
    assert card.outcome == "This version of Nod can't decide it."
    assert card.verbs == ()
    assert slack.render(card).blocks
    assert telegram.render_card(card).rich.text
    assert discord.render(card).message["embeds"]
    seen = await ProposalLookup(nod.gate.groups, nod.gate.registry, nod.gate.policies).find(proposal.id, ANA)
    assert seen
    assert ProposalView.of_found(seen).model_dump(mode="json")["kind"] == "wager"


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.EDIT, Verb.SIMILAR, Verb.FOR_REAL, Verb.APPROVE_STEPS])
async def test_no_press_lets_it_run(make_nod: MakeNod, verb: Verb) -> None:
    nod, proposal = await propose_wager(make_nod)
    arguments = {"lamp": "desk", "color": "blue"} if verb is Verb.EDIT else None
    reply = await nod.press(verb, proposal, arguments=arguments)
    assert reply.answer is not Answer.ACCEPTED
    await nod.idle()
    assert (await nod.now(proposal)).state is State.PROPOSED
    assert nod.world.runs == []


async def test_people_decline_or_withdraw_it_and_it_expires(make_nod: MakeNod) -> None:
    for verb, state in ((Verb.DECLINE, State.DECLINED), (Verb.CANCEL, State.CANCELLED)):
        nod, proposal = await propose_wager(make_nod)
        assert (await nod.press(verb, proposal)).answer is Answer.ACCEPTED
        assert (await nod.now(proposal)).state is state
    nod, proposal = await propose_wager(make_nod)
    await nod.tick(timedelta(days=2))
    assert (await nod.now(proposal)).state is State.EXPIRED
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_one_that_an_earlier_build_approved_fails_and_says_that_the_tool_changed(
    make_nod: MakeNod,
) -> None:
    nod, proposal = await propose_wager(make_nod)
    by = Author.of_nod(Verb.APPROVE)
    moved = nod.database.write_now(transitions.change_proposal, proposal, by, nod.clock(), State.APPROVED)
    assert moved
    await nod.recovery.recover(nod.clock())
    await nod.idle()
    ended = await nod.now(proposal)
    assert (ended.state, ended.cause) == (State.FAILED, Cause.TOOL_CHANGED)
    assert nod.world.runs == []
