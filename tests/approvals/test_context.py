"""What led to a card: who may decide it reads the turn it came from, and nothing else that was said."""

import pytest

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.domain.audit import AuditFilter
from bot.domain.chat import Address, Answer
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import conversations
from bot.store.audit import search, verification
from tests.approvals.test_decisions import TEAM, red
from tests.kit import ADA, ANA, BEN, EVE, Hold, MakeNod, Nod, call, says


@pytest.fixture
async def nod(make_nod: MakeNod) -> Nod:
    """In her private chat Ana spoke of something else before."""
    nod = make_nod(policy=TEAM)
    nod.model.will(says("I keep that to myself."))
    await nod.say("I will quit in May, tell no one.")
    await nod.idle()
    return nod


async def asked(nod: Nod, *texts: str) -> Proposal:
    """Ana asks in so many messages; the agent looks first and then smashes: others decide that."""
    hold = Hold()
    nod.model.will(says("I look.", call("look", lamp="desk"), hold=hold))
    nod.model.will(says("It is white, so I smash it.", call("smash", lamp="desk")))
    await nod.say(texts[0])
    for text in texts[1:]:
        await hold.reached.wait()
        await nod.say(text)
    hold.go.set()
    await nod.idle()
    return (await nod.proposals())[-1]


async def told(nod: Nod, p: Proposal, by: object = ADA) -> str:
    return (await nod.command(f"/approvals context {p.id[:8]}", by=by)).text  # type: ignore[arg-type]


async def test_who_may_decide_reads_the_order_what_was_read_and_what_was_said_and_no_more(nod: Nod) -> None:
    p = await asked(nod, "smash the desk lamp if it is white")
    nod.model.will(says("Not yet."))
    await nod.say("did they decide? I hate waiting for Ada")
    await nod.idle()
    assert await told(nod, p) == (
        "Ana: smash the desk lamp if it is white\n\n"
        "The agent: I look.\n\n"
        "Read: Look: lamp = desk\n    white\n\n"
        "The agent: It is white, so I smash it."
    )


async def test_what_joined_the_turn_is_part_of_it_and_what_came_after_the_call_is_not(nod: Nod) -> None:
    p = await asked(nod, "smash the desk lamp", "but only if it is white")
    text = await told(nod, p)
    assert "Ana: smash the desk lamp\n" in text
    assert "Ana: but only if it is white\n" in text
    assert "May" not in text


async def test_a_turn_that_continues_after_an_approval_is_read_from_its_order(nod: Nod) -> None:
    nod.model.will(says("First red.", red()))
    nod.model.will(says("Now I smash it.", call("smash", lamp="desk")))
    await nod.say("paint it red, then smash it")
    await nod.idle()
    await nod.approve((await nod.proposals())[-1])
    text = await told(nod, (await nod.proposals())[-1])
    assert text.startswith("Ana: paint it red, then smash it\n\nThe agent: First red.")
    assert text.endswith("The agent: Now I smash it.")


async def test_what_was_written_during_a_turn_that_a_decision_began_is_not_read(nod: Nod) -> None:
    [p] = await nod.asked(red(), text="paint it red, then smash it")
    nod.model.will(says("It waits for you."))
    await nod.say("Well?")
    await nod.idle()
    hold = Hold()
    nod.model.will(says("It is red, so I smash it.", call("smash", lamp="desk"), hold=hold))
    await nod.press(Verb.APPROVE, p)
    await hold.reached.wait()
    await nod.say("I hate waiting for Ada")
    hold.go.set()
    await nod.idle()
    text = await told(nod, (await nod.proposals())[-1])
    assert "hate" not in text
    assert text.startswith("Ana: Well?\n\nNod to the agent: ")
    assert text.endswith("The agent: It is red, so I smash it.")


async def test_who_may_not_decide_it_reads_nothing(nod: Nod) -> None:
    p = await asked(nod, "smash the desk lamp")
    assert "There is no proposal" in await told(nod, p, EVE)
    assert await nod.lookup.context(p.id, EVE) is None
    [mine] = await nod.asked(red("door"))  # Ben may see it by his role, and Ana alone or an admin decides it
    assert await told(nod, mine, BEN) == CONTEXT_NOT_YOURS_TEXT


async def test_that_someone_read_it_is_recorded_once_for_each_reader(nod: Nod) -> None:
    p = await asked(nod, "smash the desk lamp")
    for reader in (ADA, ADA, BEN, ANA):
        await told(nod, p, reader)
    rows = await nod.database.read(search.list_matching_rows, AuditFilter(proposal=p.id))
    assert [(r["verb"], r["actor"]) for r in rows if r["thing"] == "context"] == [
        ("read", str(ADA)),
        ("read", str(BEN)),
    ]
    log = (await nod.command(f"/approvals audit {p.id[:8]}", by=ADA)).text
    assert f"`{p.id[:8]}`: what led to it was read by Ada" in log
    assert await nod.database.read(verification.find_faults_in_session) == []


async def test_what_the_card_hides_is_hidden_in_what_led_to_it(nod: Nod) -> None:
    nod.model.will(says("Enrolling with s3cret-code-77.", call("enroll", name="Ann", code="s3cret-code-77")))
    await nod.say("enroll Ann with s3cret-code-77")
    await nod.idle()
    text = await told(nod, (await nod.proposals())[-1])
    assert "enroll Ann" in text
    assert "s3cret" not in text


async def test_what_was_deleted_is_no_longer_read_and_nothing_led_to_what_no_agent_asked_for(
    nod: Nod,
) -> None:
    p = await asked(nod, "smash the desk lamp")
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    await nod.database.write(conversations.forget_conversations, [p.conversation_id], nod.clock())
    assert await told(nod, p) == "What led to it is no longer kept."


async def test_a_long_turn_is_bounded_and_keeps_its_order(nod: Nod) -> None:
    nod.world.lamps["desk"] = "white " * 5000
    for _ in range(6):
        nod.model.will(says("x" * 9000, *(call("look", lamp="desk") for _ in range(10))))
    nod.model.will(says("Now.", call("smash", lamp="desk")))
    await nod.say("the order")
    await nod.idle()
    p = (await nod.proposals())[-1]
    text = await nod.lookup.context(p.id, ADA)
    assert text is not None
    assert text.startswith("Ana: the order")
    assert text.endswith("The agent: Now.")
    assert len(text) < 8_010


async def test_anyone_in_the_chat_it_was_sent_to_reads_it_there_alone(make_nod: MakeNod) -> None:
    nod = make_nod(policy=TEAM)
    await nod.command("/approvals approvers member for paint", by=ADA)
    room = Address("chat", "hall")
    [p] = await nod.asked(red(), at=room, private=False)
    assert await nod.lookup.context(p.id, EVE) is None
    here = await nod.lookup.context(p.id, EVE, room)
    assert here is not None
    assert here.startswith("Ana: please")
    reply = await nod.command("/approvals context zzzz", by=EVE)
    assert reply.answer is Answer.INVALID
