"""Hooks: the questions that the kernel asks features, and the events that it reports to them.

Each protocol here is one hook: a hook that is *asked* returns an answer, one that is *told* takes note. A
hook that is told has the name of what the kernel does at that moment: `EndProposal` is told that a proposal
ends. A feature hands a `Hooks` value to ``bot/app``; the kernel calls what is in it, and knows no feature
by name.

No hook can allow anything: an answer is a reason to refuse, words that are added, or work that follows. A
hook's writes in a transaction are a part of it: if the hook raises, the transaction is rolled back, unless
the hook's docstring says otherwise.

A *proposal* is a call that waits for people; a *round* of it is one version of its contents. A *claim* is the
write by which one process takes the run of an approved proposal. A *step* is a target that is notified of a
waiting card, and when.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, tzinfo
from typing import Protocol

from sqlmodel import Session

from bot.domain.active import ActiveLine
from bot.domain.annotations import Annotation
from bot.domain.attachments import Attachment, FileContent
from bot.domain.chat import Address, Message, Press
from bot.domain.conversations import Transcript
from bot.domain.jobs import Job
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal
from bot.domain.rulebook import Rulebook

MAX_HOLD = timedelta(seconds=60)
"""The longest time for which features can hold back the run of an approved proposal."""


class StopModelCall(Protocol):
    """Asked before each call of a model, in no transaction. Returns the reason to stop the turn, or ''."""

    async def __call__(self, transcript: Transcript) -> str: ...


class CountAnswer(Protocol):
    """Told of a model's answer and its tokens, in the transaction that stores it. Returns work to start."""

    def __call__(
        self, session: Session, transcript: Transcript, tokens: int, now: datetime
    ) -> Sequence[Job]: ...


class AddToPrompt(Protocol):
    """Asked before each call of a model, in no transaction. Returns a section of the prompt, or ''."""

    async def __call__(self, transcript: Transcript, now: datetime) -> str: ...


class ReadFile(Protocol):
    """Asked to read a file that someone attached and the kernel can't read, in no transaction.

    ``content`` has the file's bytes and kind, and the reason why the kernel can't read it. Returns the
    content with a text, or with a better reason; None where this feature does not read such files.
    """

    async def __call__(
        self, transcript: Transcript, file: Attachment, content: FileContent, /
    ) -> FileContent | None: ...


class AnnotateCard(Protocol):
    """Asked for lines on the card of a proposal, in the transaction that stores its contents.

    The lines are frozen with the contents, so a press names them, too. Asked again for each new round of
    contents that people are to decide. The hook writes nothing; where it raises, there is no card. Later
    lines are added by ``lifecycle.annotate``.
    """

    def __call__(self, session: Session, proposal: Proposal) -> Sequence[Annotation]: ...


class AskPeople(Protocol):
    """Told when people are asked to decide a round of a proposal, in the transaction that stores it."""

    def __call__(self, session: Session, proposal: Proposal, now: datetime) -> None: ...


class HoldClaim(Protocol):
    """Asked before an approved proposal is claimed, in the transaction of the claim, with its rules.

    Returns the time until which the claim is to wait, at most `MAX_HOLD` after the approval, or None.
    """

    def __call__(self, session: Session, rulebook: Rulebook, proposal: Proposal) -> datetime | None: ...


class RefuseGrant(Protocol):
    """Asked where a grant could be given from a proposal. Returns the reason to refuse it, or ''."""

    def __call__(self, session: Session, proposal: Proposal) -> str: ...


class ForgetConversations(Protocol):
    """Told in the transaction that deletes what was said in these conversations."""

    def __call__(self, session: Session, conversation_ids: Sequence[str], now: datetime) -> None: ...


class SendDigest(Protocol):
    """Told in the transaction that sends the daily digest of a scope to a chat."""

    def __call__(self, session: Session, scope: str, to: Address, now: datetime) -> None: ...


class EndProposal(Protocol):
    """Told in the transaction in which a proposal reaches an end: it ran or failed, was declined, expired."""

    def __call__(self, session: Session, proposal: Proposal, now: datetime) -> None: ...


class ChangePerson(Protocol):
    """Told in the transaction in which an account is linked, unlinked, signed out, or found to be gone.

    Where the hook raises, an account is not linked. The other changes stand, since they end rights: only the
    hook's writes are rolled back, and it is told again until it succeeds. So it must be safe to repeat.

    Returns work to start. Only an account that leaves its person may cause such work; recovery finds all
    other work in the rows.
    """

    def __call__(self, session: Session, account: Actor, now: datetime) -> Sequence[Job]: ...


class MoveChat(Protocol):
    """Told in the transaction in which the rules of a chat begin to hold at its new address, too.

    ``new`` is the address where people write from now on. Told again after a crash, so it must be safe to
    repeat.
    """

    def __call__(self, session: Session, old: Address, new: Address, now: datetime) -> None: ...


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    """The answer to a message that a feature had asked for; '' where the message was answered before."""

    text: str
    jobs: tuple[Job, ...] = ()


class AnswerMessage(Protocol):
    """Asked of a message in someone's private chat, in the transaction that would store it.

    Returns the answer where this feature had asked for the message, such as for a number: then the message is
    stored nowhere, and no model reads it. None for every other message.
    """

    def __call__(self, session: Session, message: Message, now: datetime) -> MessageAnswer | None: ...


@dataclass(frozen=True, slots=True)
class CommandOffer:
    """A command that a person may want to send: the words about it, its button, and what follows ``/nod``."""

    description: str
    label: str
    text: str


class OfferCommands(Protocol):
    """Asked for a person who looks at their home, in a transaction that may be a read."""

    def __call__(self, session: Session, actor: Actor) -> Sequence[CommandOffer]: ...


class ListActive(Protocol):
    """Asked for an admin of all of Nod, in a transaction that may be a read. Returns lines of what is on."""

    def __call__(self, session: Session, now: datetime, /) -> Sequence[ActiveLine]: ...


class QuietAudience(Protocol):
    """Asked before people are told or reminded of an open proposal, in a transaction that may be a read.

    ``notified`` are the places and the accounts that would be told, as ``channel:key``. Returns the members
    of ``notified`` that need not be told now, as they have muted such cards.

    - Shared chats get their card all the same.
    - Everyone is told if too few deciders would be left, or if the hook raises.
    - When a card is delivered, the hook is asked only if some `MayBeQuiet` returns True, or if some
      `WatchDelivery` takes part.
    """

    def __call__(
        self, session: Session, proposal: Proposal, notified: Collection[str]
    ) -> Collection[str]: ...


class MayBeQuiet(Protocol):
    """Asked when a card is delivered, in no transaction. Returns False if no one has muted any cards."""

    def __call__(self) -> bool: ...


class WatchDelivery(Protocol):
    """Lets a feature take part in deciding whom a delivered card notifies, by a private card or a mention.

    Accounts are written as ``channel:key``. All methods but `is_watching` are called in one transaction
    before the card is posted, and again if posting is tried again, so they are safe to repeat. Where a method
    raises, the card is posted and mentions everyone. `hold_back` and `tell_people` are also called when a
    step of a rule, or another round, notifies people of a card that was posted before.
    """

    def is_watching(self) -> bool:
        """Return whether the feature takes part now. Reads no row, since most cards need no feature."""

    def list_reached(
        self, session: Session, proposal: Proposal, deciders: Collection[str]
    ) -> Collection[str]:
        """Return the members of ``deciders`` whom the feature notifies itself, in a way of its own."""

    def hold_back(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> Collection[str]:
        """Store and return the members of ``notified`` who are told later."""

    def tell_people(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> None:
        """Take note of the people who are notified of a card in the end, to count or to notify them."""

    def tell_later(
        self, session: Session, account: str, proposals: Sequence[Proposal], now: datetime
    ) -> None:
        """Take note that an account is told now, together, of cards that were held back from it."""


class Notify(Protocol):
    """Told in the transaction in which a step of an open proposal is due: it stores the notification to send.

    ``more`` is the number of further proposals on the same card (rows of a batch) whose step is due, too.
    """

    def __call__(self, session: Session, proposal: Proposal, more: int, now: datetime) -> None: ...


@dataclass(frozen=True, slots=True)
class Notifier:
    """A way to reach people about a card that waits, which steps of rules name: `/approvals notify`.

    ``name`` is one lower-case word. ``hindrance``: why nothing can be sent, and what to do; '' where the way
    is set up. Quiet hours hold its steps back.
    """

    name: str
    notify: Notify
    hindrance: str = ""


class TakePress(Protocol):
    """Asked about a press that concerns the person alone and not the proposal, in the press's transaction.

    Returns the reply to that person, or '' where the press is for another feature.
    """

    def __call__(
        self, session: Session, proposal: Proposal, press: Press, person: Person, now: datetime
    ) -> str: ...


class NoteCopy(Protocol):
    """Told in the transaction in which a card was stored as posted, or as drawn again.

    ``card_id`` is the id of the card's proposal; for a batch, of its first proposal. ``ref`` is the
    platform's reference to the card, ``channel`` and ``key`` are the card's address.
    """

    def __call__(self, session: Session, card_id: str, channel: str, key: str, ref: str) -> None: ...


class NoteOpened(Protocol):
    """Told in a transaction that a person opened a part of a card, such as ``all`` (*View all*)."""

    def __call__(
        self, session: Session, proposal: Proposal, actor: Actor, part: str, now: datetime
    ) -> None: ...


class NoteDecision(Protocol):
    """Told in the transaction in which a vote counted. ``seen``: the proposal as its person saw it."""

    def __call__(self, session: Session, seen: Proposal, press: Press, now: datetime) -> None: ...


class ListZones(Protocol):
    """Asked for the time zones that people have set in a feature, by account, the newest last.

    It takes one statement, however many people there are.
    """

    def __call__(self, session: Session) -> Mapping[str, tzinfo]: ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one feature, or of several joined, asked in the order in which features are listed."""

    stop_model_call: tuple[StopModelCall, ...] = ()
    count_answer: tuple[CountAnswer, ...] = ()
    add_to_prompt: tuple[AddToPrompt, ...] = ()
    read_file: tuple[ReadFile, ...] = ()
    annotate_card: tuple[AnnotateCard, ...] = ()
    ask_people: tuple[AskPeople, ...] = ()
    hold_claim: tuple[HoldClaim, ...] = ()
    refuse_grant: tuple[RefuseGrant, ...] = ()
    forget_conversations: tuple[ForgetConversations, ...] = ()
    send_digest: tuple[SendDigest, ...] = ()
    end_proposal: tuple[EndProposal, ...] = ()
    change_person: tuple[ChangePerson, ...] = ()
    move_chat: tuple[MoveChat, ...] = ()
    quiet_audience: tuple[QuietAudience, ...] = ()
    may_be_quiet: tuple[MayBeQuiet, ...] = ()
    watch_delivery: tuple[WatchDelivery, ...] = ()
    take_press: tuple[TakePress, ...] = ()
    answer_message: tuple[AnswerMessage, ...] = ()
    offer_commands: tuple[OfferCommands, ...] = ()
    list_active: tuple[ListActive, ...] = ()
    notifiers: tuple[Notifier, ...] = ()
    note_copy: tuple[NoteCopy, ...] = ()
    note_opened: tuple[NoteOpened, ...] = ()
    note_decision: tuple[NoteDecision, ...] = ()
    list_zones: tuple[ListZones, ...] = ()

    @classmethod
    def join(cls, several: Iterable["Hooks"]) -> "Hooks":
        """Return the hooks of several features as one."""
        listed = list(several)
        joined = {}
        for kind in fields(cls):  # one field for each kind of hook
            joined[kind.name] = tuple(hook for hooks in listed for hook in getattr(hooks, kind.name))
        return cls(**joined)
