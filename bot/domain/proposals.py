"""A proposal: a call that people decide before it takes effect, and that is frozen until they do.

Usually it is one write call of a tool; its `ProposalKind` says how plans, questions and others differ (the
two are in one module because each names the other). A proposal goes through the states of ``TRANSITIONS`` in
``bot/domain/proposal_states.py``. Its *digest* is a hash over the tool and every argument, so that only what
people saw can run. Its *round* grows each time its contents change, so that an outdated button decides
nothing.

Some nouns of its fields:

- A *sibling* is another proposal of the same answer of the agent. A *batch* is several siblings as one table
  on one card.
- The *lead agent* is the one that people write to. A *teammate* is a sub-agent that it started.
- A *grant* lets calls run without a decision if they are like a call that people approved.
- A *trial* is a run in a closed copy before the decision.
- A *step* is a target that is notified of the waiting card, and when.

Its parts have modules of their own: its risk, its preview, its deciders. The rows behind it are in
``bot/store/proposals.py``; who may decide is in ``bot/domain/policy.py``.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bot.domain.annotations import Annotation, find_unusual_facts
from bot.domain.connections import Connection
from bot.domain.deciders import Deciders
from bot.domain.digests import to_canonical_json
from bot.domain.people import Actor
from bot.domain.preview import CheckedField, Edit, Inverse, PreviewField
from bot.domain.proposal_states import SETTLED, Cause, State, Tone
from bot.domain.risks import Level, Risk
from bot.domain.steps import DueStep, find_next
from bot.domain.trials import Trial
from bot.domain.verbs import Button, Verb

WARN_SHARE = 0.2
"""Deciders are warned when this share of the waiting time is left."""


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
    def voter_label(self) -> str:
        """For example ``Ben``, or ``Ben for Ana``."""
        if self.absent:
            return f"{self.actor.label} for {self.absent.label}"
        return self.actor.label


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
        and not proposal.undoes_proposal_id
    )
    was_tried = proposal.trial is not None and proposal.trial.tried
    # a trial that can't be applied leaves only running it for real
    may_approve = proposal.trial is None or not proposal.trial.is_refused

    verbs = []
    if may_approve:
        verbs.append(Verb.APPROVE)
    verbs.append(Verb.DECLINE)
    if proposal.kind.may_edit and not proposal.undoes_proposal_id:
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
    return asks_others and proposal.kind.runs and not proposal.undoes_proposal_id and not is_urgent


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
    digest: str  # of the call, as `make_digest` makes it
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
    edits: tuple[Edit, ...] = ()  # oldest first
    values_changed: bool = False  # current values changed after an approval, so it waits again
    progress: str | None = None  # the progress that its tool reported, while it runs
    result: str | None = None  # the output of its tool
    ended_badly: str | None = None  # the bad end of a call that ran, such as "Ended with code 3"
    # the tool's own sentence on its result, for people; None if it gave none
    result_sentence: str | None = None
    result_url: str | None = None
    error: str | None = None  # why it failed, in words
    rule_text: str = ""  # the rule behind the verdict on the call, in words
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
    # the undo: the first three are about undoing this call, ``undoes_proposal_id`` says that this call is an
    # undo itself
    undo_seconds: float | None = None  # the time for Undo after the run; 0: no Undo; None: not known
    inverse: Inverse | None = None  # the call that undoes it, or why none does; None: not known yet
    undoes_proposal_id: str | None = None  # the id of the proposal that this one undoes
    # the id of the proposal that undoes this one, whether that ran or not
    undo_proposal_id: str | None = None
    undone_by_name: str | None = None  # the name of the person who had it undone; None until the undo has run
    undo_until: datetime | None = None  # its cards have the button Undo until then
    batch: str | None = None  # the id of the first proposal of its batch
    ticked: tuple[int, ...] = ()  # the steps of a plan that are done
    schedule: str | None = None  # the id of the schedule whose run asked for it
    annotations: tuple[Annotation, ...] = ()  # lines of features on its card
    connection: Connection | None = None  # the account under which it runs; None: Nod's own
    agent: str | None = None  # the agent that asked for the requester, as `Agent.key`; None: no agent

    @property
    def applies_trial(self) -> bool:
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
            shown.append(self.trial.token_hash)
        lines = [(annotation.name, annotation.text) for annotation in self.frozen_annotations]
        if lines:
            shown.append(lines)
        return hashlib.sha256(to_canonical_json(shown).encode()).hexdigest()

    @property
    def frozen_annotations(self) -> tuple[Annotation, ...]:
        """The annotations that were on the card when it was posted."""
        return tuple(annotation for annotation in self.annotations if not annotation.is_late)

    @property
    def unusual_facts(self) -> tuple[str, ...]:
        """The unusual facts about the call, compared with earlier calls, as its card says them."""
        return find_unusual_facts(self.annotations)

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
        targets += [step.target for step in self.steps if step.escalates]
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
