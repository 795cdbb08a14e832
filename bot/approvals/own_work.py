"""Work that this process makes and does itself, so that nothing of it has to be read or claimed again.

Memory only: whatever is not known here is looked up in the rows.
"""

from bot.domain.jobs import Job, Queue, Work
from bot.domain.people import Actor
from bot.domain.proposals import Proposal

_MOST = 50  # turns that are owned from the moment they are wanted: these need not wait for a place
_KEPT = 10_000


class OwnWork:
    """Turns that begin as soon as they are wanted, and proposals that run as soon as they are approved."""

    def __init__(self, process: str, turns_by_person: int) -> None:
        """``process``: the id of this one, where no other does its work; else empty."""
        self._process = process
        self._by_person = turns_by_person
        self._people: dict[str, str] = {}  # ids of Persons, by account
        self._turns: dict[str, str] = {}  # whose they are, by conversation id
        self._approved: dict[str, Proposal] = {}  # by id

    def learn(self, actor: Actor, person: str) -> None:
        """Who an account is, as the rows had it a moment ago."""
        if len(self._people) >= _KEPT:
            self._people.clear()
        self._people[str(actor)] = person

    def owner(self, actor: Actor) -> str:
        """The owner of a turn that is wanted for someone now: this process where it begins right away."""
        person = self._people.get(str(actor))
        busy = list(self._turns.values())
        free = len(busy) < _MOST and busy.count(person or "") < self._by_person
        return self._process if person and free else ""

    def begins(self, conversation_id: str, actor: Actor) -> None:
        """Its turn was stored with this process as the owner."""
        self._turns[conversation_id] = self._people[str(actor)]

    def queue(self, conversation_id: str) -> Queue | None:
        """Where a turn of this process's waits for its place; None: the rows know."""
        person = self._turns.get(conversation_id)
        return Queue(person, self._by_person) if person else None

    def turn_over(self, conversation_id: str) -> None:
        self._turns.pop(conversation_id, None)

    def approved(self, found: tuple[Proposal, ...], jobs: tuple[Job, ...]) -> None:
        """Keep what was just approved for when it is run; each move of it is guarded by its version."""
        if not self._process:
            return
        if len(self._approved) >= _KEPT:
            self._approved.clear()
        runs = {job.key for job in jobs if job.work is Work.EXECUTE}
        self._approved |= {p.id: p for p in found if p.id in runs}

    def take_approved(self, proposal_id: str) -> Proposal | None:
        return self._approved.pop(proposal_id, None)
