"""The driver interface: the actions of a person in a channel. It is all that differs between channels.

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
    """A card as it stands before a person right now."""

    words: str
    verbs: tuple[Verb, ...]  # what it offers
    handle: Any  # the driver's own


class Driver(Protocol):
    """A conversation of Ana with Nod in one channel; Eve is a stranger who can see it.

    The fixture's settings make Ana an admin (NOD_ADMINS) and Ben, who sees it too, an approver
    (NOD_APPROVERS).
    """

    world: World
    ben: str
    """Ben's account, as an admin writes it."""

    async def say(self, text: str) -> None:
        """Ana writes."""

    def cards(self) -> Sequence[SeenCard]:
        """The cards in the conversation, oldest first, as they look now."""

    def texts(self) -> Sequence[str]:
        """Return Nod's texts in the conversation, cards apart, oldest first."""

    def files(self) -> Sequence[str]:
        """The texts of the files Ana can get in the conversation, oldest first."""

    def told(self, *, eve: bool = False) -> Sequence[str]:
        """Return Nod's private replies to Ana (or Eve) after a press."""

    async def press(self, card: SeenCard, verb: Verb, *, eve: bool = False) -> None:
        """Press what stands on the card now, all the way: where a press opens a window, submit it.

        Raises LookupError when the card does not offer it.
        """

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        """Press as it stood when ``card`` was looked at, whatever stands there now."""

    async def read_all(self, card: SeenCard) -> str:
        """Everything a person can reach from the card before deciding."""

    def refuse_cards(self) -> None:
        """From now on no card can ever be posted there."""

    def fail_redraws(self, times: int) -> None:
        """The next redraws fail, as when the platform is down for a moment."""

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        """Press a button of a card as Ben."""

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        """Ana presses "Approve similar", chooses, and confirms; gives all she could read before confirming.

        Raises LookupError when the card or the ladder does not offer it.
        """

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        """Ana presses a button that asks for words, writes them, and sends them."""

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        """Ana presses "Fill in" on a question, writes ``text`` into the field ``name``, and sends it."""

    def boards(self) -> Sequence[str]:
        """Return the texts of the message that shows the team."""

    async def command(self, line: str, *, eve: bool = False) -> str:
        """Ana (or Eve) sends a command such as ``/approvals pause``; gives what Nod answered.

        Raises AssertionError when others could read the answer too, where the channel has private answers.
        """


class PlacedDriver(Driver, Protocol):
    """A channel where Nod posts: a place may go away, and people have chats of their own."""

    closed: str
    """The address of a place where Nod can't post."""

    def lose_place(self) -> None:
        """Someone deletes the place of the conversation."""

    def delete_card(self, card: SeenCard) -> None:
        """Someone deletes the message of a card."""

    def privately(self, containing: str) -> Sequence[str]:
        """Return Nod's messages to Ana in her own chat with these words."""
