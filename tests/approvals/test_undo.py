"""What was done is read again, and can be put back: by one person, once, while its time lasts."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.approvals.after_run import collect_after_run
from bot.domain.chat import Answer, Request
from bot.domain.conversations import LineRole
from bot.domain.outcomes import for_model
from bot.domain.policy import Policy
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.errors import ToolError, ToolTimedOut
from bot.features.issues import rows as issues
from bot.features.issues.samples import store_samples
from bot.features.issues.tools import make_issue_toolset
from bot.store import proposals
from bot.store.audit import log
from bot.tools.builtin.files.tools import file_tools
from bot.tools.call import InverseCall, Ran, ToolOutput
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, BEN, EVE, ROOM, FakeClock, Nod, call, cores
from tests.kit.urls import Urls
from tests.tiers import thin

pytestmark = pytest.mark.slow

MINUTES = timedelta(minutes=1)


def dial_tools(values: dict[str, str]) -> list[Tool]:
    """A tool that sets something, and one that says that it did."""

    async def old_and_new(arguments: Mapping[str, Any]) -> list[PreviewField]:
        return [PreviewField("level", values["level"], arguments["level"])]

    async def now(_: Mapping[str, Any]) -> dict[str, str | None]:
        if values["level"] == "unreadable":
            raise ToolError("the gauge is broken")
        if values["level"] == "endless":
            await asyncio.Event().wait()
        return {"level": values["level"]}

    async def back(ran: Ran) -> InverseCall | str:
        if ran.arguments["level"] == "final":
            return "final is final"
        if ran.output is not None and ran.arguments["level"] == "stuck":
            return "the dial is stuck"
        if ran.output is not None and ran.arguments["level"] == "half":
            return InverseCall("label", {"texts": {"before": "\ud800"}})
        return InverseCall("dial", {"level": ran.old("level") or ""})

    @tool(preview=old_and_new, current=now, undo=back, summary="Set the dial to {level}")
    async def dial(level: str) -> ToolOutput:
        """Set a dial."""
        values["level"] = values.get(f"gives {level}", level)
        if values.get("lost") == level:
            raise ToolTimedOut("no answer")
        return ToolOutput(f"it is {level}")

    @tool(summary="Label the dial")
    async def label(texts: dict[str, Any]) -> ToolOutput:
        """Label a dial."""
        return ToolOutput(f"{len(texts)} labels")

    return [dial, label]


class Workshop(Nod):
    """The core with the issue tracker, files, and a dial."""

    folder: Path

    def tools(self) -> FixedToolset:
        self.values: dict[str, str] = getattr(self, "values", {"level": "1"})
        each = (
            self.toolset.fixed,
            make_issue_toolset(self.database, self.clock).fixed,
            file_tools(self.folder).fixed,
            dial_tools(self.values),
        )
        return FixedToolset("workshop", tuple(tool for some in each for tool in some))

    async def undo(self, p: Proposal, *, by: Any = ANA) -> tuple[Answer, str]:
        reply = await self.press(Verb.UNDO, p, by=by)
        await self.idle()
        return reply.answer, reply.text

    async def done(self, name: str, **arguments: Any) -> Proposal:
        [p] = await self.asked(call(name, **arguments))
        return await self.approve(p)

    async def newest(self) -> Proposal:
        return (await self.proposals())[-1]


@pytest.fixture
async def make(database_of: Urls, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Any]:
    workspace = tmp_path / "files"
    workspace.mkdir()
    kind = type("WorkshopHere", (Workshop,), {"folder": workspace})
    async with cores(kind, database_of, clock) as make_one:

        def one(**parts: Any) -> Workshop:
            nod: Workshop = make_one(**parts)
            nod.database.write_now(store_samples, clock())
            return nod

        yield one


@pytest.fixture
def nod(make: Any) -> Workshop:
    one: Workshop = make(admins=[ADA], policy=Policy(approvers=frozenset({"chat:ben"})))
    return one


def priority(nod: Nod, number: int = 3) -> str:
    return nod.database.read_now(issues.find, number).priority


# -- read again


async def test_what_is_there_is_read_once_more_and_the_card_says_it(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high", labels=["a, b", "design"])
    assert nod.chat.card_of(done).outcome_line == (
        "Approved by Ana. Checked: priority is high, labels is a, b, design"
    )
    assert "read again" not in for_model(done)


async def test_what_is_not_what_was_approved_is_told_loudly_and_to_the_model(nod: Workshop) -> None:
    nod.values["gives 5"] = "4"
    done = await nod.done("dial", level="5")
    card = nod.chat.card_of(done)
    assert (done.state, card.tone) == (State.SUCCEEDED, "warned")
    assert card.notes[0] == "⚠️ Checked: this is not what was approved: level is 4, not 5."
    assert "But read again, it is not what was approved:" in for_model(done)
    assert "level is 4, not 5. Tell the person." in for_model(done)


async def test_what_cannot_be_read_is_claimed_by_no_one_and_the_run_stands(nod: Workshop) -> None:
    done = await nod.done("dial", level="unreadable")
    assert (done.state, done.read_again) == (State.SUCCEEDED, ())
    nod.values["level"] = "endless"
    available = await nod.gate.registry.load_tools()
    found = await collect_after_run(available, available.get("dial"), done, ToolOutput(""), seconds=0.01)
    assert "read_again" not in found


async def test_a_preview_that_shows_old_values_is_enough_to_read_again(nod: Workshop) -> None:
    done = await nod.done("paint", lamp="desk", color="red")
    assert [each.description for each in done.read_again] == ["desk is red"]
    gone = await nod.asked(call("smash", lamp="desk"))
    await nod.approve(gone[0], by=BEN)
    assert (await nod.now(gone[0])).read_again == ()  # its preview raises: there is no such lamp


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("create_issue", {"title": "New", "priority": "low"}, "title is New, priority is low"),
        ("comment_issue", {"number": 3, "body": "Soon."}, "comment is Soon."),
        ("close_issue", {"number": 3, "reason": "Done."}, "state is closed, comment is Done."),
        ("file_write", {"path": "a/b.txt", "content": "x"}, "content of a/b.txt is x"),
    ],
)
async def test_the_built_in_tools_are_read_again(
    nod: Workshop, name: str, arguments: dict[str, Any], words: str
) -> None:
    done = await nod.done(name, **arguments)
    assert ", ".join(each.description for each in done.read_again) == words
    assert not done.wrong_fields


# -- undo


async def test_before_approval_the_card_says_whether_it_can_be_undone(nod: Workshop) -> None:
    [change] = await nod.asked(call("update_issue", number=3, priority="high"))
    assert nod.chat.card_of(change).undo_sentence == "Can be undone for 30 min."
    [painted] = await nod.asked(call("paint", lamp="desk", color="red"))
    assert nod.chat.card_of(painted).undo_sentence == "Nod can't undo this."
    [final] = await nod.asked(call("dial", level="final"))
    assert nod.chat.card_of(final).undo_sentence == "Nod can't undo this: final is final."
    (nod.folder / "a").write_text("a")
    [deletion] = await nod.asked(call("file_delete", path="a"))
    card = nod.chat.card_of(deletion)
    sure = card.button(Verb.APPROVE).confirmation
    assert (card.warning, card.undo_note) == ("Can be undone for 30 min.", "")
    assert sure is not None
    assert sure.warning == "Can be undone for 30 min."


async def test_undo_puts_back_what_was_there_by_one_press_and_is_recorded(nod: Workshop) -> None:
    before = nod.database.read_now(issues.find, 3)
    done = await nod.done(
        "update_issue", number=3, priority="high", labels=["a, b"], assignee="Sam", body="new", title="T"
    )
    card = nod.chat.card_of(done)
    sure = card.button(Verb.UNDO).confirmation
    assert card.verbs == (Verb.UNDO,)
    assert sure is not None
    assert "Priority: high → low" in sure.warning
    assert await nod.undo(done) == (
        Answer.ACCEPTED,
        "Undoing it: Change title, body, assignee, priority and labels of issue #3 “T”.",
    )
    after = nod.database.read_now(issues.find, 3)
    assert replace(after, updated_at=before.updated_at) == before
    done, inverse = await nod.now(done), await nod.newest()
    assert (inverse.undoes_proposal_id, done.undo_proposal_id, done.undone_by_name) == (
        done.id,
        inverse.id,
        "Ana",
    )
    assert (inverse.state, inverse.decided_by, inverse.conversation_id) == (
        State.SUCCEEDED,
        "Ana",
        done.conversation_id,
    )
    history = await nod.database.read(log.list_rows_of_proposal, done.id)
    assert [each.verb for each in history][-2:] == ["undo", "undone"]
    card = nod.chat.card_of(done)
    assert (card.outcome, card.verbs) == ("Approved by Ana. Undone by Ana.", ())
    assert nod.chat.card_of(inverse).outcome == "Approved by Ana."


async def test_the_agent_is_told_by_a_note_and_has_no_tool_for_it(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.undo(done)
    notes = [each.text for each in (await nod.transcript()).lines if each.role is LineRole.NOTE]
    assert notes[-1] == (
        "[Nod] Undone by Ana, so it no longer holds: Change priority of issue #3 “Dark mode for the settings "
        "page”. What was done for that: Change priority of issue #3 “Dark mode for the settings page”."
    )
    offered = (await nod.gate.registry.load_tools()).model_tools.tools
    assert not {"take_back_comment", "file_restore"} & offered.keys()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("comment_issue", {"number": 3, "body": "Soon."}),
        ("close_issue", {"number": 3}),
        ("close_issue", {"number": 3, "reason": "Done."}),
        ("update_issue", {"number": 3, "labels": []}),
    ],
)
async def test_what_was_done_to_an_issue_is_undone(
    nod: Workshop, name: str, arguments: dict[str, Any]
) -> None:
    def state() -> Any:
        issue = nod.database.read_now(issues.find, 3)
        return replace(issue, updated_at=issue.created_at), nod.database.read_now(issues.list_comments, 3)

    before = state()
    done = await nod.done(name, **arguments)
    assert state() != before
    assert (await nod.undo(done))[0] is Answer.ACCEPTED
    assert state() == before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("file_write", {"path": "plan.md", "content": "new\n"}),
        ("file_write", {"path": "script.sh", "content": "new\n"}),
        ("file_write", {"path": "picture", "content": "new\n"}),
        ("file_write", {"path": "new.md", "content": "new\n"}),
        ("file_edit", {"path": "plan.md", "old": "old", "new": "new"}),
        ("file_move", {"path": "plan.md", "to": "other.md"}),
        ("file_delete", {"path": "plan.md"}),
        ("file_delete", {"path": "script.sh"}),
        ("file_delete", {"path": "picture"}),
        ("file_delete", {"path": "empty"}),
    ],
)
async def test_what_was_done_to_a_file_is_undone_with_its_permissions(
    make: Any, name: str, arguments: dict[str, Any]
) -> None:
    nod = make()
    (nod.folder / "plan.md").write_text("an old plan\n")
    (nod.folder / "script.sh").write_text("echo\n")
    (nod.folder / "script.sh").chmod(0o750)
    (nod.folder / "picture").write_bytes(b"\x89PNG\0\1")
    (nod.folder / "empty").mkdir()

    def state() -> Any:
        every = sorted(nod.folder.rglob("*"))
        return [(e, e.stat().st_mode, e.read_bytes() if e.is_file() else None) for e in every]

    before = state()
    done = await nod.done(name, **arguments)
    assert done.state is State.SUCCEEDED, done.error
    assert state() != before
    answer, words = await nod.undo(done)
    assert answer is Answer.ACCEPTED, words
    assert state() == before
    again = await nod.newest()
    await nod.undo(again)  # what undid it can be undone, too
    assert state() != before


async def test_an_old_file_of_more_than_a_megabyte_cannot_be_put_back_and_the_card_says_so(
    nod: Workshop,
) -> None:
    (nod.folder / "long").write_bytes(b"\0" * 1_000_001)
    [p] = await nod.asked(call("file_write", path="long", content="short"))
    said = "Nod can't undo this: long has more than 1 MB, so its old content is not kept."
    assert nod.chat.card_of(p).undo_sentence == said
    done = await nod.approve(p)
    assert done.state is State.SUCCEEDED
    assert nod.chat.card_of(done).verbs == ()
    assert await nod.undo(done) == (
        Answer.INVALID,
        "This can't be undone. long has more than 1 MB, so its old content is not kept.",
    )


async def test_a_reason_that_shows_only_afterwards_is_told_on_the_card(nod: Workshop) -> None:
    done = await nod.done("dial", level="stuck")
    assert "It can't be undone after all: the dial is stuck." in nod.chat.card_of(done).notes
    assert nod.chat.card_of(done).verbs == ()


async def test_a_run_stands_although_its_inverse_has_text_that_no_database_keeps(nod: Workshop) -> None:
    done = await nod.done("dial", level="half")
    assert done.state is State.SUCCEEDED
    assert "It can't be undone after all: dial failed with UnicodeEncodeError" in " ".join(
        nod.chat.card_of(done).notes
    )


async def test_all_of_a_batch_is_undone_by_one_press_as_a_batch_of_its_own(nod: Workshop) -> None:
    before = [priority(nod, n) for n in (1, 2, 3)]
    wanted = ["low" if was != "low" else "high" for was in before]
    calls = [call("update_issue", number=n, priority=to) for n, to in zip((1, 2, 3), wanted, strict=True)]
    found = await nod.asked(*calls)
    await nod.press(Verb.APPROVE_ALL, found[0])
    await nod.idle()
    assert [priority(nod, n) for n in (1, 2, 3)] == wanted
    shown = [card for card in nod.chat.cards.values() if card.batch]
    assert Verb.UNDO_ALL in shown[-1].verbs
    reply = await nod.press(Verb.UNDO_ALL, found[0])
    await nod.idle()
    assert (reply.answer, reply.text) == (Answer.ACCEPTED, "3 being undone.")
    assert [priority(nod, n) for n in (1, 2, 3)] == before
    inverses = [p for p in await nod.proposals() if p.undoes_proposal_id]
    assert {p.batch for p in inverses} == {inverses[0].id}
    assert {p.undoes_proposal_id for p in inverses} == {p.id for p in found}
    assert len([card for card in nod.chat.cards.values() if card.batch]) == 2
    assert (await nod.press(Verb.UNDO_ALL, found[0])).answer is Answer.ALREADY


@pytest.mark.parametrize("how", [Verb.DECLINE, Verb.CANCEL, "expires", "fails"])
async def test_what_was_not_undone_after_all_can_be_undone_again(nod: Workshop, how: str) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.done("update_issue", number=3, priority="urgent")  # so that it asks
    await nod.undo(done)
    first = await nod.newest()
    assert nod.chat.card_of(await nod.now(done)).verbs == ()
    if how == "expires":
        await nod.tick(timedelta(hours=25))
    elif how == "fails":
        nod.database.write_now(issues.remove_issue, 3)
        await nod.press(Verb.APPROVE, first)
        await nod.idle()
    else:
        await nod.press(Verb(how), first)
    await nod.idle()
    assert (await nod.now(first)).state in (State.DECLINED, State.CANCELLED, State.EXPIRED, State.FAILED)
    again = await nod.now(done)
    assert (again.undo_proposal_id, nod.chat.card_of(again).verbs) == (None, (Verb.UNDO,))
    assert again.undo_until == nod.clock() + 30 * MINUTES
    history = await nod.database.read(log.list_rows_of_proposal, done.id)
    assert history[-1].verb == "not undone"


async def test_of_two_cards_that_undo_one_change_only_the_newest_does(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.done("update_issue", number=3, priority="urgent")
    await nod.undo(done)
    first = await nod.newest()
    await nod.tick(timedelta(hours=25))
    await nod.undo(done)
    second = await nod.newest()
    refused = await nod.press(Verb.APPROVE, first)  # it expired, so it would ask again
    assert refused.text.endswith("Undo was pressed again since. See its own card.")
    assert (await nod.now(first)).state is State.EXPIRED
    await nod.press(Verb.DECLINE, second)
    asked = await nod.press(Verb.APPROVE, first)
    assert (asked.answer, (await nod.now(done)).undo_proposal_id) == (Answer.STALE, first.id)
    await nod.approve(await nod.now(first))
    assert (priority(nod), (await nod.now(done)).undone_by_name) == ("low", "Ana")


async def test_where_no_one_knows_whether_it_was_undone_only_its_own_card_tries_again(
    nod: Workshop,
) -> None:
    done = await nod.done("dial", level="5")
    nod.values["lost"] = "1"
    await nod.undo(done)
    inverse, done = await nod.newest(), await nod.now(done)
    assert inverse.cause is Cause.OUTCOME_UNKNOWN
    assert done.undo_proposal_id == inverse.id
    assert nod.chat.card_of(done).verbs == ()
    assert nod.chat.card_of(inverse).verbs == (Verb.RETRY,)


async def test_two_who_press_undo_undo_it_once(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    replies = await asyncio.gather(*(nod.press(Verb.UNDO, done, by=who) for who in (ANA, BEN, ADA) * 5))
    await nod.idle()
    assert sorted(reply.answer for reply in replies).count(Answer.ACCEPTED) == 1
    assert len([p for p in await nod.proposals() if p.undoes_proposal_id]) == 1
    assert await nod.undo(done) == (
        Answer.ALREADY,
        f"Already undone by {(await nod.now(done)).undone_by_name}.",
    )


async def test_after_another_change_undo_asks_with_the_difference(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.done("update_issue", number=3, priority="urgent")
    answer, words = await nod.undo(done)
    assert (answer, words) == (
        Answer.ACCEPTED,
        "Something changed since, so look at what undoing does now. It waits on a card of its own.",
    )
    inverse = await nod.newest()
    assert inverse.state is State.PROPOSED
    assert inverse.preview == (PreviewField("priority", "urgent", "low"),)
    assert "Undo was pressed. It has a card of its own." in nod.chat.card_of(done).notes
    await nod.approve(inverse)
    assert priority(nod) == "low"
    assert (await nod.now(done)).undone_by_name == "Ana"


async def test_to_undo_what_was_created_is_a_deletion_that_asks_for_four_eyes(nod: Workshop) -> None:
    done = await nod.done("create_issue", title="A mistake")
    assert await nod.undo(done) == (
        Answer.ACCEPTED,
        "Undoing this can't be undone. It waits on a card of its own.",
    )
    inverse = await nod.newest()
    assert (inverse.tool_name, inverse.state) == ("delete_issue", State.PROPOSED)
    await nod.press(Verb.APPROVE, inverse)
    assert (await nod.now(inverse)).state is State.PROPOSED  # Ana asked for it
    await nod.approve(inverse, by=BEN)
    assert (await nod.now(done)).undone_by_name == "Ben"
    with pytest.raises(ToolError):
        nod.database.read_now(issues.find, 7)


async def test_who_may_not_decide_it_may_not_undo_it(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    answer, words = await nod.undo(done, by=EVE)
    assert answer is Answer.REFUSED
    assert "You may not decide this one." in words
    assert priority(nod) == "high"


async def test_whom_four_eyes_excluded_from_the_approval_may_not_undo_it_either(nod: Workshop) -> None:
    (nod.folder / "a").write_text("a")
    [p] = await nod.asked(call("file_delete", path="a"))
    await nod.approve(p, by=BEN)
    assert (await nod.undo(p))[0] is Answer.REFUSED
    assert (await nod.undo(p, by=BEN))[0] is Answer.ACCEPTED
    assert (nod.folder / "a").read_text() == "a"


async def test_undo_is_there_after_a_restart_and_its_time_continues(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.restart()
    assert nod.chat.card_of(done).verbs == (Verb.UNDO,)
    assert (await nod.undo(done))[0] is Answer.ACCEPTED
    assert priority(nod) == "low"
    late = await nod.done("update_issue", number=3, priority="high")
    nod.clock.forward(31 * MINUTES)
    await nod.restart()
    assert nod.chat.card_of(late).verbs == ()


async def test_a_secret_in_what_is_put_back_is_on_no_card(nod: Workshop) -> None:
    secret = "xoxb-1234567890-abcdefghij"
    (nod.folder / "a.env").write_text(secret)
    done = await nod.done("file_write", path="a.env", content="none")
    card = nod.chat.card_of(done)
    assert secret not in repr(card)
    assert done.inverse is not None
    assert secret not in repr(done.inverse)
    await nod.undo(done)
    assert (nod.folder / "a.env").read_text() == secret
    inverse = await nod.newest()
    for shown in (nod.chat.card_of(done), nod.chat.card_of(inverse)):
        assert secret not in repr(shown)


async def test_what_undoes_a_change_is_not_edited_into_something_else(nod: Workshop) -> None:
    done = await nod.done("create_issue", title="A mistake")
    await nod.undo(done)
    inverse = await nod.newest()
    assert not {Verb.EDIT, Verb.SIMILAR} & set(nod.chat.card_of(inverse).verbs)
    for verb in (Verb.EDIT, Verb.APPROVE):
        reply = await nod.press(verb, inverse, by=BEN, arguments={"number": 1})
        assert (reply.answer, reply.text) == (
            Answer.INVALID,
            "What undoes a change can't be edited or allowed in advance.",
        )
    assert nod.database.read_now(issues.find, 1)


async def test_undo_goes_when_its_time_is_over_and_the_card_is_drawn_without_it(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.tick(29 * MINUTES)
    assert nod.chat.card_of(done).verbs == (Verb.UNDO,)
    nod.clock.forward(2 * MINUTES)
    assert await nod.undo(done) == (Answer.STALE, "The time to undo this is over.")
    await nod.tick()
    assert nod.chat.card_of(done).verbs == ()
    assert await nod.undo(done) == (Answer.STALE, "The time to undo this is over.")
    assert priority(nod) == "high"


async def test_a_rule_says_for_how_long_by_tool_and_place(nod: Workshop) -> None:
    for words, said in (("2h", "2 h"), ("45s", "less than a minute")):
        assert "Set: rule" in (await nod.command(f"/approvals undo {words} for update_*", by=ADA)).text
        [p] = await nod.asked(call("update_issue", number=3, priority="high"))
        assert nod.chat.card_of(p).undo_sentence == f"Can be undone for {said}."
        await nod.press(Verb.DECLINE, p)
        await nod.say("again", event=words)
    off = (await nod.command("/approvals undo off in chat:room", by=ADA)).text
    assert off == "Set: rule 3: undo off in chat:room."
    [p] = await nod.asked(call("update_issue", number=4, priority="high"))
    assert nod.chat.card_of(p).undo_sentence == "Nod can't undo this."
    done = await nod.approve(p)
    assert (await nod.undo(done))[0] is Answer.INVALID
    assert (await nod.command("/approvals undo off", by=ANA)).answer is not Answer.ACCEPTED


async def test_undo_as_a_command_takes_four_characters_of_the_id(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    for who, short in ((ANA, done.id[:3]), (ADA, "zz")):
        assert (await nod.command(f"/approvals undo {short}", by=who)).answer is Answer.INVALID
    told = await nod.command(f"/approvals undo {done.id[:6]}", by=ADA)
    await nod.idle()
    assert told.answer is Answer.ACCEPTED, told.text
    assert priority(nod) == "low"
    assert "undo" not in (await nod.command("/approvals help drop", by=ADA)).text


async def test_undo_waits_while_everything_is_paused(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.command("/approvals pause", by=ADA)
    answer, words = await nod.undo(done)
    assert answer is Answer.ACCEPTED
    assert words.endswith("Everything is paused, so it runs after /approvals resume.")
    assert priority(nod) == "high"
    await nod.command("/approvals resume", by=ADA)
    await nod.tick()
    assert priority(nod) == "low"


async def test_who_may_not_decide_the_inverse_by_its_own_rules_asks_those_who_may(nod: Workshop) -> None:
    done = await nod.done("comment_issue", number=3, body="Soon.")
    await nod.command("/approvals approvers admin for take_back_*", by=ADA)
    assert await nod.undo(done) == (
        Answer.ACCEPTED,
        "You may not decide what undoes this. It waits on a card of its own.",
    )
    inverse = await nod.newest()
    await nod.approve(inverse, by=ADA)
    assert nod.database.read_now(issues.list_comments, 3) == []


async def test_what_a_rule_forbids_is_not_undone_either(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    await nod.command("/approvals policy forbid for update_*", by=ADA)
    answer, words = await nod.undo(done)
    assert answer is Answer.INVALID
    assert "rule 1: policy forbid for update_*" in words
    assert priority(nod) == "high"
    assert (await nod.now(done)).undo_proposal_id is None


async def test_of_a_change_that_needs_two_people_one_is_enough_to_undo_it(nod: Workshop) -> None:
    await nod.command("/approvals quorum 2", by=ADA)
    [p] = await nod.asked(call("update_issue", number=3, priority="high"))
    await nod.approve(p)
    await nod.approve(p, by=ADA)
    assert priority(nod) == "high"
    assert (await nod.undo(p, by=ADA))[0] is Answer.ACCEPTED
    assert priority(nod) == "low"


async def test_the_old_content_goes_with_the_conversation_and_with_the_retention(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    assert nod.database.read_now(proposals.find_inverse, done.id) == {"number": 3, "priority": "low"}
    nod.clock.forward(timedelta(days=31))
    await nod.recovery.purge(nod.clock())
    assert nod.database.read_now(proposals.find_inverse, done.id) is None


async def test_an_inverse_that_was_altered_in_the_database_does_not_run(nod: Workshop) -> None:
    done = await nod.done("update_issue", number=3, priority="high")
    nod.database.write_now(proposals.store_inverse, done, {"number": 4, "priority": "low"}, nod.clock())
    answer, words = await nod.undo(done)
    assert (answer, words) == (Answer.INVALID, "The tool has changed since, so this can't be undone.")


async def test_tools_that_only_undo_cannot_be_asked_for(nod: Workshop) -> None:
    for name, arguments in (
        ("take_back_comment", {"number": 1, "comment": 1}),
        ("file_restore", {"path": "a"}),
    ):
        reply = await nod.assistant.handle(Request(ANA, name, arguments, ROOM, "please"))
        assert reply.answer is Answer.REFUSED
        assert "only undoes a change" in reply.text


async def test_nothing_is_undone_that_is_open_or_failed(nod: Workshop) -> None:
    [p] = await nod.asked(call("update_issue", number=3, priority="high"))
    assert await nod.undo(p) == (Answer.ALREADY, "This one is still waiting for a decision.")
    nod.world.broken = ToolError("no paint")
    failed = await nod.done("paint", lamp="desk", color="red")
    assert (failed.state, failed.cause) == (State.FAILED, Cause.ERROR)
    assert (await nod.undo(failed))[0] is Answer.ALREADY


@pytest.mark.slow
@pytest.mark.parametrize("after_commit", thin([False, True]))
@pytest.mark.parametrize("fuse", range(1, 9))
async def test_a_crash_at_any_write_of_an_undo_undoes_once_or_not_at_all(
    nod: Workshop, fuse: int, after_commit: bool
) -> None:
    (nod.folder / "a").write_text("old")
    done = await nod.done("file_write", path="a", content="new")

    async def story() -> None:
        await nod.undo(done)

    await nod.dies_in(story(), fuse, after_commit=after_commit)
    await nod.tick()
    undone = [p for p in await nod.proposals() if p.undoes_proposal_id]
    assert len(undone) <= 1
    content = (nod.folder / "a").read_text()
    assert content == ("old" if undone and undone[0].state is State.SUCCEEDED else content)
    if not undone:
        assert (await nod.undo(await nod.now(done)))[0] is Answer.ACCEPTED
        assert (nod.folder / "a").read_text() == "old"
