"""The interface of drivers. A driver does what people do in one channel, and returns what they see there.

The tests of all channels are the same, apart from their drivers. To test a channel, write a `Driver` over a
fake of its platform, and a class that inherits `contract.Contract`, with a fixture ``driver``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.testing.world import World


@dataclass
class SeenCard:
    """A card as a person sees it now."""

    words: str  # all of its text
    verbs: tuple[Verb, ...]  # the buttons that it offers
    handle: Any  # the driver's own value by which it finds the card again


class Driver(Protocol):
    """A conversation of Ana with Nod in one channel, which Ben and Eve can see.

    The fixture's settings make Ana an admin (NOD_ADMINS) and Ben an approver (NOD_APPROVERS). Eve is a
    stranger. ``eve``: act as Eve instead of Ana. All lists are in order, with the oldest first.
    """

    world: World
    """The Nod on which the channel runs."""
    ben: str
    """Ben's account, as an admin writes it."""

    async def say(self, text: str) -> None:
        """Write a message as Ana."""

    def cards(self) -> Sequence[SeenCard]:
        """Return the cards in the conversation as they look now."""

    def texts(self) -> Sequence[str]:
        """Return Nod's texts in the conversation, without its cards."""

    def files(self) -> Sequence[str]:
        """Return the texts of the files that Ana can download in the conversation."""

    def told(self, *, eve: bool = False) -> Sequence[str]:
        """Return Nod's private replies to presses of Ana, or of Eve."""

    async def press(self, card: SeenCard, verb: Verb, *, eve: bool = False) -> None:
        """Press a button of the card as it is now, as Ana or as Eve. If a window opens, submit it.

        Raises LookupError if the card does not offer the button.
        """

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        """Press a button that ``card`` offered when it was returned, even if the button is gone by now."""

    async def read_all(self, card: SeenCard) -> str:
        """Return everything that a person can read from the card before deciding."""

    def refuse_cards(self) -> None:
        """Make the place of the conversation refuse all cards from now on."""

    def fail_redraws(self, times: int) -> None:
        """Make the next redraws of cards fail, as when the platform is down for a moment."""

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        """Press a button of a card as Ben."""

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        """Press "Approve similar" as Ana, choose a scope and a duration, and confirm.

        ``rung`` is the scope, ``lasting`` the duration. Returns what she could read before confirming. Raises
        LookupError if the card does not offer the choice.
        """

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        """Press a button that asks for a text, as Ana, and send ``words``."""

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        """Press "Fill in" on a question as Ana, write ``text`` into the field ``name``, and send it."""

    def boards(self) -> Sequence[str]:
        """Return the texts of the messages that show the team."""

    async def command(self, line: str, *, eve: bool = False) -> str:
        """Send a command such as ``/approvals pause`` as Ana, or as Eve. Return Nod's answer.

        Raises AssertionError if the channel has private answers, and others could read this one.
        """


class PlacedDriver(Driver, Protocol):
    """The driver of a channel with several places (chats, groups), which may go away, and private chats."""

    closed: str
    """The address of a place where Nod can't post."""

    def lose_place(self) -> None:
        """Delete the place of the conversation."""

    def delete_card(self, card: SeenCard) -> None:
        """Delete the message of a card."""

    def privately(self, containing: str) -> Sequence[str]:
        """Return Nod's messages to Ana in her private chat that contain these words."""
