"""A question about an open proposal, and its answer. Pure."""

from dataclasses import dataclass

from bot.domain.chat import Address


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """``home`` is the conversation in which the agent answers; ``note`` the id of the line that told it.

    ``place`` and ``ref``: the card elsewhere below which the answer is awaited; without ``ref`` the asker's
    own chat, without both nowhere.
    """

    proposal_id: str
    home: str
    note: int
    asker: str
    name: str
    text: str
    asked_at: str  # ISO 8601
    place: str = ""
    ref: str = ""
    answer: str = ""

    @property
    def address(self) -> Address | None:
        return Address.parse(self.place) if self.place else None
