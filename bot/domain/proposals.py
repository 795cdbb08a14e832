"""A proposal: a call that people decide before it takes effect, and that is frozen until they do.

Usually it is one write call of a tool; its `ProposalKind` says how plans, questions and others differ. It
goes through the states of `TRANSITIONS`. Its *digest* is a hash over the tool and every argument, so that
only what people saw can run. Its *round* grows each time its contents change, so that an outdated button
decides nothing.

Some nouns of its fields:

- A *sibling* is another proposal of the same answer of the agent. A *batch* is several siblings as one table
  on one card.
- The *lead agent* is the one that people write to. A *teammate* is a sub-agent that it started.
- A *grant* lets calls run without a decision if they are like a call that people approved.
- A *trial* is a run in a closed copy before the decision.
- A *step* is a target that is notified of the waiting card, and when.

The rows behind it are in ``bot/store/proposals.py``; who may decide is in ``bot/domain/policy.py``.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self

from bot.domain.annotations import Annotation, find_record
from bot.domain.connections import Connection
from bot.domain.people import NO_NAMES, Actor, Names, is_group
from bot.domain.steps import DueStep, find_next
from bot.domain.text import shorten
from bot.domain.trials import Trial
from bot.domain.verbs import Button, Verb

_MAX_VALUE_CHARS = 120  # the length of a value in a sentence about that value alone
_MAX_INLINE_CHARS = 60  # the length of a value in a sentence about several values
USUAL_DESTRUCTIVE_REASON = "it cannot be undone"  # the reason of a tool that gives no other
REMOVED = "removed"
"""The word in place of a field's new value, if the field has no value afterwards."""
WARN_SHARE = 0.2
"""Deciders are warned when this share of the waiting time is left."""
_CANONICAL_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


class Level(StrEnum):
    """The level of a call's risk."""

    READ = "read"  # changes nothing; usually runs immediately
    WRITE = "write"  # an ordinary change, which people can repair
    DESTRUCTIVE = "destructive"  # loses something, or reaches people who cannot un-see it


@dataclass(frozen=True, slots=True)
class Risk:
    """The harm that a call can do."""

    level: Level
    reason: str  # in words that fit on a card
    # True: someone whom Nod trusts says that the level is no higher. False: a write asks people even where
    # otherwise only destructive calls ask
    vouched: bool = True

    @property
    def writes(self) -> bool:
        return self.level is not Level.READ


class State(StrEnum):
    """The state of a proposal."""

    PROPOSED = "proposed"  # waits for people; votes gather
    APPROVED = "approved"  # enough votes; nothing has run yet
    EXECUTING = "executing"  # claimed by exactly one process; the tool may be running
    SUCCEEDED = "succeeded"  # the tool said so; its result is stored
    FAILED = "failed"  # the tool said no, or no one knows (`Cause.OUTCOME_UNKNOWN`); a person may retry
    DECLINED = "declined"  # a person said no
    EXPIRED = "expired"  # no one decided in time
    CANCELLED = "cancelled"  # withdrawn, or it could not be shown to anyone (`Cause.UNDELIVERABLE`)


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.PROPOSED: frozenset({State.APPROVED, State.DECLINED, State.EXPIRED, State.CANCELLED}),
    # back to proposed: what the preview showed as old has changed, so people look again
    State.APPROVED: frozenset({State.EXECUTING, State.PROPOSED, State.CANCELLED, State.FAILED}),
    State.EXECUTING: frozenset({State.SUCCEEDED, State.FAILED}),
    # a retry is approved again, so that every execution passes the same checks and the same claim; or people
    # are asked again, where the call runs as someone other than the person who retries it
    State.FAILED: frozenset({State.APPROVED, State.PROPOSED}),
    State.SUCCEEDED: frozenset(),
    State.DECLINED: frozenset(),
    State.EXPIRED: frozenset({State.PROPOSED}),  # a late press asks again, with a fresh preview
    State.CANCELLED: frozenset(),
}
"""Every legal change of state; `bot.store.transitions.change_proposal` guards each by state and version."""

SETTLED = frozenset({State.SUCCEEDED, State.FAILED, State.DECLINED, State.EXPIRED, State.CANCELLED})
"""States in which the model can be told how the call ended."""
APPROVED_STATES = frozenset({State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED})
"""States of a call that people approved, or that needed no approval."""


class Cause(StrEnum):
    """The cause of a state, where the state alone would blur two different ends."""

    ERROR = "error"  # failed: the tool refused or raised
    OUTCOME_UNKNOWN = "outcome_unknown"  # failed: it may or may not have happened
    STOPPED = "stopped"  # failed: a person ended its run; while it executes: a person wants the run to end
    REFUSED = "refused"  # failed: the tool refused and says that asking again cannot help
    TOOL_CHANGED = "tool_changed"  # failed: the tool is not the one that was shown
    FORBIDDEN = "forbidden"  # failed: a rule forbids it by now, so it was not run
    DISCONNECTED = "disconnected"  # failed: the account in whose name it runs is gone, or another one
    UNDELIVERABLE = "undeliverable"  # cancelled: the card could not be posted anywhere
    TAKEN_BACK = "taken_back"  # cancelled: by the requester or an admin
    NO_LONGER_ASKED = "unasked"  # cancelled: the call that asked this question no longer waits for the answer
    WRITTEN = "written"  # cancelled: the person who was asked wrote in the conversation instead
    SUPERSEDED = "superseded"  # cancelled: a newer version of the plan took its place
    REVISE = "revise"  # declined: the plan goes back for changes; ``decline_reason`` says which


class Tone(StrEnum):
    """The tone in which a card shows its outcome, such as a colour. A text always says the same."""

    WAITING = "waiting"  # no one has decided, or the call has not ended
    GOOD = "good"
    BAD = "bad"
    WARNED = "warned"  # the call ran, but did not end well
    QUIET = "quiet"  # nothing ran, or what ran was undone


@dataclass(frozen=True, slots=True)
class PreviewField:
    """One thing that will change, with its values as text for people."""

    field: str  # the name of what changes
    old_value: str | None  # None: the field has no value yet
    new_value: str | None  # None: the field will have no value
    titled: bool = False  # the tool's own summary quotes the new value in the title


def hash_old_values(preview: Sequence[PreviewField]) -> str:
    """Return the SHA-256, in hex, of the old values in a preview."""
    return hashlib.sha256(canonical(old_values(preview)).encode(errors="surrogatepass")).hexdigest()


def old_values(preview: Sequence[PreviewField]) -> list[tuple[str, str | None]]:
    """Return the name and the old value of each field of a preview.

    If an old value changes before the run, people are asked again.
    """
    return [(field.field, field.old_value) for field in preview]


@dataclass(frozen=True, slots=True)
class CheckedField:
    """One field of a preview as it was read again after the run, in brief."""

    field: str
    now: str | None  # the value that was read
    approved: str | None  # the approved value
    agrees: bool  # the field has the approved value

    @property
    def words(self) -> str:
        """For example ``priority is high``, or ``priority is low, not high``."""
        values = (self.now or "", self.approved or "")
        is_long = any(len(value) > _MAX_INLINE_CHARS or "\n" in value.strip() for value in values)
        now, approved = _quote_value(self.now), _quote_value(self.approved)
        if self.agrees:
            return f"{self.field} is {'as approved' if is_long else now}"
        if is_long:
            now = "something else" if self.now else now
            approved = "what was approved"
        return f"{self.field} is {now}, not {approved}"


@dataclass(frozen=True, slots=True)
class Inverse:
    """The call that undoes what ran, or the reason why no call does.

    The arguments of the call are stored apart.
    """

    reason: str = ""  # the reason why no call undoes it; empty if a call does
    tool_name: str = ""
    digest: str = ""  # the digest of the call that undoes
    # a hash of the values that the run left behind: `hash_old_values` of the undo's preview, right after the
    # run. If it differs when Undo is pressed, someone has changed the values since
    left: str = ""
    title: str = ""  # the effect of the undo, in brief and without secrets, like the fields
    fields: tuple[PreviewField, ...] = ()

    @property
    def words(self) -> str:
        """For example ``Change priority of issue #3 (Priority: high → normal)``."""
        short_fields = [field for field in self.fields if _is_short(field)]
        changes = ", ".join(f"{field.field}: {_format_change(field)}" for field in short_fields)
        return f"{self.title} ({changes})" if changes else self.title


def _quote_value(value: str | None) -> str:
    if value is None:
        return "none"
    return value or "empty"


def _is_short(field: PreviewField) -> bool:
    values = (field.old_value or "", field.new_value or "")
    return all(len(value) <= _MAX_INLINE_CHARS and "\n" not in value for value in values)


@dataclass(frozen=True, slots=True)
class Vote:
    """One Person's vote in one round, or another verb that changed the proposal."""

    person_id: str
    actor: Actor  # the account that pressed
    verb: str  # a `Verb`, or ``consent`` (`bot.domain.connections.CONSENT`)
    reason: str | None
    at: datetime
    absent: Actor | None = None  # the absent person whose right the vote used; None: the voter's own right

    @property
    def who(self) -> str:
        """For example ``Ben``, or ``Ben for Ana``."""
        if self.absent:
            return f"{self.actor.label} for {self.absent.label}"
        return self.actor.label


@dataclass(frozen=True, slots=True)
class Edited:
    """One edit of a proposal's arguments: the fields that it changed, without secrets."""

    round: int  # the round that began with the edit
    by: str  # the name of the person
    fields: tuple[PreviewField, ...]

    @property
    def words(self) -> str:
        """The edit on a card, for example ``Ben changed color: red → blue``.

        Of a nested value only the field's name.
        """
        changes = []
        for change in self.fields:
            if _is_nested(change):
                changes.append(change.field)
            else:
                changes.append(f"{change.field}: {_format_change(change)}")
        return f"{self.by} changed {', '.join(changes)}"

    @property
    def words_for_model(self) -> str:
        """The edit for the model: ``Ben changed color from red to blue``."""
        changes = []
        for change in self.fields:
            old, new = _shorten_value(change.old_value), _shorten_value(change.new_value)
            changes.append(f"{change.field} from {old} to {new}")
        return f"{self.by} changed {', '.join(changes)}"


def _is_nested(field: PreviewField) -> bool:
    """Tell if one of the values is an object or a list of objects, which the card shows as an outline."""
    values = (field.old_value or "", field.new_value or "")
    return any(value.startswith(("{", "[{", "[[")) for value in values)


def _format_change(field: PreviewField) -> str:
    new = f"({REMOVED})" if field.new_value is None else shorten(field.new_value, _MAX_VALUE_CHARS)
    if field.old_value is None:
        return new
    return f"{shorten(field.old_value, _MAX_VALUE_CHARS)} → {new}"


def _shorten_value(text: str | None) -> str:
    if text is None:
        return "nothing"
    return shorten(text, _MAX_VALUE_CHARS)


@dataclass(frozen=True, slots=True)
class DeciderNames:
    """The people who may decide, as a card names them. It is made of `Deciders`, the rule."""

    members: tuple[Actor | str, ...]  # accounts; roles, groups and chats in words
    except_name: str = ""  # the name of the person who may not decide, although the members include them
    stand_ins: tuple[str, ...] = ()  # people who decide for others, such as ``Ben for Ana``

    @property
    def parts(self) -> list[Actor | str]:
        """The pieces of `words`: accounts, which channels mention, and the texts between them."""
        deciders = [*self.members, *self.stand_ins]
        if not deciders:
            return ["no one"]
        parts: list[Actor | str] = []
        for position, decider in enumerate(deciders, 1):
            if 1 < position == len(deciders):
                parts.append(" or ")
            elif position > 1:
                parts.append(", ")
            parts.append(decider)
        if self.except_name:
            parts.append(f", but not {self.except_name}")
        return parts

    @property
    def words(self) -> str:
        """For example ``Ana, any approver or any admin``."""
        return "".join(part.label if isinstance(part, Actor) else part for part in self.parts)


@dataclass(frozen=True, slots=True)
class Deciders:
    """The rule on who may decide, frozen with the proposal so that its card stays true."""

    requester: bool  # the requester may decide
    roles: tuple[str, ...] = ()  # people with one of these roles may
    people: tuple[str, ...] = ()  # these accounts and user groups may
    members: str | None = None  # the address of a chat, as text, in which anyone may decide
    four_eyes: bool = False  # the requester may not approve it
    # for a plan that the lead agent may decide, too: "lead" or "both", as in `bot.domain.plans.Approver`
    lead: str | None = None
    escalated: str | None = None  # the first of `escalation_chats`
    place: str | None = None  # the place of the request, since some roles count only in some places
    # the other `escalation_chats`; a field apart, since earlier releases read only ``escalated`` from a row
    also_escalated: tuple[str, ...] = ()

    @property
    def escalation_chats(self) -> tuple[str, ...]:
        """The chats, as addresses, in which anyone may decide because no one did in time."""
        first = (self.escalated,) if self.escalated else ()
        return (*first, *self.also_escalated)

    def escalate(self, roles: Iterable[str], targets: Sequence[str]) -> "Deciders":
        """Return the deciders with further roles, and with the people at ``targets``.

        A target is a user group, the address of a chat, or an account, which is kept like a chat.
        """
        groups = [target for target in targets if is_group(target)]
        others = [target for target in targets if target not in groups]
        chats = tuple(dict.fromkeys((*self.escalation_chats, *others)))
        return replace(
            self,
            roles=tuple(dict.fromkeys((*self.roles, *roles))),
            people=tuple(dict.fromkeys((*self.people, *groups))),
            escalated=chats[0] if chats else None,
            also_escalated=chats[1:],
        )

    def list_named(self, requester: Actor) -> tuple[Actor, ...]:
        """Return the accounts that may decide by name, not by a role. Reminders mention them."""
        asker = (requester,) if self.requester and not self.four_eyes else ()
        people = [Actor.parse(name) for name in self.people if _is_account(name)]
        return tuple(dict.fromkeys((*asker, *people)))

    def circle(self, requester: str, *, chat: str = "this chat", names: Names = NO_NAMES) -> "DeciderNames":
        """Return the deciders as people read them.

        ``requester``: the requester's name. ``chat``: the chat of the request, as the reader would call it.
        """
        members: list[Actor | str] = []
        if self.requester and not self.four_eyes:
            members.append(requester)
        members += [f"any {role}" for role in self.roles]
        for name in self.people:
            members.append(Actor.parse(name, names.get(name, "")) if _is_account(name) else name)
        if self.members:
            members.append(f"anyone in {chat}")
        if self.also_escalated:
            members.append("anyone in the chats it was escalated to")
        elif self.escalated:
            members.append("anyone in the chat it was escalated to")
        # the requester is not among named accounts, but may have one of the roles or be a member
        are_all_accounts = all(isinstance(member, Actor) for member in members)
        may_seem_to_decide = self.four_eyes and not are_all_accounts
        return DeciderNames(tuple(members), except_name=requester if may_seem_to_decide else "")

    def in_words(self, requester: str, *, elsewhere: bool = False) -> str:
        """Return the deciders in words, for example ``Ana, any approver or any admin``.

        ``elsewhere``: read outside the originating chat.
        """
        chat = "the chat where it was asked" if elsewhere else "this chat"
        return self.circle(requester, chat=chat).words


def _is_account(name: str) -> bool:
    """Tell if a decider is named by an account, such as ``slack:T1/U1``, and not by another word."""
    return ":" in name.strip(":")


class Sibling(NamedTuple):
    """The facts on one proposal of an answer, for the card that has the buttons for all of them."""

    id: str
    state: State
    round: int
    risk: Risk
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class AskerFacts:
    """The facts for the line of a card on who asked."""

    name: str
    place: str  # the chat of the request, in words; empty on a card in that chat
    pending: bool  # the proposal still waits
    decides: bool  # the asker may decide alone


def offer_decision(proposal: "Proposal", *, grantable: bool, **_unused_facts: bool) -> tuple[Verb, ...]:
    """Return the verbs of the buttons of an open proposal, for kinds without a function of their own.

    The facts that such a function may need are passed by keyword: ``grantable``, if the rules let people give
    a grant with their approval, and ``fillable``, if the arguments have fields.
    """
    may_allow_similar = (
        Verb.SIMILAR in proposal.kind.extra_verbs
        and proposal.quorum == 1
        and grantable
        and not proposal.undoes
    )
    was_tried = proposal.trial is not None and proposal.trial.tried
    # a trial that can't be applied leaves only running it for real
    may_approve = proposal.trial is None or not proposal.trial.is_refused

    verbs = []
    if may_approve:
        verbs.append(Verb.APPROVE)
    verbs.append(Verb.DECLINE)
    if proposal.kind.may_edit and not proposal.undoes:
        verbs.append(Verb.EDIT)
    if proposal.is_from_model:
        verbs.append(Verb.ASK)
    verbs.append(Verb.EXTEND)
    if may_approve and may_allow_similar:
        verbs.append(Verb.SIMILAR)
    if may_mute(proposal):
        verbs.append(Verb.MUTE)
    if was_tried:
        verbs.append(Verb.FOR_REAL)
    return tuple(verbs)


def may_mute(proposal: "Proposal") -> bool:
    """Tell if people may mute cards like this one: others than the requester decide, without urgency."""
    asks_others = proposal.deciders.four_eyes or not proposal.deciders.requester
    is_urgent = proposal.risk.level is Level.DESTRUCTIVE or bool(proposal.deciders.escalated)
    return asks_others and proposal.kind.runs and not proposal.undoes and not is_urgent


def find_no_outcome(_: "Proposal") -> "tuple[Tone, str] | None":
    """Return None: this kind uses the common words for how a proposal stands or ended."""
    return None


def find_no_words(_: "Proposal") -> str:
    """Return an empty text: this kind uses the common words for the model."""
    return ""


def introduce_asker(asker: AskerFacts, asked: str = "Asked by") -> str:
    """Return the line on who asked, on a card in another chat with the place of the request."""
    if asker.place:
        return f"{asked} {asker.name} in {asker.place}"
    return f"{asked} {asker.name}"


def is_never_own(_: Mapping[str, Any]) -> bool:
    """Return False: of this kind, the requester decides no proposal alone."""
    return False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProposalKind:
    """A kind of proposal: its words, what people may do with it, who decides, and whether it runs.

    The kinds are in ``bot/domain/kinds/``. Each is compared by identity. The defaults are right for most
    kinds.
    """

    name: str  # in rows, rules and the API
    waiting_text: str  # the sentence on its card while no one has decided

    # words
    approved_word: str = "Approved"  # what the deciders did, at the beginning of a sentence on its card
    decided_word: str = "decided"  # the verb for it in the middle of a sentence, as "no one decided in time"
    approved_text: str = "Approved."  # the reply to the vote that approves it
    edited_text: str = "Edited. It needs approval in this form."
    declined_text: str = "Declined."
    duplicate_text: str = ""  # why a second proposal of the kind in one answer is refused; empty: it is not
    risk_text: str = ""  # the text on its card instead of the risk
    no_approval_text: str = ""  # why no one can approve it; empty: people can
    no_edit_text: str = ""  # why no one can edit it; empty: people can
    introduce: Callable[[AskerFacts], str] = introduce_asker  # makes the line on who asked
    # makes the words on how it stands or ended, for its card; None: the usual words
    find_outcome: "Callable[[Proposal], tuple[Tone, str] | None]" = find_no_outcome
    tell_model: "Callable[[Proposal], str]" = find_no_words  # the same for the model; empty: the usual words

    # verbs
    extra_verbs: frozenset[Verb] = frozenset()  # people may press these, besides the verbs of every kind
    list_buttons: "Callable[..., tuple[Verb, ...]]" = offer_decision  # lists the buttons while it waits
    buttons: Mapping[Verb, Button] = field(default_factory=dict)  # buttons with labels of its own

    # who decides
    always_asks: bool = True  # no rule and no grant lets it run without a decision
    is_own: Callable[[Mapping[str, Any]], bool] = is_never_own  # True: the requester decides alone
    hides_own: bool = False  # if the requester decides alone, no one else sees it
    is_of_script: bool = False  # a script asks, and reads the outcome
    # chat members do not decide it, nor does the requester, unless they are alone at this machine
    for_approvers: bool = False
    has_lead: bool = False  # rules may give the lead agent of a team a say (`Deciders.lead`)

    # its run and its place on cards
    runs: bool = True  # its tool runs after the approval; False: the tool only words how it ended
    runs_locked: bool = False  # it runs also while its teammate is locked, when other calls may only read
    # its card shows no current values, so nothing on it can become outdated
    has_no_current_values: bool = False
    is_final: bool = False  # programs act on its end, so it never opens again
    is_answer: bool = False  # approving it answers a question and changes nothing
    is_form: bool = False  # people fill in its arguments, for another call that already runs and waits
    has_steps: bool = False  # its arguments are a plan
    hides_arguments: bool = False  # its card lists no arguments, even without a preview
    may_be_requested: bool = True  # people and programs may ask for it, not only Nod itself
    may_be_undone: bool = False
    is_batched: bool = False  # several proposals of one answer are one table
    runs_one_by_one: bool = False  # two proposals that change the same thing run one after the other
    may_claim_early: bool = False  # the transaction that approves it may also claim its run for this process
    is_counted: bool = True  # the insights count it
    # the kind to use instead if a call of the model led to it; None: this kind
    kind_if_model_asked: "ProposalKind | None" = None

    def __repr__(self) -> str:
        return self.name

    @property
    def may_edit(self) -> bool:
        return not self.no_edit_text


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal, read from its row. Most fields have the names of its columns."""

    id: str
    kind: ProposalKind
    conversation_id: str
    message_id: int  # the id of the line with the call: an answer of the agent, or a notice
    call_id: str  # the id that the model gave the call; empty if no model made it, but a person or a program
    position: int  # the position among the calls of its answer
    tool_name: str
    tool_version: str
    arguments: Mapping[str, Any]
    description: str  # what it will do, in one sentence for people
    preview: tuple[PreviewField, ...]
    risk: Risk
    reason: str  # why it was asked for, in the words of the model or the program
    requester: Actor
    deciders: Deciders
    quorum: int  # the number of approvals that it needs
    state: State
    round: int  # grows with new contents (edits, changed previews) and retries; a button is for one round
    version: int  # grows with every change
    digest: str  # of the call, as the function `digest` makes it
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    cause: Cause | None = None  # why it is in its state; None where the state says it
    votes: tuple[Vote, ...] = ()
    decided_by: str | None = None  # who decided, in words: people, a grant or the policy
    decided_from: str | None = None  # the channel of the decision
    decided_at: datetime | None = None
    decline_reason: str | None = None
    edited_by: str | None = None  # the name of the person who edited it last
    edits: tuple[Edited, ...] = ()  # oldest first
    changed: bool = False  # current values changed after an approval, so it waits again
    progress: str | None = None  # the progress that its tool reported, while it runs
    result: str | None = None  # the output of its tool
    ended_badly: str | None = None  # the bad end of a call that ran, such as "Ended with code 3"
    told: str | None = None  # the tool's own sentence on its result, for people; None if it gave none
    result_url: str | None = None
    error: str | None = None  # why it failed, in words
    rule: str = ""  # the rule behind the verdict on the call, in words
    declines: int = 1  # it is declined once this many people voted against it
    grant_id: int | None = None  # the grant that let it run
    ttl: timedelta = timedelta(hours=24)  # the time that it waits, again after each extension
    warn_at: datetime | None = None  # the time to warn deciders that it expires; None once they were
    remind_at: datetime | None = None  # the time of the next reminder; None: no reminder
    remind_every: timedelta | None = None
    escalate_at: datetime | None = None  # the time to let further people decide; None once they may
    escalate_to: str | None = None  # the address or the group of those people
    notify_at: datetime | None = None  # the time of the next step that adds no deciders; None: no more steps
    steps: tuple[DueStep, ...] = ()  # the steps of a notify rule; empty: `escalate_at` is the only step
    teammate: str = ""  # the name of the teammate that proposed it; empty: the lead agent
    trial: Trial | None = None  # None: no trial was made or wanted
    # after a trial, by the votes. True: run the call itself; False: apply the trial; None: no choice was made
    for_real: bool | None = None
    read_again: tuple[CheckedField, ...] = ()  # its fields as read after the run; empty: none could be read
    # the undo: the first three are about undoing this call, ``undoes`` says that this call is an undo itself
    undo_seconds: float | None = None  # the time for Undo after the run; 0: no Undo; None: not known
    inverse: Inverse | None = None  # the call that undoes it, or why none does; None: not known yet
    undoes: str | None = None  # the id of the proposal that this one undoes
    undone_by: str | None = None  # the id of the proposal that undoes this one, whether that ran or not
    undone: str | None = None  # the name of the person who had it undone; None until the undo has run
    undo_until: datetime | None = None  # its cards have the button Undo until then
    batch: str | None = None  # the id of the first proposal of its batch
    ticked: tuple[int, ...] = ()  # the steps of a plan that are done
    schedule: str | None = None  # the id of the schedule whose run asked for it
    annotations: tuple[Annotation, ...] = ()  # lines of features on its card
    connection: Connection | None = None  # the account under which it runs; None: Nod's own
    agent: str | None = None  # the agent that asked for the requester, as `Agent.key`; None: no agent

    @property
    def applies(self) -> bool:
        """True if approving applies the result of the trial; False if it runs the call itself."""
        return self.trial is not None and self.trial.applies and not self.for_real

    @property
    def card_id(self) -> str:
        """The id of the proposal whose posted card shows it: the first of its batch, else its own."""
        return self.batch or self.id

    @property
    def idempotency_key(self) -> str:
        """The key that every run of this proposal passes to its tool, which can use it to act only once."""
        return f"nod-{self.id}"

    @property
    def output_handle(self) -> str:
        """The handle under which the full output is kept if it is too long to show."""
        return f"out-{self.id}"

    @property
    def seen(self) -> str:
        """A hash of what its card shows: SHA-256, in hex, over the digest, the preview and the words.

        With it a press approves exactly what its person saw. Late annotations are not covered.
        """
        fields = [(change.field, change.old_value, change.new_value) for change in self.preview]
        shown = [self.digest, self.description, fields, self.risk.level, self.risk.reason, self.reason]
        if self.trial:
            shown.append(self.trial.token)
        lines = [(annotation.name, annotation.text) for annotation in self.frozen_annotations]
        if lines:
            shown.append(lines)
        return hashlib.sha256(canonical(shown).encode()).hexdigest()

    @property
    def frozen_annotations(self) -> tuple[Annotation, ...]:
        """The annotations that were on the card when it was posted."""
        return tuple(annotation for annotation in self.annotations if not annotation.is_late)

    @property
    def record(self) -> tuple[str, ...]:
        """The unusual facts about the call, compared with earlier calls, as its card says them."""
        return find_record(self.annotations)

    @property
    def shown_again(self) -> bool:
        """True if the same arguments wait for a decision once more, as after the old values changed."""
        first_round = self.edits[-1].round if self.edits else 1  # the round in which these arguments were new
        return self.state is State.PROPOSED and self.round > first_round

    @property
    def wrong_fields(self) -> tuple[CheckedField, ...]:
        """The fields that, read again after the run, do not have their approved values."""
        return tuple(field for field in self.read_again if not field.agrees)

    @property
    def settled(self) -> bool:
        return self.state in SETTLED

    @property
    def ran_without_asking(self) -> bool:
        """True if the call runs, or ran, without a decision: neither a vote nor a grant allowed it."""
        is_approved = self.state in (State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED)
        has_decision = bool(self.votes) or self.grant_id is not None
        return is_approved and self.decided_by is not None and not has_decision

    @property
    def requester_decides_alone(self) -> bool:
        """True if its requester decides it alone, as its kind says."""
        return self.kind.is_own(self.arguments)

    @property
    def all_steps(self) -> tuple[DueStep, ...]:
        """Its steps in the order in which they are due, with the step of an escalate rule."""
        if self.steps or self.escalate_at is None or self.escalate_to is None:
            return self.steps
        return (DueStep(self.escalate_to, self.escalate_at),)

    @property
    def is_escalated(self) -> bool:
        """True once it came to people of another chat or group, because no one decided in time."""
        has_escalated = any(step.is_over and step.escalates for step in self.steps)
        return has_escalated or bool(self.deciders.escalation_chats)

    @property
    def escalation_targets(self) -> tuple[str, ...]:
        """The chats, accounts and groups that it came to, or may come to, because no one decides in time."""
        targets = [self.escalate_to] if self.escalate_to else []
        targets += [step.to for step in self.steps if step.escalates]
        return tuple(dict.fromkeys(targets))

    @property
    def choices(self) -> tuple[str, ...] | None:
        """The answers that a question of the agent's offers; None for anything else."""
        if Verb.ANSWER in self.kind.extra_verbs:
            return tuple(self.arguments.get("choices") or ())
        return None

    @property
    def is_from_model(self) -> bool:
        """True if a call of the model led to it, so that the conversation continues when it ends."""
        return bool(self.call_id)


def start_timers(ttl: timedelta, remind_every: timedelta | None, now: datetime) -> dict[str, Any]:
    """Return the times of expiry, warning and reminder for a proposal that begins to wait now, by field."""
    return {
        "expires_at": now + ttl,
        "warn_at": now + ttl * (1 - WARN_SHARE),
        "remind_at": now + remind_every if remind_every else None,
    }


def time_steps(steps: tuple[DueStep, ...]) -> dict[str, Any]:
    """Return these steps, and the times of the next ones, by the names of a proposal's fields."""
    return {
        "steps": steps,
        "notify_at": find_next(steps, escalating=False),
        "escalate_at": find_next(steps, escalating=True),
    }


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text."""
    return _CANONICAL_ENCODER.encode(value)


def digest(
    tool_name: str, tool_version: str, arguments: Mapping[str, Any], connection: Connection | None = None
) -> str:
    """Return the SHA-256, in hex, of a call: the tool, its version, every argument, and the account."""
    call: list[Any] = [tool_name, tool_version, arguments]
    if connection:
        call.append(connection.key)
    return hashlib.sha256(canonical(call).encode()).hexdigest()


class Order(StrEnum):
    """The order of a list."""

    CHANGED = "changed"  # from the newest change to the oldest
    EXPIRES = "expires"  # from the first to expire to the last


class PageCursor(NamedTuple):
    """The last row of a page, in a list that is ordered by time: the row's time and id."""

    at: datetime
    id: str

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the output of `str`; raises ValueError for any other text."""
        time_text, _, ident = text.partition("~")
        at = datetime.fromisoformat(time_text.replace(" ", "+"))  # a "+" that a client did not escape
        if at.tzinfo is None or not ident.isalnum():
            raise ValueError(f"{text!r} is no place in a list")
        return cls(at, ident)

    @classmethod
    def of(cls, proposal: Proposal, order: Order) -> Self:
        return cls(proposal.expires_at if order is Order.EXPIRES else proposal.updated_at, proposal.id)


class ProposalFilter(NamedTuple):
    """A filter of proposals, and their order; a field that is None matches all."""

    tool: str | None = None
    kind: str | None = None
    level: Level | None = None
    own: bool = False  # True: only requests of the person who lists them
    words: str | None = None  # a text in the title, the tool's name or the requester's name
    channel: str | None = None  # the channel of the request
    accounts: frozenset[str] | None = None  # the accounts of the requester
    order: Order = Order.CHANGED


def group_by_card(proposals: Iterable[Proposal]) -> list[list[Proposal]]:
    """Group proposals by their cards: the rows of a batch in their order, or a single proposal."""
    groups: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        groups.setdefault(proposal.card_id, []).append(proposal)
    return [sorted(rows, key=lambda row: row.position) for rows in groups.values()]


def describe_others(other_count: int) -> str:
    """Return the remark on the ``other_count`` other rows of a batch, after words on one row; empty for 0."""
    if other_count:
        return f", and {other_count} more of its batch"
    return ""
