"""What Nod remembers."""

from bot.domain.memory import About
from bot.web.schemas import DoneBody, Time, View


class FactView(View):
    """A fact: ``whose`` says by name for whom it is, ``asked_by`` is the account that had it remembered.

    ``oldest``: there is little room, and this one was said longest ago: forget it first.
    """

    id: int
    fact: str
    about: About
    whose: str
    asked_by: str
    asked_name: str
    said_at: Time
    until: Time | None
    may_change: bool
    oldest: bool


class Facts(DoneBody):
    facts: list[FactView]
