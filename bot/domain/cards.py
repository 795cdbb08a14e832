"""The card of a proposal: everything that people need to decide about a call, or to see how it ended. Pure.

`card_of` renders a proposal as it is now, pending or ended, as a `Card` of plain values. Channels turn these
into blocks, entities or HTML, and must show every part; what does not fit goes behind *View all*, for which
`format_call` has everything. `place_card` fits a card to one place, since the people there may have fewer
rights. Several proposals may share buttons (`Group`) or be the rows of one card (`Batch`). The nouns of a
proposal, such as round, trial and teammate, are explained in ``bot/domain/proposals.py``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from bot.domain.agents import describe_agent
from bot.domain.annotations import Annotation, find_record
from bot.domain.buttons import make_button
from bot.domain.connections import CONSENT
from bot.domain.diffs import diff
from bot.domain.files import fits_card, format_json_as_lines, read_json_fields
from bot.domain.forms import Shape, defaults_of, fields_of, list_values, without_defaults
from bot.domain.outcomes import because, why_expired
from bot.domain.people import NO_NAMES, Actor, Names, find_accounts_in, with_names
from bot.domain.plans import Plan, PlanLine, make_plan_lines
from bot.domain.proposals import (
    REMOVED,
    USUAL_DESTRUCTIVE_REASON,
    AskerFacts,
    Cause,
    DeciderNames,
    Level,
    PreviewField,
    Proposal,
    ProposalKind,
    Sibling,
    State,
    Tone,
    Vote,
)
from bot.domain.redaction import redact, redact_text, secrets_in
from bot.domain.text import SHORT_ID_CHARS, hash_text, is_echo, one_line, sentence
from bot.domain.times import format_relative, format_span
from bot.domain.trials import Trial
from bot.domain.value_text import label_of, outline_value
from bot.domain.verbs import Button, Verb

_CAN_BE_UNDONE_TEXT = "Can be undone"  # the beginning of `Card.undo` if the call can be undone
_MAX_EDIT_NOTES = 5  # the most edits that a card names, the newest ones
_MAX_CHECKED_FIELDS = 3  # the most fields, read again after the run, that a card names
_MIN_SHARED_BUTTON = 2  # the least number of open proposals for a button that decides them together
_GROUP_VERBS = (Verb.APPROVE_ALL, Verb.DECLINE_ALL)
_APPROVING_VERBS = frozenset(
    {Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL}
)
_MIN_UNIQUE_CHARS = 40  # a text of this length is hardly the value of two fields
_LEAD_TEXTS: Mapping[str | None, str] = {
    "lead": "A person or the lead agent approves it",
    "both": "A person and the lead agent must each approve it",
}
"""The approvers of a plan in words, by `Deciders.lead`; for None people alone decide."""


@dataclass(frozen=True, slots=True)
class Group:
    """Proposals that share buttons: the rows of a batch, or the proposals of an answer without one."""

    size: int  # the number of proposals
    open: int  # the number of those that wait for a decision
    round: int  # the sum of the proposals' rounds, so it changes when the contents of any of them change
    # the ids of the proposals that "Approve all" approves, in the order of the calls; empty for a batch. A
    # channel first shows each of them in full, since a card may not show all of its change
    members: tuple[str, ...] = ()
    irreversible: int = 0  # the number of open proposals that can't be undone; each is approved by itself


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
    circle: DeciderNames  # the people who may decide
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
    told: str = ""  # the tool's own sentence on its result; it replaces the title once the call has succeeded
    data: str = ""  # the tool's full output, if ``told`` is shown instead of it
    asker_decides: bool = False  # the requester may decide alone, so the card names no deciders
    wait: timedelta | None = None  # how much longer it waits if people extend it
    teammate: str = ""  # the name of the teammate that asks; empty: the lead agent
    asked_at: datetime | None = None
    running_since: datetime | None = None
    asked_in: str = ""  # on a copy in another chat: the chat of the proposal in words; else empty
    origin: str | None = None  # on such a copy: that chat's address; None if it is private, or for no copy
    undo: str = ""  # before the decision: a sentence on whether the call can be undone, and for how long
    undoing: str = ""  # after the run: the effect of the button Undo, in words; empty without the button
    batch: "Batch | None" = None  # the rows, if the card stands for several proposals
    # after the run: "Checked: …", if the changed fields were read again and are as approved; else empty
    again: str = ""
    ticked: tuple[int, ...] = ()  # the steps of a plan that are done
    choices: tuple[str, ...] | None = None  # the answers that a question of the agent offers; else None
    unsure: bool = False  # the call failed, and may have happened all the same
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
            wait=self.wait,
            count=self.group.open if self.group and verb in _GROUP_VERBS else None,
            irreversible_count=self.group.irreversible if self.group else 0,
            undo_effect=self.undoing,
            undo_sentence=self.undo if self._can_be_undone else "",
            choices=self.choices or (),
            unsure=self.unsure,
        )

    @property
    def led(self) -> bool:
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
    def record(self) -> tuple[str, ...]:
        """The unusual facts about the call, compared with earlier calls."""
        return find_record(self.annotations)

    @property
    def headline(self) -> str:
        """The first line of the card: what the call will do, or what the tool says it did."""
        return self.told or self.title

    @property
    def warning(self) -> str:
        """The warning to read before approving; empty where there is nothing to warn of."""
        if self.kind.is_answer or self.level is Level.READ:
            return ""
        if self.risk_reason == USUAL_DESTRUCTIVE_REASON:
            reason = ""  # the sentence on undo, with which the warning begins, says whether that is so
        else:
            reason = sentence(self.risk_reason)
        if self.level is not Level.DESTRUCTIVE:
            return reason
        undo = self.undo if self._can_be_undone else "Can't be undone."
        return f"{undo} {reason}".strip()

    @property
    def _can_be_undone(self) -> bool:
        return self.undo.startswith(_CAN_BE_UNDONE_TEXT)

    @property
    def undo_note(self) -> str:
        """The sentence on whether the call can be undone; empty where `warning` contains it."""
        if self.level is Level.DESTRUCTIVE:
            return ""
        return self.undo

    @property
    def why(self) -> str:
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
        return one_line(self.circle.words)

    @property
    def asked(self) -> str:
        """The requester's line, such as ``Asked by Ana in #general``, with the place on copies elsewhere."""
        return self.kind.introduce(AskerFacts(self.asked_by, self.asked_in, self.pending, self.asker_decides))

    @property
    def tally(self) -> tuple[str, ...]:
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
    def expires(self) -> datetime:
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
    def end(self) -> str:
        """The state or the outcome in words; without a full stop if the time of `ended_at` follows."""
        words = f"{self.outcome} {self.again}".strip()
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
        for member in self.circle.members:
            if isinstance(member, Actor) and str(member) in instead:
                members += [member.label, *instead[str(member)]]
            else:
                members.append(member)
        return replace(self, circle=replace(self.circle, members=tuple(members)))

    @property
    def pending(self) -> bool:
        return self.state is State.PROPOSED

    @property
    def carried_out(self) -> bool:
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

    words: str  # the chat for people
    address: str | None  # None for a private chat
    # the words are the chat's own name, such as ``#general``, not a description of the chat
    has_own_name: bool


def card_of(
    proposal: Proposal,
    schema: Mapping[str, Any],
    siblings: Sequence[Proposal | Sibling] = (),
    *,
    grantable: bool = True,
    pause_words: str = "",
    declined_before: Proposal | None = None,
    names: Names = NO_NAMES,
    zone: tzinfo = UTC,
    stand_ins: Sequence[str] = (),
) -> Card:
    """Render a proposal as it is now.

    - ``schema``: the JSON schema of the tool's arguments; may be empty
    - ``siblings``: all proposals of the same answer, if this one is the first of them: its card has the
      buttons for all. Otherwise empty
    - ``grantable``: the rules let people allow calls like this one from the card
    - ``pause_words``: who paused Nod and since when; empty while Nod runs
    - ``declined_before``: an earlier proposal of the same call that was declined, if there is one
    - ``names``: the names of the accounts and places that the card mentions
    - ``stand_ins``: the people who decide for others, in words
    """
    group = _make_group(siblings) if len(siblings) > 1 else None
    secrets = secrets_in(proposal.arguments, schema)
    tone, outcome = _describe_state(proposal)
    notes = _list_notes(proposal, secrets, names, pause_words=pause_words, declined_before=declined_before)
    circle = proposal.deciders.circle(one_line(proposal.requester.label), names=names)

    def clean(text: str) -> str:
        return redact_text(text, secrets)

    result_fields = read_json_fields(clean(proposal.result)) if proposal.result else ()
    annotations = [
        Annotation(one_line(clean(line.name)), one_line(clean(line.text)), line.is_late)
        for line in proposal.annotations
    ]
    return Card(
        proposal_id=proposal.id,
        round=proposal.round,
        version=proposal.version,
        kind=proposal.kind,
        title=one_line(clean(proposal.description)),
        tool_name=proposal.tool_name,
        level=proposal.risk.level,
        risk_reason=proposal.kind.risk_text or one_line(proposal.risk.reason),
        reason=one_line(clean(proposal.reason)),
        program=one_line(proposal.agent.partition("/")[0]) if proposal.agent else "",  # of "NAME/LABEL"
        fields=_name_accounts(
            redact_fields(proposal.preview, schema, secrets), schema, proposal.arguments, names
        ),
        arguments=redact(proposal.arguments, schema, secrets),
        schema=schema,
        asked_by=one_line(_name_asker(proposal)),
        circle=replace(circle, stand_ins=tuple(map(one_line, stand_ins))),
        votes=tuple(clean(_format_vote(v)) for v in proposal.votes),
        quorum=proposal.quorum,
        expires_at=proposal.expires_at,
        zone=zone,
        state=proposal.state,
        tone=tone,
        outcome=one_line(clean(outcome)),
        # after an undo, the time of the undo
        decided_at=proposal.updated_at if proposal.undone else proposal.decided_at,
        result=_show_result(_find_tool_words(proposal), secrets),
        result_url=proposal.result_url,
        result_fields=tuple((clean(label), clean(value)) for label, value in result_fields),
        notes=tuple(notes),
        verbs=_list_verbs(proposal, schema, group, grantable=grantable),
        group=group,
        told=one_line(clean(proposal.told)) if proposal.told and proposal.state is State.SUCCEEDED else "",
        data=_show_result(proposal.result, secrets) if proposal.told else "",
        asker_decides=_is_asker_enough(proposal),
        wait=proposal.ttl,
        teammate=proposal.teammate,
        asked_at=proposal.created_at,
        running_since=proposal.updated_at if proposal.state is State.EXECUTING else None,
        undo=clean(one_line(_describe_undo(proposal))),
        again=clean(_describe_checks(proposal)),
        undoing=one_line(proposal.inverse.words) if proposal.inverse and proposal.undo_until else "",
        ticked=proposal.ticked,
        unsure=proposal.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED),
        annotations=tuple(annotations),
        acts_as=one_line(clean(proposal.connection.words)) if proposal.connection else "",
        choices=proposal.choices and tuple(one_line(clean(choice)) for choice in proposal.choices),
    )


def place_card(
    card: Card,
    proposal: Proposal,
    *,
    origin_chat: OriginChat | None,
    may_approve: bool,
    deciders_have_copies: bool,
    escalated: bool = False,
    names: Names = NO_NAMES,
) -> Card:
    """Return the copy of a pending card for one place, with the deciders and the buttons of that place.

    - ``origin_chat``: the chat in which the call was proposed, if that is another chat
    - ``may_approve``: someone who reads the copy in this place may approve the call
    - ``deciders_have_copies``: the people who may approve the call have a copy elsewhere
    - ``escalated``: the card was posted there for a decision, because no one decided in time
    """
    if not card.pending:
        return card

    # the buttons and the notes
    verbs, notes = card.verbs, card.notes
    has_other_deciders = bool(proposal.deciders.roles or proposal.deciders.people)
    # no one may decide but people in the chat where it was asked
    only_members_decide = bool(proposal.deciders.members) and not has_other_deciders
    if escalated:
        notes = (*notes, "No one decided in time, so anyone in this chat may decide.")
    elif origin_chat and only_members_decide:
        verbs = ()
        notes = (*notes, "Decide in the chat where it was asked.")
    elif not may_approve:
        verbs = tuple(verb for verb in verbs if verb not in _APPROVING_VERBS)
        if deciders_have_copies:
            notes = (*notes, "Sent to those who may approve it.")

    # the deciders, as people in this place read them
    circle = card.circle
    if origin_chat:
        if origin_chat.has_own_name:
            chat = one_line(origin_chat.words)
        else:
            chat = "the chat where it was asked"
        circle = proposal.deciders.circle(one_line(proposal.requester.label), chat=chat, names=names)
        circle = replace(circle, stand_ins=card.circle.stand_ins)
    return replace(
        card,
        verbs=verbs,
        notes=notes,
        circle=circle,
        asker_decides=card.asker_decides and origin_chat is None,
        asked_in=one_line(origin_chat.words) if origin_chat else "",
        origin=origin_chat.address if origin_chat else None,
    )


def format_call(card: Card) -> str:
    """Return all that a card says about its call as plain text, for "View all". Each value appears once.

    Further lines of a value are indented, so that they can't look like fields of their own.
    """
    if card.batch:
        return "\n\n".join([card.title, number_texts([row.card for row in card.rows])])
    risk = f"{card.level}, {card.risk_reason}" if card.risk_reason else card.level
    lines = [card.title, "", f"Tool: {card.tool_name}", f"Risk: {risk}"]
    if card.acts_as:
        lines.append(card.acts_as)
    if card.reason:
        lines.append(f"Reason: {_indent(card.reason)}")
    lines += [annotation.words for annotation in card.annotations]
    lines += ["", "Changes"]
    for field in card.fields:
        lines += _list_change_lines(field)
    given = without_defaults(card.arguments, defaults_of(card.schema))
    # a value that the changes above show in full is not repeated
    unshown = {name: value for name, value in given.items() if not _is_shown_in_full(card, name, value)}
    if unshown:
        lines += ["", "Arguments", json.dumps(unshown, indent=2, ensure_ascii=False, sort_keys=True)]
    defaults = _list_defaults(card)
    if defaults:
        lines += ["", "Defaults", *defaults]
    if card.data:
        lines += ["", "Result", card.data]
    return "\n".join(lines)


def number_texts(cards: Sequence[Card]) -> str:
    """Return `format_call` of several cards, numbered."""
    texts = [f"{number} of {len(cards)}\n{format_call(card)}" for number, card in enumerate(cards, 1)]
    return "\n\n".join(texts)


def format_call_and_outcome(card: Card) -> str:
    """Return the text of `format_call`, followed by the votes, the notes and the outcome."""
    parts = [format_call(card), *card.votes, *card.notes]
    if not card.pending:
        parts += [card.end, card.result]
    return "\n\n".join(parts)


def find_accounts_on_card(proposal: Proposal, schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the accounts and places that a card names: deciders, people in arguments, a rule's place."""
    accounts_in_arguments = _find_accounts(schema, proposal.arguments).values()
    return find_accounts_in(proposal.rule).union(proposal.deciders.people, accounts_in_arguments)


def redact_fields(
    fields: Sequence[PreviewField], schema: Mapping[str, Any], secrets: Sequence[str]
) -> tuple[PreviewField, ...]:
    """Return the fields for people: labelled, without secrets."""

    def hide_secrets(name: str, value: str | None) -> str | None:
        if value is None:
            return None
        # the name may be about a file, as "content of secrets.md": then the value need not be a secret
        if " of " in name:
            return redact_text(value, secrets)
        hidden: str | None = redact({name: value}, schema, secrets)[name]
        return hidden

    shown = []
    for field in fields:
        old = hide_secrets(field.field, field.old_value)
        new = hide_secrets(field.field, field.new_value)
        shown.append(PreviewField(one_line(label_of(field.field)), old, new, field.titled))
    return tuple(shown)


def _make_group(siblings: Sequence[Proposal | Sibling]) -> Group:
    waiting = [proposal for proposal in siblings if proposal.state is State.PROPOSED]
    members = [proposal.id for proposal in waiting if proposal.risk.level is not Level.DESTRUCTIVE]
    return Group(
        size=len(siblings),
        open=len(waiting),
        round=sum(proposal.round for proposal in siblings),
        members=tuple(members),
        irreversible=len(waiting) - len(members),
    )


def _describe_state(proposal: Proposal) -> tuple[Tone, str]:
    """Return the tone of a proposal's state, and the sentence on it; also for one that has not ended."""
    outcome_of_kind = proposal.kind.find_outcome(proposal)
    if outcome_of_kind:
        return outcome_of_kind
    who = proposal.decided_by or "someone"
    answered = proposal.kind.approved_word  # "Approved", unless the kind has another word
    # cards of final kinds have neither "Done." nor "Nothing was changed."; where a tool has a sentence of its
    # own on the result, that takes the place of "Done."
    done = "" if proposal.kind.is_final or proposal.told else "Done. "
    unchanged = "" if proposal.kind.is_final else " Nothing was changed."
    match proposal.state:
        case State.PROPOSED:
            return Tone.WAITING, proposal.kind.waiting_text
        case State.APPROVED:
            return Tone.WAITING, f"{answered} by {who}. It has not run yet."
        case State.EXECUTING:
            return Tone.WAITING, f"{answered} by {who}. {_describe_run(proposal)}…"
        case State.SUCCEEDED:
            if proposal.ended_badly:
                done = f"{proposal.ended_badly}. "
            if proposal.undone:
                return Tone.QUIET, f"{done}{answered} by {who}. Undone by {proposal.undone}."
            tone = Tone.WARNED if proposal.ended_badly or proposal.wrong_fields else Tone.GOOD
            return tone, f"{done}{answered} by {who}."
        case State.DECLINED:
            return Tone.QUIET, f"Declined by {who}{because(proposal)}."
        case State.EXPIRED:
            return Tone.QUIET, f"Expired: {why_expired(proposal, proposal.kind.decided_word)}.{unchanged}"
        case State.CANCELLED if proposal.cause is Cause.UNDELIVERABLE:
            return Tone.BAD, f"Could not be delivered to anyone who may decide.{unchanged}"
        case State.CANCELLED:
            return Tone.QUIET, _describe_withdrawal(proposal, who)
        case State.FAILED:
            return Tone.BAD, _describe_failure(proposal, who)


def _describe_run(proposal: Proposal) -> str:
    if proposal.cause is Cause.STOPPED:
        return "Stopping"
    if proposal.progress and not _find_printed_lines(proposal):
        return f"Running ({proposal.progress})"
    return "Running"


def _find_printed_lines(proposal: Proposal) -> str:
    """Return the lines that a run printed last; empty if its progress is a few words, or none."""
    progress = proposal.progress or ""
    return progress if "\n" in progress else ""


def _describe_withdrawal(proposal: Proposal, who: str) -> str:
    match proposal.cause:
        case Cause.NO_LONGER_ASKED:
            return "Withdrawn: the call that asked this has ended."
        case Cause.WRITTEN:
            return f"Withdrawn: {who} wrote in the conversation instead."
        case _:
            return f"Withdrawn by {who}{because(proposal)}."


def _describe_failure(proposal: Proposal, who: str) -> str:
    match proposal.cause:
        case Cause.OUTCOME_UNKNOWN:
            return (
                f"Outcome unknown: {who} approved it and it started, but never reported back. "
                "Check whether it happened before you retry."
            )
        case Cause.STOPPED:
            return f"Stopped while it ran, after {who} approved it. Check what it did before you retry."
        case Cause.TOOL_CHANGED:
            return f"Not run: the tool changed after {who} approved it. Nothing was changed."
        case Cause.FORBIDDEN:
            return f"Not run: {who} approved it, but a rule now forbids it. Nothing was changed."
        case Cause.DISCONNECTED:
            return f"Not run after {who} approved it. Nothing was changed."
        case _:
            return f"Failed after {who} approved it."


def _list_notes(
    proposal: Proposal,
    secrets: Sequence[str],
    names: Names,
    *,
    pause_words: str,
    declined_before: Proposal | None,
) -> list[str]:
    """Return the notes of a card, without secrets, such as on the votes, edits, a trial and an undo."""
    notes = []
    is_open = proposal.state is State.PROPOSED
    if proposal.quorum > 1 and is_open:
        approvals = sum(vote.verb == Verb.APPROVE for vote in proposal.votes)
        notes.append(f"{approvals} of {proposal.quorum} approvals so far.")
    if pause_words and proposal.state in (State.PROPOSED, State.APPROVED):
        notes.append(f"{one_line(pause_words)}. Nothing runs until an admin uses /approvals resume.")
    if declined_before and declined_before.decided_at and is_open:
        ago = format_relative(declined_before.decided_at, proposal.created_at)
        who = declined_before.decided_by or "Someone"
        notes.append(f"{who} declined the same, {ago} when this was asked.")
    if proposal.ran_without_asking:
        notes.append(f"No one was asked: {with_names(proposal.rule, names)}.")
    if is_open and proposal.deciders.lead in _LEAD_TEXTS:
        notes.append(f"{_LEAD_TEXTS[proposal.deciders.lead]}: {with_names(proposal.rule, names)}.")
    if proposal.edited_by and not proposal.edits:
        notes.append(f"Edited by {proposal.edited_by} before approval.")
    edits = [one_line(sentence(edit.words)) for edit in proposal.edits[-_MAX_EDIT_NOTES:]]
    notes += [redact_text(edit, secrets) for edit in edits]
    if proposal.trial is not None:
        notes += _list_trial_notes(proposal, proposal.trial)
    if proposal.connection and proposal.connection.is_personal and _waits_for_owner(proposal):
        notes.append(f"Only {proposal.connection.owner_label} can let it run: it runs as them.")
    if proposal.changed and is_open:
        notes.append("The data changed after approval, so this needs a new decision.")
    if proposal.result and proposal.told is None and not fits_card(proposal.result):
        notes.append("The result is long. All of it is in a file.")
    notes += [redact_text(note, secrets) for note in _list_undo_notes(proposal)]
    return notes


def _list_trial_notes(proposal: Proposal, trial: Trial) -> list[str]:
    """Return notes on a trial, also on whether people chose its result or to run the call for real."""
    if proposal.for_real:
        begun = "It ran" if proposal.state is State.SUCCEEDED else "Approved to run"
        return [f"{begun} for real, instead of applying its trial."]
    if proposal.state is not State.PROPOSED:
        return []
    why = one_line(sentence(trial.why))
    if not trial.tried:
        return [f"Not tried first. {why}"]
    if not trial.applies:
        return [f"Tried in a closed copy. It can't be applied: {why}"]
    return ["Tried in a closed copy. Approve applies exactly this, without running it again."]


def _waits_for_owner(proposal: Proposal) -> bool:
    """Tell if the call still needs the consent of the person under whose account it runs.

    That person agrees by a vote to approve, or by a `CONSENT` if they may not decide. Where the requester
    decides alone, no consent besides the decision is needed.
    """
    if proposal.state is not State.PROPOSED or proposal.connection is None:
        return False
    if proposal.requester_decides_alone or _is_asker_enough(proposal):
        return False
    owner = proposal.connection.owner
    return not any(
        vote.verb in (Verb.APPROVE, CONSENT) and str(vote.actor) == owner for vote in proposal.votes
    )


def _is_asker_enough(proposal: Proposal) -> bool:
    """Tell if the requester's approval is enough by the rules, and these name no other people."""
    deciders = proposal.deciders
    return deciders.requester and not deciders.four_eyes and not deciders.people and proposal.quorum == 1


def _list_undo_notes(proposal: Proposal) -> Iterator[str]:
    """Yield notes on what the call undoes, on fields that are not as approved, and on the call's own Undo."""
    if proposal.undoes and proposal.state is State.PROPOSED:
        yield f"This undoes proposal {proposal.undoes[:SHORT_ID_CHARS]}."
    if proposal.state is not State.SUCCEEDED:
        return
    if proposal.wrong_fields:
        values = ", ".join(one_line(field.words) for field in proposal.wrong_fields[:_MAX_CHECKED_FIELDS])
        yield f"⚠️ Checked: this is not what was approved: {values}."
    if proposal.undo_seconds and proposal.inverse and proposal.inverse.reason:
        yield sentence(f"It can't be undone after all: {one_line(proposal.inverse.reason)}")
    if proposal.undone_by and not proposal.undone:
        yield "Undo was pressed. It has a card of its own."


def _name_asker(proposal: Proposal) -> str:
    if proposal.agent:
        return describe_agent(proposal.agent, proposal.requester)
    if proposal.teammate:
        return f"{proposal.teammate}, a teammate, for {proposal.requester.label}"
    return proposal.requester.label


def _name_accounts(
    fields: tuple[PreviewField, ...], schema: Mapping[str, Any], arguments: Mapping[str, Any], names: Names
) -> tuple[PreviewField, ...]:
    """Return the fields with people's names instead of accounts that the arguments name."""
    accounts = _find_accounts(schema, arguments) if names else {}
    named = []
    for field in fields:
        account = field.new_value
        if account is not None and accounts.get(field.field) == account:
            named.append(replace(field, new_value=names.get(account, account)))
        else:
            named.append(field)
    return tuple(named)


def _find_accounts(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the accounts that arguments name, by the labels of their fields."""
    accounts = {}
    for field in fields_of(schema, arguments):
        if field.shape is Shape.USER and isinstance(field.value, str):
            accounts[one_line(field.label)] = field.value
    return accounts


def _format_vote(vote: Vote) -> str:
    reason = f" ({vote.reason})" if vote.reason else ""
    return one_line(f"{vote.who}: {vote.verb}{reason}")


def _find_tool_words(proposal: Proposal) -> str:
    """Return the tool's output: its last printed lines while it runs, then its answer or error."""
    if proposal.state is State.EXECUTING:
        return _find_printed_lines(proposal)
    if proposal.error:
        return proposal.error
    if proposal.told:  # the card's first line has the tool's own sentence in its place
        return ""
    return proposal.result or ""


def _show_result(result: str | None, secrets: Sequence[str]) -> str:
    """Return a result for people, a JSON object line by line, and all without secrets.

    Secrets are hidden twice, since the lines of an object may reveal another one.
    """
    if not result:
        return ""
    return redact_text(format_json_as_lines(redact_text(result, secrets)), secrets)


def _list_verbs(
    proposal: Proposal, schema: Mapping[str, Any], group: Group | None, *, grantable: bool
) -> tuple[Verb, ...]:
    """Return the verbs of a card's buttons: those for the proposal, then those for its group."""
    own: tuple[Verb, ...] = ()
    if proposal.state is State.PROPOSED:
        own = proposal.kind.list_buttons(
            proposal, fillable=bool(schema.get("properties")), grantable=grantable
        )
    elif (
        proposal.state is State.EXECUTING
        and Verb.STOP in proposal.kind.extra_verbs
        and proposal.cause is not Cause.STOPPED
    ):
        own = (Verb.STOP,)
    elif proposal.state is State.SUCCEEDED and proposal.undo_until and not proposal.undone_by:
        own = (Verb.UNDO,)
    elif proposal.state is State.FAILED and proposal.cause not in (Cause.TOOL_CHANGED, Cause.REFUSED):
        own = (Verb.RETRY,)
    if group is None or group.open < _MIN_SHARED_BUTTON:
        return own
    approve_all = (Verb.APPROVE_ALL,) if group.open - group.irreversible >= _MIN_SHARED_BUTTON else ()
    return (*own, *approve_all, Verb.DECLINE_ALL)


def _describe_undo(proposal: Proposal) -> str:
    """Return a sentence for deciders on whether the call can be undone; empty where that is unknown."""
    if proposal.state is not State.PROPOSED or proposal.undo_seconds is None:
        return ""
    if proposal.undo_seconds:
        return f"{_CAN_BE_UNDONE_TEXT} for {format_span(timedelta(seconds=proposal.undo_seconds))}."
    reason = proposal.inverse.reason if proposal.inverse else ""
    if reason:
        return sentence(f"Nod can't undo this: {reason}")
    return "Nod can't undo this."


def _describe_checks(proposal: Proposal) -> str:
    """Return a sentence that the fields, read again after the run, are as approved.

    Empty where a field differs, or none could be read.
    """
    if proposal.wrong_fields or not proposal.read_again or proposal.undone:
        return ""
    values = ", ".join(one_line(field.words) for field in proposal.read_again[:_MAX_CHECKED_FIELDS])
    others = len(proposal.read_again) - _MAX_CHECKED_FIELDS
    if others > 0:
        return f"Checked: {values} and {others} more as approved."
    return f"Checked: {values}."


def _list_change_lines(field: PreviewField) -> list[str]:
    old, new = field.old_value, field.new_value
    changed_lines = diff(old, new, folded=False)
    if changed_lines is not None:
        return [f"- {field.field}", f"    {_indent(changed_lines)}"]
    if old is None or old == new:
        shown = "(nothing)" if new is None else new
        return [f"- {field.field}: {_indent(shown)}"]
    if new is None:
        return [f"- {field.field} ({REMOVED}): {_indent(old)}"]
    return [f"- {field.field}", f"  old: {_indent(old)}", f"  new: {_indent(new)}"]


def _indent(value: str) -> str:
    return value.replace("\r", "␍").replace("\n", "\n    ")


def _is_shown_in_full(card: Card, name: str, value: Any) -> bool:
    """Tell if a field of the card shows this argument literally, or as a complete outline.

    The field must have the argument's name. A long value counts under any name, since two fields hardly have
    the same long value.
    """
    if isinstance(value, str):
        texts = {value}
    else:
        texts = {json.dumps(value, ensure_ascii=False, indent=2)}
    if isinstance(value, dict | list) and value:
        texts.add(outline_value(value))
    label = label_of(name)
    for field in card.fields:
        shown = field.new_value
        if shown in texts and (field.field == label or len(shown or "") >= _MIN_UNIQUE_CHARS):
            return True
    return False


def _list_defaults(card: Card) -> list[str]:
    """Return a line for each argument that has its default, unless the changes show it."""
    given = without_defaults(card.arguments, defaults_of(card.schema))
    labels_elsewhere = {label_of(name) for name in given}
    labels_elsewhere.update(field.field for field in card.fields)
    lines = []
    for name, words in list_values(card.schema, card.arguments):
        label = label_of(name)
        if label not in labels_elsewhere:
            lines.append(f"- {label}: {words}")
    return lines
