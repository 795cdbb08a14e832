"""What an admin names is there: a list is taken or refused in words, a name that means nothing is refused."""

import pytest

from bot.domain.chat import Answer
from bot.domain.conditions import Condition
from bot.domain.conditions.parser import ConditionError
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset
from tests.kit import ADA, BEN, EVE, MakeNod, Nod, call


@tool
async def probe_put(name: str, amount: int = 1) -> str:
    """Put something."""
    return name


@tool
async def probe_mark(name: str) -> str:
    """Mark something."""
    return name


@tool(writes=False)
async def probe_list() -> str:
    """List something."""
    return "nothing"


@tool
async def probe_files(paths: list[str]) -> str:
    """Send files."""
    return str(paths)


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    nod = make_nod(admins=[ADA])
    nod.toolset = FixedToolset("lamps", (*nod.toolset.fixed, probe_put, probe_mark, probe_list, probe_files))
    nod.rebuild()
    for who in (BEN, EVE):
        await nod.say("hello", by=who)
    await nod.idle()
    nod.chat.standings["chat:gone"] = None
    nod.chat.standings["chat:ben."] = None
    return nod


async def refused(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.INVALID, reply.text
    return reply.text.partition("\n")[0]


async def rule(nod: Nod, words: str) -> str:
    reply = await nod.command(f"/approvals {words}", by=ADA)
    assert reply.answer is Answer.ACCEPTED, reply.text
    return reply.text


@pytest.mark.parametrize(
    "who",
    [
        "chat:ben,chat:eve",
        "chat:ben, chat:eve",
        "chat:ben;chat:eve",
        "chat:ben and chat:eve",
        "chat:ben chat:eve",
    ],
)
async def test_a_list_of_those_who_decide_is_a_list(nod: Nod, who: str) -> None:
    assert "approvers Ben Eve for paint" in await rule(nod, f"approvers {who} for paint")
    [asked] = await nod.asked(call("paint", lamp="desk", color="red"), private=False)
    assert asked.deciders.people == ("chat:ben", "chat:eve")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("roles add chat:ben,chat:eve approver", "Name one account at a time: chat:ben or chat:eve."),
        ("roles add chat:ben;chat:eve approver", "Name one account at a time"),
        ("roles add chat:ben chat:eve approver", "Add or remove one account at a time."),
        ("roles remove chat:ben,chat:eve approver", "Name one account at a time"),
        (
            "policy forbid for probe_put,probe_mark",
            "Set a rule for each: `for probe_put` and `for probe_mark`.",
        ),
        ("policy forbid for probe_put;probe_mark", "Set a rule for each"),
        ("policy forbid for probe_put, probe_mark", "After `for` comes one tool"),
        ("policy forbid for probe_put probe_mark", "After `for` comes one tool"),
        ("policy forbid for probe_put and probe_mark", "After `for` comes one tool"),
        ("policy forbid for probe_put|probe_mark", "Set a rule for each"),
        ("policy forbid for probe_put,", "After `for` comes one tool"),
        ("risk read for probe_put,probe_mark", "Set a rule for each"),
        ("route chat:one,chat:two", "Name one place at a time: chat:one or chat:two."),
        ("route chat:one;chat:two for paint", "Name one place at a time"),
        ("escalate 4h chat:one,chat:two", "Name one place at a time"),
        ("digest 09:00 chat:one,chat:two", "Name one place at a time"),
        ("policy always in chat:one,chat:two", "Name one place at a time"),
        ("policy always in chat:one chat:two", "After `in` comes one place"),
        ("quorum 2 for paint by chat:ben;chat:eve", "Name one account at a time"),
        ("quorum 2 for paint by chat:ben chat:eve", "After `by` comes one account"),
        ("budget 5 USD a day for chat:ben,chat:eve", "Name one"),
        ("sessions end chat:ben,chat:eve", "Name one account at a time"),
        ("link chat:ben,chat:eve chat:ana", "Name one account at a time"),
        ("unlink chat:ben,chat:eve", "Name one account at a time"),
        ("audit chat:ben,chat:eve", "Name one account at a time"),
        ("revoke G-1,G-2", "Which grant? Name one, such as G-7, or all."),
        ("drop 1,2", "Which rule? Give one number"),
        ("fetch a.example,b.example", "is not a host"),
        ("approvers ,", "Who may decide? Name at least one."),
    ],
)
async def test_where_one_belongs_a_list_is_refused_in_words(nod: Nod, words: str, told: str) -> None:
    assert told in await refused(nod, words)
    assert "rule" not in (await nod.command("/approvals rules", by=ADA)).text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("policy always for probe_mark.", "There is no tool called probe_mark. Did you mean probe_mark?"),
        (
            "policy forbid for probe_makr",
            "Did you mean probe_mark? For tools that come later, write probe_makr* after `for`.",
        ),
        ("approvers chat:gone", "There is no account chat:gone."),
        ("approvers chat:ben, chat:gone for paint", "There is no account chat:gone."),
        ("approvers chat:ben.", "There is no account chat:ben.. Did you mean `chat:ben`?"),
        ("roles add chat:gone approver", "There is no account chat:gone."),
        ("policy always by chat:gone", "There is no account chat:gone."),
    ],
)
async def test_what_can_match_nothing_is_refused_with_what_may_be_meant(
    nod: Nod, words: str, told: str
) -> None:
    assert told in await refused(nod, words)
    assert "rule" not in (await nod.command("/approvals rules", by=ADA)).text


async def test_who_cannot_be_asked_for_is_taken(nod: Nod) -> None:
    assert "approvers slack:T1/U7" in await rule(nod, "approvers slack:T1/U7 for paint")


async def test_people_are_named_in_a_list_for_one_proposal_too(nod: Nod) -> None:
    [asked] = await nod.asked(call("paint", lamp="desk", color="red"), private=False)
    assert (
        "neither an account nor a role" in (await nod.press(Verb.REASSIGN, asked, by=ADA, reason="ben")).text
    )
    assert "There is no account chat:gone" in await refused(nod, f"reassign {asked.id[:8]} chat:gone")
    reply = await nod.press(Verb.REASSIGN, asked, by=ADA, reason="chat:ben, chat:eve")
    assert reply.answer is Answer.ACCEPTED
    assert (await nod.now(asked)).deciders.people == ("chat:ben", "chat:eve")


async def test_a_condition_on_several_tools_is_about_those_that_have_the_field(nod: Nod) -> None:
    said = await rule(nod, "policy forbid for probe_* where amount > 100")
    assert "probe_files, probe_list, probe_mark have no amount. Each change there asks." in said.replace(
        "probe_mark, probe_list, probe_files", "probe_files, probe_list, probe_mark"
    )
    await rule(nod, "policy never")
    assert await nod.asked(call("probe_put", name="a", amount=200)) == []
    [small] = await nod.asked(call("probe_put", name="a", amount=2))
    assert (await nod.now(small)).state is State.SUCCEEDED
    [marked] = await nod.asked(call("probe_mark", name="a"))
    assert marked.state is State.PROPOSED
    assert await nod.asked(call("probe_list")) == []
    assert nod.model.results[-1] == "nothing"


async def test_other_rules_do_not_hold_for_tools_without_the_field(nod: Nod) -> None:
    assert "It does not apply there." in await rule(nod, "policy never for probe_* where amount < 100")
    [marked] = await nod.asked(call("probe_mark", name="a"))
    assert marked.state is State.PROPOSED
    assert "it has no amount" in await refused(nod, "policy always for probe_mark where amount > 1")
    assert "it has no amonut (did you mean amount?)" in await refused(
        nod, "policy always for probe_p* where amonut > 1"
    )


async def test_a_rule_about_a_path_finds_it_under_another_name(nod: Nod) -> None:
    await rule(nod, "policy always for probe_* where amount > 1")
    rules = Condition.parse("path = secrets.txt")
    assert (
        rules.holds({"paths": ["a.txt", "./secrets.txt"]}, probe_files.form_schema, of_several=True) is None
    )
    assert rules.holds({"paths": ["a.txt"]}, probe_files.form_schema, of_several=True) is False


USUAL = """is equals eq like contains has includes starts startswith begins ends endswith between over
above below under exceeds gt gte lt lte ne <> =~ ~ regex among within least most at more less greater
exists empty null isnt"""


@pytest.mark.parametrize("word", USUAL.split())
def test_a_usual_word_that_does_not_exist_is_answered_with_how_to_write_it(word: str) -> None:
    with pytest.raises(ConditionError, match=r"Write `amount ") as raised:
        Condition.parse(f"amount {word} 10")
    hint = str(raised.value).partition("Write `")[2].partition("`")[0]
    assert Condition.parse(hint).fields[0].name == "amount"


def test_between_says_how_to_write_it() -> None:
    with pytest.raises(ConditionError, match="Write `amount >= 10 and amount <= 20`"):
        Condition.parse("amount between 10 and 20")
