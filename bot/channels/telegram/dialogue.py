"""Dialogues: the questions that Nod asks one person in one chat, where a press needs more than a button.

Telegram has no forms, so a dialogue asks step by step. It asks for the fields of an edit, for the words that
go with a press (such as a reason), or for a *grant*, the permission for similar calls. `Dialogue` is the
state between two answers. `Dialogues` stores it as JSON, so it survives a restart. ``screens.py`` renders
each step as a message; ``forms.py`` takes the answers and sends the screens. A message is *ephemeral* if only
one person of a group sees it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pydantic import TypeAdapter
from telegram import User

from bot.channels.telegram.places import NAME, EphemeralTarget, TelegramPlace
from bot.domain.cards import Card
from bot.domain.chat import Clock, Press
from bot.domain.forms import Field
from bot.domain.people import Actor
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from bot.store.database import Database
from bot.store.state import load_state, store_state

_KEY_PREFIX = "ask:"

NOT_YOURS_TEXT = "This form is not open for you. Start on the card."
MOVED_ON_TEXT = "This was decided or changed in the meantime."


class DialogueStep(StrEnum):
    """The question that a dialogue asks now."""

    PICK = "pick"  # ask which field to change
    ASK = "ask"  # ask for the new value of ``asked``
    CONFIRM = "confirm"  # show old → new; ask to save, change another field, or close
    WORDS = "words"  # ask for the words that ``verb`` needs
    GRANT = "rung"  # ask for the scope (stored as ``rung``), the audience and the duration of a grant


_FORMER_STEPS = {
    "reason": (DialogueStep.WORDS, Verb.DECLINE),
    "changes": (DialogueStep.WORDS, Verb.REVISE),
    "reach": (DialogueStep.GRANT, Verb.EDIT),
    "lasting": (DialogueStep.GRANT, Verb.EDIT),
}
"""The step and the verb of today, by the word that earlier releases stored as the step."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A dialogue with one person about a proposal, in the round that the person saw.

    An edit of the proposal begins a new round. The names of the fields are the keys of the stored JSON.
    """

    proposal_id: str
    round: int
    step: DialogueStep
    at: datetime  # the time of the last step
    asked: str | None = None  # the name of the field whose new value the step ASK asks for
    changes: Mapping[str, Any] = field(default_factory=dict)  # the edited arguments so far
    prompt: int | None = None  # the id of the message that asks, once it is known; negative if ephemeral
    rung: GrantScope | None = None  # the chosen scope of a grant: which calls it allows
    reach: GrantAudience = GrantAudience.HERE  # the chosen audience of a grant: whose calls, and where
    question: str = ""  # the text of the message that asks for typed words
    verb: Verb = Verb.EDIT  # for the step WORDS: the verb that the words go with; other steps ignore it

    @classmethod
    def begin_edit(cls, card: Card, now: datetime) -> Self:
        return cls(card.proposal_id, card.round, DialogueStep.PICK, now)

    @classmethod
    def begin_words(cls, card: Card, verb: Verb, now: datetime) -> Self:
        """Begin a dialogue that asks for the words that go with a press."""
        return cls(card.proposal_id, card.round, DialogueStep.WORDS, now, verb=verb)

    @classmethod
    def begin_grant(cls, card: Card, scope: GrantScope, audience: GrantAudience, now: datetime) -> Self:
        """Begin a dialogue that asks for a grant, with this scope and audience chosen at first."""
        return cls(card.proposal_id, card.round, DialogueStep.GRANT, now, rung=scope, reach=audience)

    @property
    def is_about_grant(self) -> bool:
        """True if the dialogue is about a grant, not about the proposal's own contents."""
        return self.step is DialogueStep.GRANT

    def pick(self, field: Field, now: datetime) -> Self:
        """Ask for this field next."""
        return replace(self, step=DialogueStep.ASK, asked=field.name, at=now, prompt=None)

    def with_value(self, field: Field, value: Any, now: datetime) -> Self:
        """Take the checked value of a field, and ask to confirm the changes.

        The value that the field has on the card is no change. If no field has changed, ask for a field again.
        """
        changes = {**self.changes}
        changes.pop(field.name, None)
        if value != field.value:
            changes[field.name] = value
        step = DialogueStep.CONFIRM if changes else DialogueStep.PICK
        return replace(self, step=step, asked=None, changes=changes, at=now, prompt=None)

    def back_to_fields(self, now: datetime) -> Self:
        """Ask again which field to change, with the changes so far."""
        return replace(self, step=DialogueStep.PICK, asked=None, at=now, prompt=None)

    def with_question(self, question: str) -> Self:
        """Set the text of the question before it is sent."""
        return replace(self, question=question.strip())

    def with_prompt(self, message_id: int) -> Self:
        """Set the id of the message that asks, once it is sent."""
        return replace(self, prompt=message_id)

    @property
    def awaits_text(self) -> bool:
        """True if the answer is a typed reply, not a press."""
        return self.step in (DialogueStep.ASK, DialogueStep.WORDS)

    def expects_reply_to(self, reply_to: int) -> bool:
        """Tell if a reply to this message is the answer."""
        return self.awaits_text and reply_to == self.prompt

    def matches_question(self, text: str) -> bool:
        """Tell if a message has the text of the question, for a question whose message id was not stored.

        That happens if Telegram's answer to the sending was lost, or if the process crashed right after.
        """
        return self.awaits_text and bool(self.question) and text == self.question

    def is_current_for(self, card: Card) -> bool:
        """Tell if the proposal is open, and in the round with which the dialogue began."""
        return card.pending and card.proposal_id == self.proposal_id and card.round == self.round

    def apply_changes(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the changes in them."""
        return {**arguments, **self.changes}

    def as_state(self) -> dict[str, Any]:
        """Return the dialogue as JSON to store."""
        state: dict[str, Any] = _STATE.dump_python(self, mode="json")
        return state

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> "Dialogue":
        """Read what `as_state` returned, in this release or in an earlier one."""
        if state["step"] in _FORMER_STEPS:
            step, verb = _FORMER_STEPS[state["step"]]
            state = {**state, "step": step, "verb": verb}
        return _STATE.validate_python(state)


_STATE = TypeAdapter(Dialogue)  # writes a dialogue as JSON, and reads it


def make_key_prefix(chat_id: int) -> str:
    """Return the beginning of the keys of a chat's stored dialogues; the id of the person follows."""
    return f"{_KEY_PREFIX}{chat_id}/"


async def _nothing_to_answer() -> None:
    """Do nothing: there was no press to answer."""


@dataclass(frozen=True, slots=True)
class Participant:
    """The person who wrote or pressed, and the place where."""

    user: User
    actor: Actor
    place: TelegramPlace
    title: str = ""  # the title of the chat, if it has one
    acknowledge_press: Callable[[], Awaitable[None]] = field(default=_nothing_to_answer, compare=False)
    """Answers the press in progress, if there is one. Call it before anything that may wait."""
    ephemeral: EphemeralTarget | None = None
    """The target that makes messages in a group visible to this person alone; None where all may see them."""

    def make_press(self, verb: Verb, proposal_id: str, round_: int, **fields: Any) -> Press:
        """Return a press of this person, in their place. ``fields``: further fields of `Press`."""
        return Press(self.actor, verb, proposal_id, round_, address=self.place.address, **fields)

    @property
    def key(self) -> str:
        """The key under which the person's dialogue in the chat is stored."""
        return f"{make_key_prefix(self.place.chat_id)}{self.user.id}"


@dataclass(frozen=True, slots=True)
class Dialogues:
    """The stored dialogues, one per person and chat; a new dialogue replaces the old."""

    database: Database
    clock: Clock

    async def load(self, participant: Participant) -> Dialogue | None:
        state = await self.database.read(load_state, NAME, participant.key)
        if state:
            return Dialogue.from_state(state)
        return None

    async def store_prompt(self, participant: Participant, dialogue: Dialogue, message_id: int) -> None:
        """Store the id of the message that asks, unless another dialogue began while it was on its way."""
        if await self.load(participant) == dialogue:
            await self.store(participant, dialogue.with_prompt(message_id))

    async def store(self, participant: Participant, dialogue: Dialogue) -> None:
        """Store the dialogue of a person, in place of an earlier one."""
        await self.database.write(store_state, NAME, participant.key, dialogue.as_state(), self.clock())

    async def end(self, participant: Participant) -> None:
        """Delete the dialogue of a person, if one is stored."""
        await self.database.write(store_state, NAME, participant.key, None, self.clock())
