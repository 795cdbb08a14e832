"""An export alone is enough to verify who approved what, and that this is what ran."""

import ast
import asyncio
import json
import random
import sys
from pathlib import Path
from runpy import run_path

import pytest

from bot.domain.audit import AuditFilter
from bot.domain.policy import Policy
from bot.domain.redaction import HIDDEN
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.store.audit import admin_changes, chain, export_formats, search
from bot.store.database import Database
from bot.tools.toolset import FixedToolset
from tests.approvals.test_trials import ledger_tools
from tests.approvals.test_undo import dial_tools
from tests.kit import ADA, BEN, FakeClock, MakeNod, Nod, call, says
from tests.kit.tables import make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples"
VERIFIER = EXAMPLES / "verify_export.py"
SHORT = EXAMPLES / "who_approved.py"
SHORT_LINES = 30
CHANGES = 300


async def export(nod: Nod) -> str:
    return export_formats.format_jsonl(await nod.database.read(search.list_matching_rows, AuditFilter()))


async def verify(
    exported: str, *anchors: str, script: Path = VERIFIER, **environment: str
) -> tuple[int | None, list[str]]:
    """Its exit code and lines; neither Nod nor any other package can be imported there."""
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(script), *anchors),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await running.communicate(exported.encode())
    return running.returncode, out.decode().splitlines()


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    """One approval of each kind."""
    nod = make_nod(admins=[ADA], team=True, policy=Policy(approvers=frozenset({str(BEN)})))
    more = (*dial_tools({"level": "1"}), *ledger_tools({"total": 10}))
    nod.toolset = FixedToolset("all", (*nod.toolset.fixed, *more))
    await nod.restart()
    await nod.say("hello", private=False)
    await nod.idle()
    (plain,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(plain)
    (edited,) = await nod.asked(call("paint", lamp="desk", color="blue"))
    await nod.press(Verb.EDIT, edited, arguments={"lamp": "desk", "color": "green", "coats": 3})
    await nod.approve(await nod.now(edited))
    rows = await nod.asked(*(call("paint", lamp=lamp, color="black") for lamp in nod.world.lamps))
    await nod.press(Verb.APPROVE_ALL, rows[0])
    await nod.idle()
    (alike,) = await nod.asked(call("paint", lamp="door", color="blue"))
    await nod.press(Verb.SIMILAR, alike, rung=GrantScope.KEY, lasting=GrantDuration.DAY)
    await nod.idle()
    await nod.asked(call("paint", lamp="door", color="white"))
    (question,) = await nod.asked(call("ask_person", question="Which one?", choices=["this", "that"]))
    nod.model.will(says("That one."))
    await nod.press(Verb.SECOND, question)
    await nod.idle()
    steps = [{"description": "Pay", "calls": [{"tool": "pay", "arguments": {"amount": 3}}]}]
    (plan,) = await nod.asked(call("plan_submit", summary="Pay a bill", steps=steps))
    nod.model.will(says("I pay.", call("pay", amount=3)), says("Paid."))
    await nod.approve(plan)
    (failed,) = await nod.asked(call("pay", amount=4))
    nod.world.broken = ToolError("The till is closed.")
    await nod.approve(failed)
    nod.world.broken = None
    await nod.press(Verb.RETRY, failed, by=BEN)
    await nod.idle()
    (tried,) = await nod.asked(call("book", amount=5))
    await nod.approve(tried)
    (dialled,) = await nod.asked(call("dial", level="2"))
    await nod.approve(dialled)
    await nod.press(Verb.UNDO, dialled)
    await nod.idle()
    await nod.command("/approvals quorum 2 for pay", by=ADA)
    (two,) = await nod.asked(call("pay", amount=5))
    await nod.press(Verb.APPROVE, two)
    await nod.approve(two, by=BEN)
    await nod.command("/approvals policy never for pay", by=ADA)
    await nod.command("/approvals quorum 1 for pay", by=ADA)
    await nod.asked(call("pay", amount=6))
    (secret,) = await nod.asked(call("enroll", name="Kim", code="hunter2-hunter2"))
    await nod.approve(secret)
    return nod


RAN = [
    "Paint lamp desk red: chat:ana",
    "Paint lamp desk green: chat:ana",
    "Paint lamp desk black: chat:ana",
    "Paint lamp door black: chat:ana",
    "Paint lamp roof black: chat:ana",
    "Paint lamp door blue: chat:ana",
    "Paint lamp door white: chat:ana (G-1)",
    "Which one?: chat:ana",
    "Plan: Pay a bill: chat:ana",
    "Pay: amount = 3: chat:ana (G-2)",
    "Pay: amount = 4: chat:ana",
    "Pay: amount = 4: chat:ben",
    "Book 5: chat:ana",
    "Set the dial to 2: chat:ana",
    "Set the dial to 1: chat:ana",
    "Pay: amount = 5: chat:ana, chat:ben",
    "Pay: amount = 6: rule 2: policy never for pay (warning: nothing here asks before it changes things)",
    f"Enroll: name = Kim, code = {HIDDEN}: chat:ana",
]


async def test_an_approval_of_each_kind_is_verified_from_the_export_alone(nod: Nod) -> None:
    exported = await export(nod)
    anchor = await nod.database.read(chain.make_anchor)
    assert anchor is not None
    assert await verify(exported, anchor) == (0, [*RAN, "Nothing is missing or altered."])

    first = json.loads(exported.splitlines()[0])
    assert first["arguments"] == {"lamp": "desk", "color": "red", "coats": 1}
    assert first["about"]["tool"] == [first["tool_name"], first["tool_version"]]
    assert nod.world.runs[0].arguments == first["arguments"]

    code, lines = await verify("".join(exported.splitlines(keepends=True)[:-1]), anchor)
    assert (code, lines[-1].partition(": ")[2]) == (1, "what the anchor says is not there")


APPROVED_BY = [
    *["chat:ana"] * 6,
    *("nod", "chat:ana", "chat:ana", "nod", "chat:ana", "chat:ben"),
    *["chat:ana"] * 3,
    *("chat:ben", "nod", "chat:ana"),
]


async def test_thirty_lines_verify_an_approval_of_each_kind(nod: Nod) -> None:
    code = ast.unparse(ast.parse(SHORT.read_text(encoding="utf-8")).body[1:])  # without its words
    assert len(code.splitlines()) <= SHORT_LINES

    exported = await export(nod)
    told, lines = await verify(exported, script=SHORT)
    assert (told, lines[-1]) == (0, "Each row, each call and each approval is as it was written.")
    for line, ran, actor in zip(lines[:-1], RAN, APPROVED_BY, strict=True):
        summary, by, _ = line.partition(f": {actor}, ")
        assert by
        assert ran.startswith(f"{summary}: ")

    rows = [json.loads(line) for line in exported.splitlines()]
    first = next(row for row in rows if row["about"])
    first["about"]["arguments"]["color"] = "white"
    changed = "\n".join(map(json.dumps, rows))
    assert await verify(changed, script=SHORT) == (1, [f"Row {first['id']} was altered."])
    lacking = "\n".join(line for line in exported.splitlines() if json.loads(line)["id"] != 2)
    assert await verify(lacking, script=SHORT) == (1, ["After row 1 one is missing."])
    other = next(row for row in rows if row["state"] == "approved")
    changed = exported.replace(json.dumps(other["digest"]), json.dumps(first["hash"]))
    assert (await verify(changed, script=SHORT))[0] == 1


async def test_a_changed_byte_of_an_export_is_noticed_and_so_is_a_row_that_is_gone(nod: Nod) -> None:
    exported = await export(nod)
    check = run_path(str(VERIFIER))["verify"]
    drawn = random.Random(55)
    places = [at for at, letter in enumerate(exported) if letter.isalnum()]
    for at in drawn.sample(places, CHANGES):
        other = "x" if exported[at] != "x" else "y"
        if exported[at].isdecimal():
            other = str((int(exported[at]) + 1) % 10)
        changed = f"{exported[:at]}{other}{exported[at + 1 :]}"
        try:
            _, faults = check([json.loads(line) for line in changed.splitlines()])
        except (ValueError, LookupError):  # no JSON, or a column is gone
            continue
        assert faults, changed[at - 200 : at + 20]
    lines = exported.splitlines()
    for at in range(len(lines) - 1):
        _, faults = check([json.loads(line) for line in (*lines[:at], *lines[at + 1 :])])
        assert faults


async def test_a_row_whose_reason_has_a_secret_is_named_and_the_next_row_follows_it(
    make_nod: MakeNod,
) -> None:
    nod = make_nod()
    (p,) = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.press(Verb.DECLINE, p, reason="Not with sk-abcdefghijklmnop1234.")
    await nod.idle()
    exported = await export(nod)
    row = json.loads(exported.splitlines()[-1])
    assert (row["reason"], row["hidden"]) == (f"Not with {HIDDEN}.", ["reason"])
    hides = f"row {row['id']} hides a secret: its hash can't be computed"
    assert await verify(exported) == (0, [hides, "Nothing is missing or altered."])


async def test_a_sealed_export_is_verified_with_its_keys_and_with_no_other(
    database_of: Urls, clock: FakeClock
) -> None:
    make_tables(url := database_of("sealed"))
    old, both = Database(url, (b"the old secret",)), Database(url, (b"the new secret", b"the old secret"))
    try:
        old.write_now(admin_changes.begin_to_seal, ADA, clock())
        both.write_now(admin_changes.seal_with_key, clock())
        exported = export_formats.format_jsonl(both.read_now(search.list_matching_rows, AuditFilter()))
    finally:
        old.close()
        both.close()
    assert (await verify(exported, NOD_AUDIT_KEY="the new secret, the old secret"))[0] == 0
    for keys in ("the new secret", "the old secret", "the old secret, the new secret", "another", ""):
        assert (await verify(exported, NOD_AUDIT_KEY=keys))[0] == 1
