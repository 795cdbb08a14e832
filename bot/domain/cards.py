"""The card of a proposal: everything that people need to decide about a call, or to see how it ended. Pure.

A `Card` has plain values, which ``card_rendering.py`` makes from a proposal. Channels turn these into blocks,
entities or HTML, and must show every part; what does not fit goes behind *View all*, for which
``call_text.py`` has everything. Several proposals may share buttons (`Group`) or be the rows of one card
(`Batch`). The nouns of a proposal, such as round, trial and teammate, are explained in
``bot/domain/proposals.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from bot.domain.annotations import Annotation, find_unusual_facts
from bot.domain.buttons import make_button
from bot.domain.deciders import DeciderNames
from bot.domain.forms import list_values
from bot.domain.people import Actor
from bot.domain.plans import Plan, PlanLine, make_plan_lines
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State, Tone
from bot.domain.proposals import AskerFacts, ProposalKind
from bot.domain.risks import USUAL_DESTRUCTIVE_REASON, Level
from bot.domain.text import hash_text, is_echo, make_sentence, one_line
from bot.domain.value_text import label_of
from bot.domain.verbs import Button, Verb

CAN_BE_UNDONE_TEXT = "Can be undone"  # the beginning of `Card.undo` if the call can be undone
_GROUP_VERBS = (Verb.APPROVE_ALL, Verb.DECLINE_ALL)


@dataclass(frozen=True, slots=True)
class Group:
    """Proposals that share buttons: the rows of a batch, or the proposals of an answer without one."""

    size: int  # the number of proposals
    open_count: int  # the number of those that wait for a decision
    round: int  # the sum of the proposals' rounds, so it changes when the contents of any of them change
    # the ids of the proposals that "Approve all" approves, in the order of the calls; empty for a batch. A
    # channel first shows each of them in full, since a card may not show all of its change
    approvable_ids: tuple[str, ...] = ()
    # the number of open proposals that can't be undone; each is approved by itself
    irreversible_count: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A card. All text in it is hostile until escaped.

    Most fields are those of the `Proposal`, without secrets and in words. Channels and the HTTP API read them
    by these names.
    """

    proposal_id: str
    round: int  # grows with new contents; a press names the round that it saw
    version: int  # grows with every change of the proposal; of a batch, the sum over its rows
    kind: ProposalKind
    title: str  # what will happen, in plain language
    tool_name: str
    level: Level
    risk_reason: str
    reason: str  # the agent's stated reason; may be empty
    fields: tuple[PreviewField, ...]
    arguments: Mapping[str, Any]  # redacted
    schema: Mapping[str, Any]  # JSON schema of the arguments, for the edit form; may be empty
    asked_by: str
    decider_names: DeciderNames  # the people who may decide
    votes: tuple[str, ...]  # one line each
    quorum: int
    expires_at: datetime
    state: State
    tone: Tone
    outcome: str  # one sentence on the state or the end, and on the decider; without times
    decided_at: datetime | None
    result: str  # the answer of the tool, or the error in words; may be empty
    result_url: str | None
    notes: tuple[str, ...]  # sentences such as who edited it, or that values changed since it was shown
    verbs: tuple[Verb, ...]  # the buttons, in their order
    group: Group | None  # the group whose shared buttons this card has; None: it has none
    result_fields: tuple[tuple[str, str], ...] = ()  # label and value, where the tool gave an object
    # the tool's own sentence on its result; it replaces the title once the call has succeeded
    result_sentence: str = ""
    full_output: str = ""  # the tool's full output, if ``result_sentence`` is shown instead of it
    asker_decides: bool = False  # the requester may decide alone, so the card names no deciders
    extension: timedelta | None = None  # how much longer it waits if people extend it
    teammate: str = ""  # the name of the teammate that asks; empty: the lead agent
    asked_at: datetime | None = None
    running_since: datetime | None = None
    asked_in: str = ""  # on a copy in another chat: the chat of the proposal in words; else empty
    origin: str | None = None  # on such a copy: that chat's address; None if it is private, or for no copy
    # before the decision: a sentence on whether the call can be undone, and for how long
    undo_sentence: str = ""
    undo_effect: str = ""  # after the run: the effect of the button Undo, in words; empty without the button
    batch: "Batch | None" = None  # the rows, if the card stands for several proposals
    # after the run: "Checked: …", if the changed fields were read again and are as approved; else empty
    check_text: str = ""
    ticked: tuple[int, ...] = ()  # the steps of a plan that are done
    choices: tuple[str, ...] | None = None  # the answers that a question of the agent offers; else None
    may_have_happened: bool = False  # the call failed, and may have happened all the same
    annotations: tuple[Annotation, ...] = ()  # lines of features
    acts_as: str = ""  # the account it runs under, such as ``As Ana at github (octocat)``; empty: Nod's
    zone: tzinfo = UTC  # the team's time zone, for channels whose app does not show local times itself
    program: str = ""  # the name of the agent that called with a token; empty: none did

    def button(self, verb: Verb) -> Button:
        """Return the text and the input of a verb's button on this card, the same in every channel."""
        return make_button(
            verb,
            kind=self.kind,
            level=self.level,
            title=self.title,
            fillable=bool(self.schema.get("properties")),
            extension=self.extension,
            count=self.group.open_count if self.group and verb in _GROUP_VERBS else None,
            irreversible_count=self.group.irreversible_count if self.group else 0,
            undo_effect=self.undo_effect,
            undo_sentence=self.undo_sentence if self._can_be_undone else "",
            choices=self.choices or (),
            may_have_happened=self.may_have_happened,
        )

    @property
    def has_context(self) -> bool:
        """True if a turn of the agent led to the proposal: people can read that turn and ask about it.

        Such a card, or one of its rows, has the button *Ask*.
        """
        cards = (self, *(row.card for row in self.rows))
        return any(Verb.ASK in card.verbs for card in cards)

    @property
    def rows(self) -> tuple["BatchRow", ...]:
        """The rows of a batch; empty for a single proposal."""
        return self.batch.rows if self.batch else ()

    @property
    def unusual_facts(self) -> tuple[str, ...]:
        """The unusual facts about the call, compared with earlier calls."""
        return find_unusual_facts(self.annotations)

    @property
    def headline(self) -> str:
        """The first line of the card: what the call will do, or what the tool says it did."""
        return self.result_sentence or self.title

    @property
    def warning(self) -> str:
        """The warning to read before approving; empty where there is nothing to warn of."""
        if self.kind.is_answer or self.level is Level.READ:
            return ""
        if self.risk_reason == USUAL_DESTRUCTIVE_REASON:
            reason = ""  # the sentence on undo, with which the warning begins, says whether that is so
        else:
            reason = make_sentence(self.risk_reason)
        if self.level is not Level.DESTRUCTIVE:
            return reason
        undo = self.undo_sentence if self._can_be_undone else "Can't be undone."
        return f"{undo} {reason}".strip()

    @property
    def _can_be_undone(self) -> bool:
        return self.undo_sentence.startswith(CAN_BE_UNDONE_TEXT)

    @property
    def undo_note(self) -> str:
        """The sentence on whether the call can be undone; empty where `warning` contains it."""
        if self.level is Level.DESTRUCTIVE:
            return ""
        return self.undo_sentence

    @property
    def shown_reason(self) -> str:
        """The reason as the card shows it; empty if it only repeats the person's words.

        The reason of a program is quoted. *View all* has the reason in any case.
        """
        if not self.reason or is_echo(self.reason):
            return ""
        return f"{self.program} says “{self.reason}”" if self.program else self.reason

    def quotes(self, field: PreviewField) -> bool:
        """Tell if the title contains a field in full, such as the title of a new issue."""
        return field.titled and f"“{field.new_value}”" in self.title

    @property
    def outline(self) -> list[PlanLine]:
        """The lines of the plan, without a summary that the title contains; empty for other kinds."""
        if not self.kind.has_steps:
            return []
        summary, *others = make_plan_lines(Plan.of(self.arguments), self.fields, self.ticked)
        is_in_title = summary.text in self.title
        if is_in_title and not summary.mark:  # a mark tells how the summary has changed
            return others
        return [summary, *others]

    @property
    def deciders(self) -> str:
        """The people who may decide, in words."""
        return one_line(self.decider_names.text)

    @property
    def requester_line(self) -> str:
        """The requester's line, such as ``Asked by Ana in #general``, with the place on copies elsewhere."""
        return self.kind.introduce(AskerFacts(self.asked_by, self.asked_in, self.pending, self.asker_decides))

    @property
    def shown_votes(self) -> tuple[str, ...]:
        """The votes so far, one line each; empty where a single vote decides."""
        if self.quorum > 1 or len(self.votes) > 1:
            return self.votes
        return ()

    @property
    def shown_fields(self) -> tuple[PreviewField, ...]:
        """The changed fields, without those that the title quotes in full.

        For a tool without a preview, the arguments that would run.
        """
        if self.fields or self.kind.hides_arguments:
            return tuple(field for field in self.fields if not self.quotes(field))
        values = list_values(self.schema, self.arguments)
        return tuple(PreviewField(label_of(name), None, words) for name, words in values)

    @property
    def local_expires_at(self) -> datetime:
        """The time of expiry in the team's time zone."""
        return self.expires_at.astimezone(self.zone)

    @property
    def ended_at(self) -> datetime | None:
        """The time at which its state began, in the team's time zone; None while it waits.

        It is the time when the proposal was decided, began to run or expired.
        """
        at = self.decided_at
        if self.state is State.EXECUTING:
            at = self.running_since
        elif self.state is State.EXPIRED and (at is None or at > self.expires_at):
            at = self.expires_at  # unless an admin ended the wait earlier: then ``decided_at`` counts
        return at.astimezone(self.zone) if at else None

    @property
    def outcome_line(self) -> str:
        """The state or the outcome in words; without a full stop if the time of `ended_at` follows."""
        words = f"{self.outcome} {self.check_text}".strip()
        return words.removesuffix(".") if self.ended_at else words

    @property
    def fingerprint(self) -> str:
        """A hash that is equal for cards that look the same.

        While a batch runs, it changes with each tenth of the rows, so that not every row redraws the card.
        """
        shown = replace(self, version=0)
        if self.batch and self.batch.is_running:
            # the outcome, and a note that repeats it, change with each row
            notes = tuple(note for note in self.notes if note != self.outcome)
            shown = replace(shown, outcome="", notes=notes, batch=None, decided_at=None)
            return hash_text(f"{shown!r} {self.batch.stage}")
        return hash_text(repr(shown))

    @property
    def without_group(self) -> "Card":
        """The card without the buttons for its group."""
        verbs = tuple(verb for verb in self.verbs if verb not in _GROUP_VERBS)
        return replace(self, group=None, verbs=verbs)

    def with_mentions(self, instead: Mapping[str, Sequence[Actor]]) -> "Card":
        """Return the card with other accounts mentioned in place of some deciders.

        ``instead``: the accounts to mention, by the account of the decider whom they replace. That decider is
        written as a name, which notifies no one.
        """
        if not instead:
            return self
        members: list[Actor | str] = []
        for member in self.decider_names.members:
            if isinstance(member, Actor) and str(member) in instead:
                members += [member.label, *instead[str(member)]]
            else:
                members.append(member)
        return replace(self, decider_names=replace(self.decider_names, members=tuple(members)))

    @property
    def pending(self) -> bool:
        return self.state is State.PROPOSED

    @property
    def is_approved_plan(self) -> bool:
        """True for an approved plan, whose card still shows the steps."""
        return self.kind.has_steps and self.state is State.SUCCEEDED


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One proposal's row in the table of a batch."""

    card: Card  # the proposal's own card
    about: str  # the title without the beginning that all titles share
    fields: tuple[PreviewField, ...]  # the fields in which rows differ
    notes: tuple[str, ...] = ()

    @property
    def needs_own_decision(self) -> bool:
        """True if the row waits and can't be undone, so people decide it by itself."""
        return self.card.pending and self.card.level is Level.DESTRUCTIVE

    @property
    def is_running(self) -> bool:
        return self.card.state in (State.APPROVED, State.EXECUTING)

    @property
    def has_buttons(self) -> bool:
        """True if the row's own card has a button, such as Retry or Undo."""
        return bool(self.card.verbs)

    @property
    def fault(self) -> str:
        """The reason why the row's call did not succeed, in one line; empty otherwise."""
        if self.card.pending or self.is_running or self.card.tone is Tone.GOOD:
            return ""
        return one_line(self.card.result or self.card.outcome)


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of a batch, in the order they were asked for; its card has the fields that all rows share."""

    rows: tuple[BatchRow, ...]
    first_number: int = 1  # the number of the first of these rows in the complete batch

    @property
    def is_running(self) -> bool:
        return any(row.is_running for row in self.rows)

    @property
    def has_buttons(self) -> bool:
        """True if any row's own card has a button."""
        return any(row.has_buttons for row in self.rows)

    @property
    def stage(self) -> "_BatchStage":
        """The progress while rows run. Posted cards are redrawn when it changes."""
        ended_count = sum(not (row.is_running or row.card.pending) for row in self.rows)
        return _BatchStage(
            tenths_done=10 * ended_count // len(self.rows),
            rounds=tuple((row.card.round, row.card.pending) for row in self.rows),
        )


class _BatchStage(NamedTuple):
    tenths_done: int
    rounds: tuple[tuple[int, bool], ...]  # of each row: its round, and True if it waits


@dataclass(frozen=True, slots=True)
class OriginChat:
    """The chat in which a call was proposed, as its card in another chat names it."""

    label: str  # the chat for people
    address: str | None  # None for a private chat
    # the words are the chat's own name, such as ``#general``, not a description of the chat
    has_own_name: bool
