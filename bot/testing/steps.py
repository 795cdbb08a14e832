"""The steps of which the tests of a contract consist: what Ana does, and what she waits for.

``position`` counts the cards of the conversation from 0.
"""

from datetime import timedelta
from typing import Any

from bot.domain.chat import Answer, Press
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store import proposals
from bot.testing.driver import Driver, SeenCard
from bot.testing.world import Says, eventually


def note(text: str) -> tuple[str, dict[str, str]]:
    """Return a call of the tool `note` (`notebook.py`), for the scripted model."""
    return ("note", {"text": text})


async def cards(driver: Driver, count: int = 1) -> list[SeenCard]:
    """Wait until the conversation has at least ``count`` cards, and return all of them."""
    await eventually(lambda: len(driver.cards()) >= count, f"{count} cards")
    return list(driver.cards())


def waiting(driver: Driver) -> list[Proposal]:
    """Return the open proposals, newest first."""
    return driver.world.app.database.read_now(proposals.list_in_states, [State.PROPOSED])


async def proposed(driver: Driver, call: tuple[str, dict[str, Any]], *answers: str) -> SeenCard:
    """Have the model propose a call to Ana, and return the card.

    ``call``: the tool's name and the arguments. ``answers``: the model's next answers. The first of them
    follows the end of the call.
    """
    driver.world.script(Says("Should I?", (call,)), *map(Says, answers))
    await driver.say("please do it")
    (card,) = await cards(driver)
    return card


async def approved(driver: Driver, notes: list[str], position: int = 0) -> None:
    """Approve a card as Ana, wait for the end of its call, and check that the notes are now ``notes``."""
    await driver.press(driver.cards()[position], Verb.APPROVE)
    await becomes(driver, position, "Done. Approved by")
    assert driver.world.notes == notes


async def refused(driver: Driver, card: SeenCard, verb: Verb) -> None:
    """Press a button as Eve, and wait until she is told in private that she may not."""
    await driver.press(card, verb, eve=True)
    await eventually(lambda: driver.told(eve=True), "a refusal for Eve alone")


async def edited_elsewhere(driver: Driver, text: str) -> None:
    """Edit the open proposal as Ana, in another place than its conversation: the note becomes ``text``."""
    (proposal,) = waiting(driver)
    press = Press(proposal.requester, Verb.EDIT, proposal.id, proposal.round, arguments={"text": text})
    assert (await driver.world.app.core.assistant.handle(press)).answer is Answer.ACCEPTED


async def tried(driver: Driver) -> SeenCard:
    """Have a call proposed that Nod tries first in a closed copy, and return its card."""
    card = await proposed(driver, ("tidy", {"text": "bread"}), "Tidied.")
    assert "Tried in a closed copy" in card.words
    assert "tidied a copy" in card.words
    assert {Verb.APPROVE, Verb.FOR_REAL} <= set(card.verbs)
    return card


async def becomes(driver: Driver, position: int, words: str) -> SeenCard:
    """Wait until a card has these words, and return the card."""
    await eventually(lambda: words in driver.cards()[position].words, f"{words!r} on card {position}")
    return driver.cards()[position]


async def hears(driver: Driver, words: str) -> None:
    """Wait until Nod has written these words in the conversation."""
    await eventually(lambda: words in "\n".join(driver.texts()), f"{words!r} in the conversation")


async def approved_elsewhere(driver: Driver) -> None:
    """Approve the open proposal as Ana in another place than its conversation."""
    (proposal,) = waiting(driver)
    press = Press(proposal.requester, Verb.APPROVE, proposal.id, proposal.round)
    assert (await driver.world.app.core.assistant.handle(press)).answer is Answer.ACCEPTED


async def settles(driver: Driver) -> None:
    """Let three minutes pass, so that all posts are made, also those that were refused at first."""
    for _ in range(3):
        await driver.world.let_pass(timedelta(minutes=1))
        await driver.world.app.core.reminders.remind(driver.world.clock())
        await driver.world.app.dispatcher.wait_until_idle()
