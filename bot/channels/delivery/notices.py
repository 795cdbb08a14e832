"""Delivery of notices: Nod's own messages to admins and approvers, and about waiting cards.

Answers to questions about a proposal are told here, too, below the card on which they were asked. `Pauses`
says when what a platform refused for a moment is tried again.
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from sqlmodel import Session

from bot.channels.base import Channel, Poster, poster_at
from bot.channels.delivery import audience
from bot.domain.chat import Address, Clock
from bot.domain.conversations import AskedQuestion
from bot.domain.outcomes import bound_text
from bot.domain.people import Actor, place_called
from bot.domain.proposals import Proposal, State
from bot.domain.text import as_written
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import conversations, notices, people, posted_cards, proposals, questions
from bot.store.database import Database
from bot.store.notices import NoticeRow
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

_AT_A_TIME = 50
_LONGEST = 3000  # characters; a platform's message holds that many, with who asked what
AFTER = tuple(timedelta(seconds=s) for s in (1, 2, 5, 15, 30, 60))
"""After each refusal in a row; then always the last."""
GIVE_UP = timedelta(hours=12)
"""The time for which a platform that can't be reached is tried again."""
_MANY = 1000


@dataclass(frozen=True, slots=True)
class Notices:
    """Outbox of notices: rows first, then posts, so that a platform's bad moment loses nothing.

    What a place refuses for good is posted where the notice says instead; otherwise the person who asked for
    what it is about is told, and the admins.
    """

    channels: Mapping[str, Channel]
    database: Database
    policies: Policies
    clock: Clock
    routes: Sequence[Address] = ()

    async def say(self, address: Address, text: str, instead: Address | None = None) -> None:
        """Have a text posted; ``instead``: where else, if that place refuses it for good."""
        await self.database.write(notices.store_notice, address, text, self.clock(), None, instead)

    async def answer_privately(self, person: Actor, refused: Address, why: str, text: str) -> None:
        """Have what a place refused for good posted in the own chat of the person whom it answers.

        The notice is a message of its own: it arrives also where the answer is refused for its contents.
        """
        own, around = Address(person.channel, person.key), self.find_place_around(refused)
        texts = (f"I can't answer where you asked. {why.rstrip('.')}.", text)
        if own != refused:
            await self.database.write(self._keep_all, own, around, texts)
        elif around is not None:
            await self.database.write(self._keep_all, around, None, texts)

    def _keep_all(
        self, session: Session, address: Address, instead: Address | None, texts: Sequence[str]
    ) -> None:
        for text in texts:
            notices.store_notice(session, address, text, self.clock(), None, instead)

    def find_place_around(self, address: Address) -> Address | None:
        """Return the place around an address, as its channel's `Poster.find_place_around` gives it."""
        poster = poster_at(self.channels, address)
        if poster:
            return poster.find_place_around(address)
        return None

    def for_approvers(self, session: Session, text: str) -> None:
        """Queue a text for the approvers' chats that the settings name, within the caller's transaction."""
        for address in self.routes:
            notices.store_notice(session, address, text, self.clock())

    def for_admins(self, session: Session, text: str) -> None:
        """Queue a text for each admin, within the caller's transaction."""
        for admin in audience.find_admins(self.policies.load(session)):
            notices.store_notice(session, admin, text, self.clock())

    def nudge(self, session: Session, proposal: Proposal, text: str) -> None:
        """Have a line said once in each place of a proposal's card, as part of a transaction.

        Places that hooks leave out are told nothing.
        """
        for address in audience.find_audience(session, self.policies, proposal).places:
            notices.store_notice(session, address, as_written(text), self.clock(), proposal.card_id)

    def tell_unreached(self, session: Session, proposal: Proposal, address: Address, why: str) -> None:
        """Tell the requester and the admins that a card can't be posted, within the caller's transaction."""
        place = place_called(str(address), people.find_known_names(session, [str(address)]))
        text = as_written(f"The card can't be shown in {place}: {proposal.description}. {why}")
        text += "\nAn admin can decide it in the console."
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        asker = audience.find_asker(proposal)
        origin = conversation.origin if conversation else asker
        admins = audience.find_admins(self.policies.load(session))
        for each in sorted({origin if origin != address else asker, *admins} - {address}, key=str):
            notices.store_notice(session, each, text, self.clock(), None, asker if each == origin else None)

    async def send(self, now: datetime, post_card: Callable[[str, Address], Awaitable[None]]) -> None:
        """Post what is due. ``post_card`` posts a proposal's card in one more place; raises ChannelError."""
        for notice in await self.database.read(notices.list_due, now, _AT_A_TIME):
            poster = poster_at(self.channels, notice.address)
            late = now - notice.created_at >= GIVE_UP
            if poster is None and notice.address.channel not in self.channels and not late:
                continue  # a process that has this channel posts it
            if not await self.database.write(notices.claim, notice, now + backoff(notice.tries)):
                continue
            try:
                if poster is not None:
                    await self._post(poster, notice, post_card)
            except ChannelError as error:
                if not isinstance(error, NotDeliverable) and not late:
                    log.warning("notice not delivered yet", address=str(notice.address), why=error.message)
                    continue
                log.error("notice not delivered", address=str(notice.address), why=error.message)
                await self.database.write(self._handle_refusal, notice, error.message)
            else:
                await self.database.write(notices.over, notice)

    async def _post(
        self, poster: Poster, notice: NoticeRow, post_card: Callable[[str, Address], Awaitable[None]]
    ) -> None:
        ident, address = notice.proposal_id, notice.address
        if ident is None:
            await poster.post(address, notice.text)
            return
        ref, people = await self.database.read(_card_at, self.policies, ident, address)
        if people is None:
            return  # it was decided since
        if notice.text and ref:
            try:
                await poster.remind(address, ref, notice.text, people)
            except CopyGone:  # another card reminds, and has the buttons
                await self.database.write(posted_cards.mark_lost, address.channel, ref)
            else:
                return
        await post_card(ident, address)

    async def tell_answers(self, answers: Sequence[AskedQuestion]) -> bool:
        """Post answers where people asked; False when one may arrive yet. Conversations have them already."""
        arrived = True
        for each in answers:
            if await self._tell_answer(each):
                await self.database.write(questions.settle_question, each, self.clock())
            else:
                arrived = False
        return arrived

    async def _tell_answer(self, question: AskedQuestion) -> bool:
        """Return whether there is nothing more to try."""
        address = question.address
        poster = poster_at(self.channels, address) if address else None
        if address is None or poster is None:
            return True
        asked, answer = as_written(question.text), bound_text(question.answer, _LONGEST)
        asker = Actor.parse(question.asker, question.name)
        words = f"“{asked}”\n\n{answer}"
        try:
            if question.ref:
                await poster.remind(address, question.ref, words, [asker])
            else:
                await poster.post(address, f"> {asked}\n\n{answer}")
        except (CopyGone, NotDeliverable) as error:
            log.warning("answer not delivered", address=str(address), why=error.message)
            await self.answer_privately(asker, address, error.message, words)
        except ChannelError as error:
            log.warning("answer not delivered yet", address=str(address), why=error.message)
            return self.clock() - datetime.fromisoformat(question.asked_at) >= GIVE_UP
        return True

    def _handle_refusal(self, session: Session, notice: NoticeRow, why: str) -> None:
        """Post it where it is to be posted instead, or tell those who must know."""
        notices.over(session, notice)
        if notice.proposal_id:
            proposal = proposals.get(session, notice.proposal_id)
        else:
            proposal = None
        around = self.find_place_around(notice.address)
        if notice.instead:
            instead = Address.parse(notice.instead)
            notices.store_notice(session, instead, notice.text, self.clock(), notice.proposal_id, around)
        elif around is not None and proposal is None:
            notices.store_notice(session, around, notice.text, self.clock())
        elif proposal is not None:
            self.tell_unreached(session, proposal, notice.address, why)
        elif notice.address not in audience.find_admins(self.policies.load(session)):
            self.for_admins(session, f"I can't post in {notice.address}. {why}")


def _card_at(
    session: Session, policies: Policies, ident: str, address: Address
) -> tuple[str, list[Actor] | None]:
    """Return the newest card of an open proposal there, if any, and who is named; None: it is not open."""
    found = proposals.get(session, ident)
    if found is None:
        return "", None
    shown = proposals.of_batch(session, found.batch) if found.batch else [found]
    proposal = next((each for each in shown if each.state is State.PROPOSED), None)
    if proposal is None:
        return "", None
    there = [c.ref for c in posted_cards.of_proposal(session, ident) if c.address == address and not c.gone]
    named = audience.find_audience(session, policies, proposal).people
    return (there or [""])[-1], list(named)


Key = TypeVar("Key", bound=Hashable)


def backoff(times: int) -> timedelta:
    """Return the back-off after so many refusals before this one."""
    return AFTER[min(times, len(AFTER) - 1)]


class Pauses(Generic[Key]):
    """Back-off after refusals, by key; in memory only, so a restart tries everything again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._planned: dict[Key, tuple[int, datetime]] = {}  # how often refused, and when the next try is

    def note_refusal(self, key: Key) -> None:
        """Plan the next try after a refusal, unless one is planned already."""
        if not self.holds(key):
            if len(self._planned) > _MANY:
                self._planned = {each: plan for each, plan in self._planned.items() if self.holds(each)}
            times, _ = self._planned.get(key, (0, None))
            self._planned[key] = times + 1, self._clock() + backoff(times)

    def holds(self, key: Key) -> bool:
        """Return whether its time is still to come; no longer than a pause, however the clock was set."""
        planned = self._planned.get(key)
        return planned is not None and timedelta() < planned[1] - self._clock() <= AFTER[-1]

    def list_held(self) -> list[Key]:
        """Return the keys that are still backing off."""
        return [key for key in self._planned if self.holds(key)]

    def due(self) -> list[Key]:
        """Return the keys whose back-off is over."""
        return [key for key in self._planned if not self.holds(key)]

    def over(self, key: Key) -> None:
        """Forget the back-off of a key after a success."""
        self._planned.pop(key, None)
