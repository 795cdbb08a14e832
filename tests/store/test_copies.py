"""Where cards stand, and which of them are behind."""

from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import posted_cards
from tests.kit import ROOM, WALL
from tests.store.conftest import Rows


def post(rows: Rows, p: Proposal, ref: str, version: int = 1) -> None:
    rows.database.write_now(posted_cards.add_card, p.id, ROOM, ref, version)


def behind(rows: Rows, p: Proposal) -> list[str]:
    return [copy.ref for copy, _ in rows.database.read_now(posted_cards.list_outdated_copies, p.message_id)]


def test_a_fresh_copy_is_current_and_a_change_leaves_it_behind_until_it_is_rendered(rows: Rows) -> None:
    [p] = rows.propose()
    post(rows, p, "m1")
    assert behind(rows, p) == []
    rows.decide(p)
    [(copy, changes_soon)] = rows.database.read_now(posted_cards.list_outdated_copies, p.message_id)
    assert changes_soon
    assert rows.database.read_now(posted_cards.list_outdated_messages) == [p.message_id]
    assert not rows.database.write_now(posted_cards.mark_rendered, copy)
    assert behind(rows, p) == []


def test_a_change_while_a_copy_is_being_drawn_keeps_it_behind(rows: Rows) -> None:
    [p] = rows.propose()
    post(rows, p, "m1")
    rows.decide(p)
    [(copy, _)] = rows.database.read_now(posted_cards.list_outdated_copies, p.message_id)
    rows.claim(p)
    assert rows.database.write_now(posted_cards.mark_rendered, copy)
    assert behind(rows, p) == ["m1"]


def test_a_copy_of_what_moved_while_it_was_sent_is_behind_immediately(rows: Rows) -> None:
    [p] = rows.propose()
    rows.decide(p)
    post(rows, p, "m1", version=1)
    assert behind(rows, p) == ["m1"]


def test_a_change_also_concerns_the_first_card_of_the_answer_and_no_other(rows: Rows) -> None:
    found = rows.propose(3)
    for p in found:
        post(rows, p, p.id)
    rows.decide(found[2], Verb.DECLINE)
    assert behind(rows, found[0]) == [found[2].id, found[0].id]


def test_what_a_copy_shows_is_forgotten_once_someone_else_may_have_changed_it(rows: Rows) -> None:
    [p] = rows.propose()
    rows.database.write_now(posted_cards.add_card, p.id, ROOM, "m1", 1, "abc")
    [copy] = rows.database.read_now(posted_cards.list_copies, p.id)
    assert copy.shown == "abc"
    rows.database.write_now(posted_cards.mark_rendered, copy, "def")
    rows.database.write_now(posted_cards.mark_gone, copy)
    rows.database.write_now(posted_cards.mark_reachable, ROOM.channel, "m1")
    assert [c.shown for c in rows.database.read_now(posted_cards.list_copies, p.id)] == [None]


def test_a_copy_that_is_gone_is_never_behind(rows: Rows) -> None:
    [p] = rows.propose()
    post(rows, p, "m1")
    [copy] = rows.database.read_now(posted_cards.list_copies, p.id)
    rows.database.write_now(posted_cards.mark_gone, copy)
    rows.decide(p)
    assert rows.database.read_now(posted_cards.list_outdated_messages) == []


def test_a_copy_is_known_by_where_it_stands_and_remembered_once(rows: Rows) -> None:
    [p] = rows.propose()
    post(rows, p, "m1")
    post(rows, p, "m1")
    assert len(rows.database.read_now(posted_cards.list_copies, p.id)) == 1
    assert rows.database.read_now(posted_cards.are_posted_at, [p.id], ROOM)
    assert not rows.database.read_now(posted_cards.are_posted_at, [p.id], WALL)
