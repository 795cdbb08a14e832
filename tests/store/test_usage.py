"""What turns cost is added up the same on both databases, and the record is paged the same."""

from datetime import timedelta

from bot.domain.audit import AuditFilter
from bot.domain.chat import Address, Parts, UsageRow
from bot.store import counts, tokens
from bot.store.audit import search
from bot.store.database import Database
from bot.store.turns import is_under_way
from tests.kit import ANA, FakeClock
from tests.store.conftest import Rows


def test_usage_is_told_by_day_conversation_and_account(rows: Rows, database: Database, clock: FakeClock):
    start = clock()
    [first] = rows.propose()
    clock.forward(timedelta(days=1, hours=14, minutes=30))  # still that day in UTC
    [second] = rows.propose(at=Address("chat", "other"))

    def told(by: Parts, accounts: set[str] | None = None) -> list[UsageRow]:
        return database.read_now(counts.list_usage, by, start, accounts)

    assert told(Parts.DAY) == [
        UsageRow("2026-03-03", "", 1, 1, 10, 5),
        UsageRow("2026-03-02", "", 1, 1, 10, 5),
    ]
    by_conversation = {part.key: part for part in told(Parts.CONVERSATION)}
    assert by_conversation.keys() == {first.conversation_id, second.conversation_id}
    assert told(Parts.ACCOUNT) == [UsageRow("chat:ana", "", 2, 2, 20, 10)]
    assert told(Parts.ACCOUNT, {"chat:ben"}) == []
    assert all(type(number) is int for part in told(Parts.DAY) for number in part[2:-1])
    assert database.read_now(is_under_way, [first.conversation_id, second.conversation_id]) is False
    rows.say("more", at=Address("chat", "other"))
    assert database.read_now(is_under_way, [first.conversation_id, second.conversation_id]) is True


def test_the_record_is_read_in_pages_from_the_newest_row(rows: Rows, database: Database, clock: FakeClock):
    rows.propose(3)
    database.write_now(tokens.issue_token, "ci", ANA, clock())
    seen, before = [], None
    while True:
        page, before = database.read_now(search.load_page, AuditFilter().with_numbers_below(before), 2)
        seen += [row["id"] for row in page]
        if before is None:
            break
    assert seen == [4, 3, 2, 1]


def test_a_token_is_told_by_its_holder_until_it_is_revoked(database: Database, clock: FakeClock):
    token = database.write_now(tokens.issue_token, "ci", ANA, clock())
    found = database.read_now(tokens.find_holder, token, clock())
    assert found is not None
    assert str(found.actor) == "http:ci"
    for wrong in (token[:-1], token + "x", "nod_", ""):
        assert database.read_now(tokens.find_holder, wrong, clock()) is None
    [ended] = database.write_now(tokens.revoke_token, "ci", ANA, clock())
    assert ended.label in token
    assert database.read_now(tokens.find_holder, token, clock()) is None
    assert database.read_now(tokens.list_unrevoked) == []
