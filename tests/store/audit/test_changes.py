"""Rules, grants, links and pauses: who changed what is written down, and any change of that shows."""

import json

import pytest
from sqlalchemy import text

from bot.domain import progress
from bot.domain.audit import AuditFilter
from bot.domain.chat import Answer
from bot.domain.people import Actor
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store.audit import export_formats, search, verification
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, ANA, EVE, ROOM, MakeNod, Nod, call

PHONE = Actor("phone", "9", "Ana's phone")


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    return make_nod(admins=[ADA])


async def rows(nod: Nod, **wanted: str) -> list[dict[str, object]]:
    found = await nod.database.read(search.list_matching_rows, AuditFilter(**wanted))  # type: ignore[arg-type]
    return [row for row in found if row["thing"]]


async def say(nod: Nod, words: str, by: Actor = ADA) -> str:
    reply = await nod.command(words, by=by)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


async def linked(nod: Nod) -> None:
    assert (await nod.link(ANA, PHONE)).startswith("Linked")


async def granted(nod: Nod, lasting: GrantDuration = GrantDuration.HOUR) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.press(Verb.SIMILAR, painted, rung=GrantScope.TOOL, lasting=lasting)
    await nod.idle()


@pytest.mark.parametrize(
    ("words", "key", "after"),
    [
        ("policy never for pa*", "policy for pa* in *", "never"),
        ("risk destructive for look", "risk for look in *", "destructive"),
        ("approvers requester chat:ben", "deciders for * in *", ["requester", "chat:ben"]),
        ("roles add chat:ben approver", 'role for * in * ["chat:ben","approver"]', ["chat:ben", "approver"]),
        ("quorum 2 of 3", "quorum for * in *", [2, 3]),
        ("ttl 4h in chat:room", "ttl for * in chat:room", 14400.0),
        ("remind 2h", "remind for * in *", [7200.0]),
        ("escalate 4h wall:approvals", "escalate for * in *", [14400.0, "wall:approvals"]),
        ("quiet 22:00 07:00", "quiet for * in *", ["22:00", "07:00"]),
        ("route wall:approvals", 'route for * in * "wall:approvals"', "wall:approvals"),
        ("digest 09:00 wall:approvals", "digest for * in *", ["09:00", "wall:approvals"]),
        ("grants allow destructive", "grants for * in *", "destructive"),
    ],
)
async def test_every_rule_an_admin_sets_is_recorded_with_who_and_what_it_was_before(
    nod: Nod, words: str, key: str, after: object
) -> None:
    await say(nod, f"/approvals {words}")
    await say(nod, f"/approvals {words}")
    first, second = await rows(nod)
    assert (first["verb"], first["actor"], first["person"], first["channel"]) == (
        "set",
        "chat:ada",
        "chat:ada",
        "chat",
    )
    assert (first["thing"], first["key"], first["before"]) == ("rule", key, None)
    assert first["after"] == {"rule": 1, "value": after}
    assert (second["before"], second["after"]) == (first["after"], {"rule": 2, "value": after})
    await say(nod, "/approvals drop 2")
    dropped = (await rows(nod))[-1]
    assert (dropped["verb"], dropped["before"], dropped["after"]) == ("drop", second["after"], None)
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_pause_and_resume_are_recorded_once_each(nod: Nod) -> None:
    for words in ("pause", "pause", "resume", "resume"):
        await say(nod, f"/approvals {words}")
    assert [(row["verb"], row["actor"]) for row in await rows(nod)] == [
        ("pause", "chat:ada"),
        ("resume", "chat:ada"),
    ]


async def test_linked_accounts_are_recorded_and_found_by_either_of_them(nod: Nod) -> None:
    await linked(nod)
    found = await rows(nod, who="chat:ana")
    assert [(row["key"], row["actor"], row["after"]) for row in found] == [
        ("chat:ana", "chat:ana", {"person": "chat:ana"}),
        ("phone:9", "chat:ana", {"person": "chat:ana"}),
    ]
    assert await rows(nod, who="phone:9") == found
    assert await rows(nod, who="chat:eve") == []
    shown = await say(nod, "/approvals audit phone:9")
    assert "account phone:9: link by Ana: nothing → chat:ana" in shown


@pytest.mark.parametrize(
    ("ends", "by", "verb"),
    [
        ("/approvals revoke G-1", ADA, "revoke"),
        ("/approvals revoke all", ADA, "revoke"),
        ("/approvals policy always", ADA, "end with a change of rules"),
        ("/nod new", ANA, "end with its conversation"),
    ],
)
async def test_a_grants_birth_and_end_are_recorded(nod: Nod, ends: str, by: Actor, verb: str) -> None:
    await granted(nod, GrantDuration.CONVERSATION)
    await say(nod, ends, by)
    born, ended = [row for row in await rows(nod) if row["thing"] == "grant"]
    assert (born["key"], born["verb"], born["actor"], born["before"]) == ("G-1", "give", "chat:ana", None)
    assert isinstance(born["after"], dict)
    assert born["after"]["allows"] == "paint with any arguments, for Ana in one private conversation"
    assert (ended["verb"], ended["actor"], ended["after"]) == (verb, str(by), None)
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_a_tool_whose_name_could_begin_an_id_is_a_tool_in_the_record(make_nod: MakeNod) -> None:
    @tool(summary="Feed the cat")
    async def feed(context: CallContext) -> str:
        """Feed the cat."""
        return "fed"

    nod = make_nod(admins=[ADA])
    nod.toolset = FixedToolset("cat", (feed,))
    await nod.restart()
    (fed,) = await nod.asked(call("feed"))
    assert "feed: propose by nod" in await say(nod, "/approvals audit feed")
    assert "feed: propose by nod" in await say(nod, f"/approvals audit {fed.id[:6].upper()}")
    assert await say(nod, "/approvals audit fade") == "Nothing is recorded about that."


async def test_the_record_of_a_grant_has_what_ran_under_it_and_how_it_came_and_went(nod: Nod) -> None:
    await granted(nod)
    await nod.asked(call("paint", lamp="door", color="blue"))
    await nod.idle()
    await say(nod, "/approvals revoke G-1")
    shown = (await say(nod, "/approvals audit g-1")).splitlines()
    assert len(shown) == 5
    for words in ("G-1: give by", "propose by", "execute by", "succeeded by", "G-1: revoke by"):
        assert any(words in line for line in shown)


async def test_the_record_of_a_tool_has_the_rules_about_it(nod: Nod) -> None:
    await say(nod, "/approvals ttl 2h for pa*")
    await say(nod, "/approvals ttl 3h for look")
    await nod.asked(call("paint", lamp="desk", color="red"))
    shown = await say(nod, "/approvals audit paint")
    assert "ttl for pa*" in shown
    assert "nothing → 2h" in shown
    assert "paint: propose by nod" in shown
    assert "look" not in shown


async def test_the_export_has_everything_about_a_decision(nod: Nod) -> None:
    await linked(nod)
    await granted(nod)
    (painted,) = await nod.asked(call("paint", lamp="door", color="red"))
    (enrolled,) = await nod.asked(call("enroll", name="Eve", code="hunter2"))
    await nod.press(Verb.DECLINE, enrolled, by=PHONE, reason="not hers: sk-0123456789abcdefghij")
    found = await nod.database.read(search.list_matching_rows, AuditFilter())
    exported = export_formats.format_jsonl(found) + export_formats.format_csv(found)
    declined = next(row for row in found if row["verb"] == "decline")
    assert (declined["actor"], declined["person"], declined["channel"]) == ("phone:9", "chat:ana", "phone")
    assert (declined["version"], declined["digest"]) == (2, enrolled.digest)
    assert declined["rule"] == "policy writes"
    assert "not hers" in str(declined["reason"])
    assert {row["grant_id"] for row in found if row["proposal_id"] == painted.id} == {1}
    assert "hunter2" not in exported
    assert "sk-0123" not in exported
    assert len(export_formats.format_csv(found).splitlines()) == len(found) + 1
    assert all(json.loads(line) for line in export_formats.format_jsonl(found).splitlines())


async def test_an_export_read_in_parts_has_every_row_once_in_the_order_of_numbers(
    nod: Nod, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked(nod)
    await granted(nod)
    await nod.asked(call("paint", lamp="door", color="red"))
    every = await nod.database.read(search.list_matching_rows, AuditFilter())
    monkeypatch.setattr(search, "PART_ROWS", 3)
    part = await nod.database.read(search.load_export_part, AuditFilter())
    rows, parts = part.rows, 1
    while part.done < part.total:
        await say(nod, f"/approvals ttl {parts}h for look")  # what comes while it runs is not in it
        part = await nod.database.read(search.load_export_part, AuditFilter(), part.done, part.total)
        rows, parts = rows + part.rows, parts + 1
        assert len(part.rows) <= 3
    assert rows == every
    assert parts == -(-len(every) // 3)
    head, write = export_formats.FORMATS["csv"]
    assert head + write(rows) == export_formats.format_csv(rows)


async def test_a_check_tells_how_far_it_is_and_ends_where_no_one_waits(
    nod: Nod, monkeypatch: pytest.MonkeyPatch
) -> None:
    await linked(nod)
    await granted(nod)
    monkeypatch.setattr(progress, "STEP_ROWS", 1)
    told: list[tuple[int, int]] = []
    await nod.database.read(verification.find_faults_in_session, (), lambda *far: told.append(far))
    [total] = {total for _, total in told}
    assert [done for done, _ in told] == list(range(total + 1))

    def leave(done: int, _: int) -> None:
        if done:
            raise progress.Abandoned

    with pytest.raises(progress.Abandoned):
        await nod.database.read(verification.find_faults_in_session, (), leave)


CHANGES = [
    ("UPDATE ledger SET actor = 'chat:eve' WHERE id = 1", "row 1 (rule policy for * in *) was altered"),
    ("UPDATE ledger SET before = '{}' WHERE id = 1", "row 1 (rule policy for * in *) was altered"),
    ("DELETE FROM ledger WHERE id = 1", "row 1 is missing before row 2"),
    ("DELETE FROM ledger WHERE id = (SELECT max(id) FROM ledger)", "missing before"),
    ("DELETE FROM ledger", "no one is recorded to have made it"),
    ("UPDATE rule SET value = '\"never\"'", "rule 1: it is not as it was recorded"),
    ("UPDATE rule SET ended_at = set_at", "rule 1: it is not as it was recorded"),
    ("DELETE FROM rule", "rule 1: it is gone"),
    (
        (
            "INSERT INTO rule (subject, scope, pattern, value, set_by, set_at) SELECT 'policy', '*', 'pay', "
            "'\"never\"', set_by, set_at FROM rule"
        ),
        "rule 2: it is there, but no one is recorded to have made it",
    ),
    ("UPDATE account SET person_id = 'chat:eve'", "account chat:ana: it is not as it was recorded"),
    ("UPDATE grant_given SET match = 'x', rung = 'exact'", "grant 1: it is not as it was recorded"),
    ("UPDATE grant_given SET expires_at = '2099-01-01 00:00:00'", "grant 1: it is not as it was recorded"),
    ("UPDATE grant_given SET uses = 0", "grant 1: it says 0 uses, but 1 proposals ran by it"),
    ("UPDATE book SET paused_at = '2026-03-02 09:00:00'", "pause 1: it is there"),
]


@pytest.mark.parametrize(("sql", "words"), CHANGES, ids=[sql[:50] for sql, _ in CHANGES])
async def test_what_was_altered_removed_or_slipped_in_is_named(nod: Nod, sql: str, words: str) -> None:
    await say(nod, "/approvals policy always")
    await linked(nod)
    await granted(nod)
    await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.idle()
    assert await nod.database.read(verification.find_faults_in_session) == []
    with nod.database.engine.begin() as connection:
        assert connection.execute(text(sql)).rowcount >= 1
    faults = await nod.database.read(verification.find_faults_in_session)
    assert any(words in fault for fault in faults), faults
    assert words in (await say(nod, "/approvals audit verify"))


async def test_a_refused_word_leaves_no_row(nod: Nod) -> None:
    await nod.command("/approvals policy never", by=EVE)
    await nod.command("/approvals policy sometimes", by=ADA)
    await nod.command("/nod link 0123456789", by=EVE)
    assert await rows(nod) == []


async def test_a_word_that_is_no_tool_finds_no_rules_for_all_tools(nod: Nod) -> None:
    await say(nod, "/approvals ttl 2h")
    assert await say(nod, "/approvals audit nothing-known") == "Nothing is recorded about that."
    assert "ttl for * in *" in await say(nod, "/approvals audit paint")


async def test_a_list_that_is_cut_says_so(nod: Nod) -> None:
    for hours in range(1, 24):
        await say(nod, f"/approvals ttl {hours}h")
    shown = (await say(nod, "/approvals audit")).splitlines()
    assert len(shown) == 21
    assert shown[-1] == "20 of 23 shown, the newest. `nod audit export` has all of them."


async def test_the_export_says_who_asked_for_what_and_where(nod: Nod) -> None:
    (enrolled,) = await nod.asked(call("enroll", name="Eve", code="hunter2"))
    edited = {"name": "Eva", "code": "hunter3"}
    await nod.press(Verb.EDIT, enrolled, arguments=edited)
    await nod.press(Verb.DECLINE, enrolled)
    first, second, third = await nod.database.read(search.list_matching_rows, AuditFilter())
    assert (first["requester"], first["requester_name"], first["place"]) == ("chat:ana", "Ana", str(ROOM))
    assert first["arguments"] == {"name": "Eve", "code": "••••••"}
    assert second["arguments"] == {"name": "Eva", "code": "••••••"}
    assert third["arguments"] is None
    assert "propose by nod for Ana in a private chat" in await say(nod, "/approvals audit enroll")


async def test_show_says_who_may_decide(nod: Nod) -> None:
    (painted,) = await nod.asked(call("paint", lamp="desk", color="red"))
    shown = await say(nod, f"/approvals show {painted.id[:8]}")
    assert "May decide: Ana" in shown


async def test_admins_are_told_of_a_link_and_of_its_end_once_each(nod: Nod) -> None:
    await linked(nod)
    await nod.tick()
    await nod.tick()
    ((where, text_),) = [post for post in nod.chat.texts if "linked" in post[1]]
    assert str(where) == str(ADA)
    assert text_.startswith("chat:ana linked chat:ana and phone:9. They are one person now: chat:ana.")
    assert "/approvals unlink phone:9" in text_
    assert await say(nod, "/approvals unlink phone:9") == "Unlinked: phone:9 is a separate person again."
    await nod.tick()
    assert [post[1] for post in nod.chat.texts if "unlinked" in post[1]] == [
        "chat:ada unlinked phone:9. It is a separate person again."
    ]
    assert await nod.database.read(verification.find_faults_in_session) == []
