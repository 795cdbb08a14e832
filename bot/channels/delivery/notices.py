"""Delivery of notices: Nod's own messages to admins and approvers, and about waiting cards.

`Notices` is an outbox: a notice is a row, stored in the transaction of the event that it is about, and posted
later by `Notices.send`, which is called again and again. There are two sorts:

- a text, which may have a link or buttons of commands;
- a notice about a proposal: with a text it reminds of the proposal's card, without one it posts the card
  again.

People also ask questions about a proposal. `Notices.tell_answers` posts the answers below the card on which
people asked.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlmodel import Session

from bot.channels.base import Channel, Poster, poster_at
from bot.channels.delivery import audience
from bot.channels.delivery.card_places import find_requester_chat
from bot.channels.delivery.pauses import GIVE_UP, find_backoff
from bot.domain.chat import Address, Clock
from bot.domain.conversations import AskedQuestion
from bot.domain.outcomes import bound_text
from bot.domain.people import Actor, name_of_place
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.text import escape_markdown
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.store import conversations, notices, people, posted_cards, proposals, questions
from bot.store.database import Database
from bot.store.notices import NoticeRow
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

_NOTICES_AT_A_TIME = 50  # in one read
_MAX_ANSWER_CHARS = 3000  # every platform's message has room for such an answer and its question

PostCard = Callable[[str, Address], Awaitable[None]]
"""Posts a proposal's card in a further place; raises ChannelError."""


class _OpenCard(NamedTuple):
    """The card of an open proposal at an address."""

    ref: str  # the platform's reference to the newest posted copy there; empty without a copy
    named: list[Actor]  # the people whom a reminder mentions


@dataclass(frozen=True, slots=True)
class Notices:
    """The outbox of notices.

    If a place refuses a notice for good, the first that applies is done:

    1. The notice goes to the place in its field ``instead``.
    2. If it is about no proposal, it goes to the place around the refused one, such as the group around a
       topic.
    3. The admins are told. For a proposal, the chat where it was asked for or its requester is told, too (see
       `tell_unreached`).

    ``routes`` are the approvers' chats.
    """

    channels: Mapping[str, Channel]
    database: Database
    policies: Policies
    clock: Clock
    routes: Sequence[Address] = ()

    async def queue_text(self, address: Address, text: str, instead: Address | None = None) -> None:
        """Queue a text for a place, which goes to ``instead`` if that place refuses it for good."""
        await self.database.write(partial(notices.store_notice, instead=instead), address, text, self.clock())

    async def answer_privately(self, person: Actor, refused: Address, why: str, text: str) -> None:
        """Queue an answer for the private chat of the person who asked, after a place refused it for good.

        If that chat is the refused place, the answer goes to the place around it, if there is one. The
        explanation is a message of its own: it arrives even if the answer is refused for its contents.
        """
        private_chat = Address(person.channel, person.key)
        around = self.find_place_around(refused)
        explanation = f"I can't answer where you asked. {why.rstrip('.')}."
        texts = (explanation, text)
        if private_chat != refused:
            await self.database.write(self._store_all, private_chat, around, texts)
        elif around is not None:
            await self.database.write(self._store_all, around, None, texts)

    def _store_all(
        self, session: Session, address: Address, instead: Address | None, texts: Sequence[str]
    ) -> None:
        for text in texts:
            notices.store_notice(session, address, text, self.clock(), instead=instead)

    def find_place_around(self, address: Address) -> Address | None:
        """Return the place around an address, as in `Poster.find_place_around`."""
        poster = poster_at(self.channels, address)
        if poster is None:
            return None
        return poster.find_place_around(address)

    def queue_for_approvers(self, session: Session, text: str) -> None:
        """Queue a text for the approvers' chats, within the caller's transaction."""
        for address in self.routes:
            notices.store_notice(session, address, text, self.clock())

    def queue_for_admins(self, session: Session, text: str) -> None:
        """Queue a text for each admin, within the caller's transaction."""
        for admin in audience.find_admins(self.policies.load(session)):
            notices.store_notice(session, admin, text, self.clock())

    def queue_reminders(self, session: Session, proposal: Proposal, text: str) -> None:
        """Queue a reminder for each place of a proposal's card, within the caller's transaction.

        Places that features leave out get none, see `audience.find_reminder_audience`.
        """
        for address in audience.find_reminder_audience(session, self.policies, proposal).places:
            notices.store_notice(session, address, escape_markdown(text), self.clock(), proposal.card_id)

    def tell_unreached(self, session: Session, proposal: Proposal, address: Address, why: str) -> None:
        """Queue a notice that a card can't be posted, within the caller's transaction.

        It goes to the admins, and to the chat where the card was asked for; if that is the ``address`` that
        refused the card, to the requester's private chat.
        """
        place = name_of_place(str(address), people.find_known_names(session, [str(address)]))
        text = escape_markdown(f"The card can't be shown in {place}: {proposal.description}. {why}")
        text += "\nAn admin can decide it in the console."
        conversation = conversations.get_conversation(session, proposal.conversation_id)
        requester_chat = find_requester_chat(proposal)
        origin = conversation.origin if conversation else requester_chat
        recipients = set(audience.find_admins(self.policies.load(session)))
        recipients.add(origin if origin != address else requester_chat)
        recipients.discard(address)
        for recipient in sorted(recipients, key=str):
            instead = requester_chat if recipient == origin else None
            notices.store_notice(session, recipient, text, self.clock(), instead=instead)

    async def send(self, now: datetime, post_card: PostCard) -> None:
        """Post the notices that are due. A notice that can't be posted yet is due again after a pause."""
        for notice in await self.database.read(notices.list_due, now, _NOTICES_AT_A_TIME):
            poster = poster_at(self.channels, notice.address)
            is_last_try = now - notice.created_at >= GIVE_UP
            if notice.address.channel not in self.channels and not is_last_try:
                continue  # a process that has this channel posts it
            if not await self.database.write(notices.claim, notice, now + find_backoff(notice.tries)):
                continue  # another process posts it
            try:
                if poster is not None:
                    await self._post(poster, notice, post_card)
            except ChannelError as error:
                if not isinstance(error, NotDeliverable) and not is_last_try:
                    log.warning("notice not delivered yet", address=str(notice.address), why=error.message)
                    continue
                log.error("notice not delivered", address=str(notice.address), why=error.message)
                await self.database.write(self._handle_refusal, notice, error.message)
            else:
                await self.database.write(notices.delete_notice, notice)

    async def _post(self, poster: Poster, notice: NoticeRow, post_card: PostCard) -> None:
        """Post a notice. If it is about an open proposal, remind of the card, or post the card again."""
        address = notice.address
        if notice.commands:
            await poster.post_offers(address, notice.text, notice.commands)
            return
        if notice.proposal_id is None:
            await self._post_text(poster, notice)
            return
        card = await self.database.read(_find_open_card, self.policies, notice.proposal_id, address)
        if card is None:
            return
        if notice.text and card.ref:
            try:
                await poster.remind(address, card.ref, notice.text, card.named)
            except CopyGone:  # then the card is posted again, which reminds as well
                await self.database.write(posted_cards.mark_message_gone, address.channel, card.ref)
            else:
                return
        await post_card(notice.proposal_id, address)

    async def _post_text(self, poster: Poster, notice: NoticeRow) -> None:
        link = notice.link
        if link is None:
            await poster.post(notice.address, notice.text)
        elif link.is_button:
            await poster.post_link(notice.address, notice.text, link)
        else:
            await poster.post(notice.address, f"{link.markdown}\n{notice.text}")

    async def tell_answers(self, answers: Sequence[AskedQuestion]) -> bool:
        """Post answers where people asked. Returns False if an answer may still arrive at another try.

        Where nothing is posted, people read the answers in the conversation.
        """
        are_all_settled = True
        for question in answers:
            if await self._tell_answer(question):
                await self.database.write(questions.mark_answer_told, question, self.clock())
            else:
                are_all_settled = False
        return are_all_settled

    async def _tell_answer(self, question: AskedQuestion) -> bool:
        """Post an answer. Returns False if another try may deliver it.

        An answer that is refused for good goes to the private chat of the person who asked.
        """
        address = question.address
        poster = poster_at(self.channels, address) if address else None
        if address is None or poster is None:
            return True
        question_text = escape_markdown(question.text)
        answer = bound_text(question.answer, _MAX_ANSWER_CHARS)
        asker = Actor.parse(question.asker, question.name)
        answer_with_question = f"“{question_text}”\n\n{answer}"
        try:
            if question.ref:
                await poster.remind(address, question.ref, answer_with_question, [asker])
            else:
                await poster.post(address, f"> {question_text}\n\n{answer}")
        except (CopyGone, NotDeliverable) as error:
            log.warning("answer not delivered", address=str(address), why=error.message)
            await self.answer_privately(asker, address, error.message, answer_with_question)
        except ChannelError as error:
            log.warning("answer not delivered yet", address=str(address), why=error.message)
            return self.clock() - datetime.fromisoformat(question.asked_at) >= GIVE_UP
        return True

    def _handle_refusal(self, session: Session, notice: NoticeRow, why: str) -> None:
        """Queue a refused notice for another place, or tell the people who must know."""
        notices.delete_notice(session, notice)
        proposal = proposals.get(session, notice.proposal_id) if notice.proposal_id else None
        around = self.find_place_around(notice.address)
        if notice.instead:
            instead = Address.parse(notice.instead)
            notices.store_notice(session, instead, notice.text, self.clock(), notice.proposal_id, around)
        elif around is not None and proposal is None:
            notices.store_notice(session, around, notice.text, self.clock())
        elif proposal is not None:
            self.tell_unreached(session, proposal, notice.address, why)
        elif notice.address not in audience.find_admins(self.policies.load(session)):
            self.queue_for_admins(session, f"I can't post in {notice.address}. {why}")


def _find_open_card(
    session: Session, policies: Policies, proposal_id: str, address: Address
) -> _OpenCard | None:
    """Return the card of a proposal, or of its batch, at an address; None if no proposal on it is open."""
    proposal = proposals.get(session, proposal_id)
    if proposal is None:
        return None
    members = proposals.list_on_card(session, proposal)
    open_members = [member for member in members if member.state is State.PROPOSED]
    if not open_members:
        return None
    copies = posted_cards.list_copies(session, proposal_id)
    refs = [copy.ref for copy in copies if copy.address == address and not copy.gone]
    named = audience.find_reminder_audience(session, policies, open_members[0]).people
    return _OpenCard(refs[-1] if refs else "", list(named))
