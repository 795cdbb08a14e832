"""The driver interface: what people do and see in a channel. It is all that differs between channels.

To add a channel, write a `Driver` over its fake and a class that inherits ``scenarios.Contract``, with a
``driver`` fixture.
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
    verbs: tuple[Verb, ...]  # that it offers
    handle: Any  # by which the driver finds the card again


class Driver(Protocol):
    """A conversation of Ana with Nod in one channel, which Ben and Eve can see.

    The fixture's settings make Ana an admin (NOD_ADMINS) and Ben an approver (NOD_APPROVERS). Eve is a
    stranger. Lists are oldest first.
    """

    world: World
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
        """Press a button of the card as it is now, as Ana or as Eve. If that opens a window, submit it.

        Raises LookupError if the card does not offer it.
        """

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        """Press a button of the card as it was when ``card`` was returned, even if it has gone since."""

    async def read_all(self, card: SeenCard) -> str:
        """Return everything that a person can read from the card before deciding."""

    def refuse_cards(self) -> None:
        """Make the place refuse all cards from now on."""

    def fail_redraws(self, times: int) -> None:
        """Make the next redraws of cards fail, as when the platform is down for a moment."""

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        """Press a button of a card as Ben."""

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        """Press "Approve similar" as Ana, choose, and confirm. Return what she could read before confirming.

        Raises LookupError if the card does not offer that.
        """

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        """Press a button that asks for words as Ana, and send them."""

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        """Press "Fill in" on a question as Ana, write ``text`` into the field ``name``, and send it."""

    def boards(self) -> Sequence[str]:
        """Return the texts of the messages that show the team."""

    async def command(self, line: str, *, eve: bool = False) -> str:
        """Send a command such as ``/approvals pause`` as Ana, or as Eve. Return Nod's answer.

        Raises AssertionError if the channel has private answers, and others could read this one.
        """


class PlacedDriver(Driver, Protocol):
    """A channel where Nod posts, where a place may go away, and where people have chats of their own."""

    closed: str
    """The address of a place where Nod can't post."""

    def lose_place(self) -> None:
        """Delete the place of the conversation."""

    def delete_card(self, card: SeenCard) -> None:
        """Delete the message of a card."""

    def privately(self, containing: str) -> Sequence[str]:
        """Return Nod's messages to Ana in her own chat with these words."""
