"""Lines of features on cards: frozen ones are part of what is pressed, late ones are not; none is markup."""

import re
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlmodel import Session

from bot.approvals import lifecycle
from bot.channels.card_text import card_text
from bot.channels.discord import card as discord
from bot.channels.slack import card as slack
from bot.channels.telegram import card as telegram
from bot.domain.annotations import MAX_LINES, NAME_CHARS, TEXT_CHARS, Annotation, bound_annotations
from bot.domain.call_text import format_call
from bot.domain.card_rendering import render_card
from bot.domain.chat import Answer
from bot.domain.hooks import Hooks
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import proposals
from bot.store.audit import log, verification
from tests.channels.slack.conftest import make_proposal
from tests.fakes.slack_state import shown_text
from tests.kit import MakeNod, Nod, call

RECORD = Annotation("Record", "first call of this tool in this chat")
ACCOUNT = Annotation("", "As Ana at github (octocat)")
OPINION = Annotation("Second opinion (local)", "paints the desk red; you named the door")


class RecordFeature:
    """A feature that says of each call how often its tool was called with this colour before."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def annotate(self, session: Session, proposal: Proposal) -> list[Annotation]:
        self.asked.append(proposal.round)
        before = proposals.list_recent_arguments(
            session,
            proposal.tool_name,
            proposal.tool_version,
            proposal.created_at - timedelta(days=90),
            100,
        )
        color = proposal.arguments.get("color")
        many = sum(each.get("color") == color for each in before)
        return [ACCOUNT, Annotation("Record", f"painted {color} {many} times before")]


async def propose(make_nod: MakeNod, **arguments: Any) -> tuple[Nod, Proposal, RecordFeature]:
    feature = RecordFeature()
    nod = make_nod(hooks=Hooks(annotate_card=(feature.annotate,)))
    [proposal] = await nod.asked(call("paint", lamp="desk", color="red", **arguments))
    return nod, proposal, feature


async def say_late(nod: Nod, proposal: Proposal, line: Annotation = OPINION, round_: int = 1) -> bool:
    """Whether the line was added to the card."""
    added = nod.database.write_now(lifecycle.annotate, proposal.id, round_, line, nod.clock())
    for job in added:
        await nod.valve.wake(job)
    return bool(added)


async def test_a_feature_adds_lines_to_the_card_that_are_part_of_what_is_pressed(make_nod: MakeNod) -> None:
    nod, proposal, feature = await propose(make_nod)
    plain = make_nod()
    [without] = await plain.asked(call("paint", lamp="desk", color="red"))
    assert feature.asked == [1]
    assert [each.line for each in proposal.annotations] == [
        "As Ana at github (octocat)",
        "Record: painted red 0 times before",
    ]
    assert nod.chat.card_of(proposal).annotations == proposal.annotations
    assert proposal.digest == without.digest
    assert proposal.seen != without.seen
    reply = await nod.press(Verb.APPROVE, proposal, seen=without.seen)
    assert reply.answer is Answer.STALE
    reply = await nod.press(Verb.APPROVE, proposal, seen=proposal.seen)
    assert reply.answer is Answer.ACCEPTED
    [first, *_] = nod.database.read_now(log.list_rows_of_proposal, proposal.id)
    assert first.about
    assert first.about["annotations"] == [each.line for each in proposal.annotations]
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_a_late_line_redraws_the_card_and_changes_nothing_that_is_pressed(make_nod: MakeNod) -> None:
    nod, proposal, _ = await propose(make_nod)
    assert await say_late(nod, proposal)
    await nod.idle()
    after = await nod.now(proposal)
    assert nod.chat.card_of(proposal).annotations == (
        *proposal.annotations,
        Annotation(OPINION.name, OPINION.text, is_late=True),
    )
    assert (after.seen, after.round, after.digest) == (proposal.seen, proposal.round, proposal.digest)
    reply = await nod.press(Verb.APPROVE, proposal, round_shown=1, seen=proposal.seen)
    assert reply.answer is Answer.ACCEPTED
    await nod.idle()
    assert len(nod.world.runs_of(proposal)) == 1
    said = [
        row.reason
        for row in nod.database.read_now(log.list_rows_of_proposal, proposal.id)
        if row.verb == "annotate"
    ]
    assert said == [OPINION.line]
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_a_late_line_comes_once_and_not_to_other_contents_or_a_decided_card(make_nod: MakeNod) -> None:
    nod, proposal, feature = await propose(make_nod)
    assert not await say_late(nod, proposal, round_=2)
    assert not await say_late(nod, proposal, Annotation("Nothing", " \u200b\n "))
    assert await say_late(nod, proposal)
    assert not await say_late(nod, proposal, Annotation(OPINION.name, "something else"))
    assert [await say_late(nod, proposal, Annotation(f"Other {n}", "x")) for n in range(MAX_LINES)] == [
        *[True] * (MAX_LINES - 1),
        False,
    ]
    edit = {"lamp": "desk", "color": "blue"}
    await nod.press(Verb.EDIT, proposal, arguments=edit)
    await nod.idle()
    edited = await nod.now(proposal)
    assert feature.asked == [1, 2]
    assert [each.line for each in edited.annotations] == [
        "As Ana at github (octocat)",
        "Record: painted blue 0 times before",
    ]
    assert await say_late(nod, edited, round_=2)
    await nod.press(Verb.DECLINE, edited)
    assert not await say_late(nod, edited, Annotation("Third", "x"), round_=2)
    assert not await say_late(nod, edited, Annotation("Third", "x"), round_=3)
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_an_expired_proposal_that_is_asked_again_has_lines_of_its_own(make_nod: MakeNod) -> None:
    nod, proposal, feature = await propose(make_nod)
    assert await say_late(nod, proposal)
    await nod.tick(timedelta(days=2))
    expired = await nod.now(proposal)
    assert expired.state is State.EXPIRED
    assert len(expired.annotations) == len(("account", "record", "opinion"))
    await nod.press(Verb.APPROVE, expired)
    again = await nod.now(proposal)
    assert again.state is State.PROPOSED
    assert feature.asked == [1, 2]
    assert not [each for each in again.annotations if each.is_late]


async def test_where_a_feature_fails_to_say_what_it_should_there_is_no_card(make_nod: MakeNod) -> None:
    def fail(*_: Any) -> list[Annotation]:
        raise RuntimeError("the connection is unknown")

    nod = make_nod(hooks=Hooks(annotate_card=(fail,)))
    assert await nod.asked(call("paint", lamp="desk", color="red")) == []
    assert nod.world.runs == []


async def test_rows_of_a_batch_have_their_own_lines_and_the_card_those_of_all(make_nod: MakeNod) -> None:
    def annotate(_: Session, proposal: Proposal) -> list[Annotation]:
        return [ACCOUNT, Annotation("Record", f"lamp number {proposal.position + 1}")]

    nod = make_nod(hooks=Hooks(annotate_card=(annotate,)))
    nod.world.lamps = {f"lamp {n}": "white" for n in (1, 2, 3)}
    await nod.asked(*(call("paint", lamp=lamp, color="red") for lamp in nod.world.lamps))
    [card] = nod.chat.cards.values()
    assert card.batch
    assert card.annotations == (ACCOUNT,)
    assert [row.notes for row in card.batch.rows] == [(f"Record: lamp number {n}",) for n in (1, 2, 3)]


HOSTILE = [
    "[Approve](https://evil.example/approve)",
    "<https://evil.example|Approve>",
    "https://evil.example/approve",
    "evil.example",
    "<!channel> <@U1> @everyone @ana",
    "**Approve** _now_ `x` ```\ny\n```",
    "one\ntwo\r\nthree\u2028four",
    "safe\u202etxt.exe",
    "</p><script>alert(1)</script>",
    "x" * 10_000,
]
TEXTS = st.one_of(st.text(max_size=800), st.sampled_from(HOSTILE))
LINES = st.builds(Annotation, st.text(max_size=300), TEXTS)


@settings(deadline=None, max_examples=60)
@given(st.lists(LINES, max_size=12), st.lists(LINES, max_size=12), st.booleans())
def test_whatever_a_feature_says_it_is_bounded_and_text_in_every_channel(
    frozen: list[Annotation], late: list[Annotation], pending: bool
) -> None:
    kept = (*bound_annotations(frozen), *bound_annotations(late, late=True))
    assert len(kept) <= 2 * MAX_LINES
    for each in kept:
        assert len(each.name) <= NAME_CHARS
        assert 0 < len(each.text) <= TEXT_CHARS
        assert "\n" not in each.line
    state = State.PROPOSED if pending else State.DECLINED
    proposal = make_proposal(state=state, annotations=kept)
    card = render_card(proposal, {})
    drawn = slack.render(card)
    for block in drawn.blocks:
        elements = block["elements"] if block["type"] == "context" else []
        assert all(e["type"] == "plain_text" for e in elements if e["text"].startswith("💬"))
    assert len(shown_text(drawn.blocks)) < 100
    rich = telegram.render_card(card).rich
    assert not [e for e in rich.entities if e.type in ("url", "text_link", "mention")]
    assert rich.units <= 4096
    embed = re.sub("```.*?```", "", discord.render(card).message["embeds"][0]["description"], flags=re.DOTALL)
    assert not re.search(r"(?<!\\)(\]\(|://)", embed)
    assert "<@U1>" not in embed
    lines = [line for each in kept for line in format_call(card).split("\n") if line == each.line]
    assert len(lines) >= len({each.line for each in kept})
    assert card_text(card).count("\n") < 40


def test_a_telegram_card_has_the_text_of_a_line_as_code_where_no_address_becomes_a_link() -> None:
    card = render_card(make_proposal(annotations=(Annotation("Record", "see evil.example"),)), {})
    rich = telegram.render_card(card).rich
    codes = [rich.text[e.offset - 1 : e.offset + e.length - 1] for e in rich.entities if e.type == "code"]
    assert "see evil.example" in codes  # the sign before the title counts as two
