"""Bodies about proposals.

`ProposalView` is a proposal as one person may see it. It is made of a `VisibleProposal`, which the core looks
up: the proposal, its card, and this person's rights. `_ProposalFields` are taken from the proposal as they
are, `_CardFields` from the card, and the rest is converted in `ProposalView.of_found`. Secrets are hidden.

Two fields need care: ``seen`` is a hash of what a card shows, which a press sends back. ``round`` is a number
that grows with each change of what is decided, such as an edit.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny, WrapValidator
from pydantic.json_schema import SkipJsonSchema

from bot.approvals.lookup.proposals import VisibleProposal
from bot.domain.chat import Answer
from bot.domain.forms import fields_of
from bot.domain.kinds import KINDS
from bot.domain.preview import CheckedField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.risks import Level
from bot.domain.verbs import Verb
from bot.web.schemas import DoneBody, Time, View, is_none
from bot.web.schemas.cards import (
    AnnotationView,
    BatchPlaceView,
    ButtonView,
    ChangeBody,
    ConnectionView,
    FieldView,
    GroupView,
    PlanLineView,
    RereadView,
    ResultField,
    StepView,
)
from bot.web.schemas.trials import TrialView


class Kind(StrEnum):
    """The kinds of proposals, one member for each of `KINDS`."""

    _ignore_ = "kind"  # the loop's variable, which else would be a member, too
    for kind in KINDS:
        vars()[kind.name.upper()] = kind.name  # a member such as ``PLAN = "plan"``


def _validate_kind(kind: Any, handler: Callable[[str], Kind]) -> str:
    """Return a known kind as `Kind`; the name of a kind that only a later release knows stays a text."""
    if str(kind) in set(Kind):
        return handler(str(kind))
    return str(kind)


class _ProposalFields(View):
    """Fields of the proposal itself."""

    id: str = Field(description="its id")
    kind: SerializeAsAny[Annotated[Kind, WrapValidator(_validate_kind)]] = Field(
        description="its kind, or the name of one that only a later release has"
    )
    message_id: int = Field(description="the message of the agent that asked for it")
    call_id: str = Field(description="the model's call that led to it; empty if no model made it")
    tool_name: str = Field(description="the tool that would run")
    quorum: int = Field(description="the approvals that are needed")
    state: State = Field(description="its state")
    idempotency_key: str = Field(
        description="the same for every run, so that a tool that remembers keys acts once"
    )
    ended_badly: str | None = Field(description="how it ended, if it ran, but not to a good end")
    result_url: str | None = Field(description="a page about the result")
    cause: Cause | None = Field(description="the cause of a state that can have several")
    created_at: Time = Field(description="when it was proposed")
    updated_at: Time = Field(description="when it last changed")
    expires_at: Time = Field(description="when it expires, if no one decides")
    decided_at: Time | None = Field(description="when it was decided")
    decided_by: str | None = Field(description="who decided it")
    decided_from: str | None = Field(description="the channel of that decision")
    decline_reason: str | None = Field(description="why it was declined")
    edited_by: str | None = Field(description="who edited it last")
    digest: str = Field(description="the same for the same tool and arguments")
    seen: str = Field(
        description="a hash of all that the card shows, old values too. Send it back with a press: "
        "a change since is a 409"
    )
    version: int = Field(description="grows with any change")
    round: int = Field(description="grows with a change of what is decided")
    undo_until: Time | None = Field(description="until when `undo` can be pressed")
    undone: str | None = Field(
        validation_alias="undone_by_name", description="who had it undone, once it was"
    )
    undone_by: str | None = Field(
        validation_alias="undo_proposal_id", description="the id of the proposal that undoes it"
    )
    undoes: str | None = Field(
        validation_alias="undoes_proposal_id", description="the id of the proposal that this one undoes"
    )
    for_real: bool | None = Field(
        description="people chose to run the call although it was tried; null without such a choice"
    )
    steps: list[StepView] = Field(
        validation_alias="all_steps", description="who is told while no one decides, and when"
    )


class _CardFields(View):
    """Fields as the card shows them, secrets hidden."""

    tool_arguments: dict[str, Any] = Field(
        validation_alias="arguments", description="the arguments, secrets hidden"
    )
    schema_: dict[str, Any] = Field(alias="schema", description="the JSON schema of the arguments")
    description: str = Field(validation_alias="title", description="the change in words")
    risk: Level = Field(validation_alias="level", description="how much harm it can do")
    risk_reason: str = Field(description="why it has this risk")
    reason: str = Field(description="why the agent asks for it")
    why: str = Field(validation_alias="shown_reason", description="`reason`, unless the person just said it")
    outline: list[PlanLineView] = Field(description="a plan, line by line")
    requester: str = Field(validation_alias="asked_by", description="who asked for it")
    deciders: str = Field(description="who may decide it, in words")
    votes: list[str] = Field(description="a line for each vote")
    outcome: str = Field(description="its state or its end, in words")
    notes: list[str] = Field(description="what else to know, such as edits")
    verbs: list[Verb] = Field(description="what can be pressed now")
    headline: str = Field(description="the card's first line")
    warning: str = Field(description="what to know before approving")
    asker_decides: bool = Field(description="the requester may decide alone, so a card need not say who may")
    group: GroupView | None = Field(description="the other proposals of the same answer")
    undo: str = Field(
        validation_alias="undo_sentence",
        description="before it is decided: whether it can be undone, and for how long",
    )
    again: str = Field(
        validation_alias="check_text",
        description="says that its fields, read again after the run, are as approved",
    )
    choices: list[str] | None = Field(
        description="the likely answers to a question of the agent; null for anything else. Press `first` to "
        "`fifth`, or `answer` with your own words as `reason`"
    )
    record: list[str] = Field(
        validation_alias="unusual_facts",
        description="what is unusual about the call, from earlier ones; most calls have nothing",
    )
    annotations: list[AnnotationView] = Field(description="lines that parts of Nod add")


class ProposalView(_ProposalFields, _CardFields):
    """A proposal with everything that a card shows. Secrets are hidden."""

    teammate: str = Field(description="the name of the teammate that asks; empty for the lead agent")
    conversation_id: str = Field(description="the conversation where people see it")
    channel: str = Field(description="the channel where it was asked for")
    fields: list[FieldView] = Field(
        description="the arguments as fields of an edit form, in order; empty once it is decided"
    )
    preview: list[ChangeBody] = Field(description="the change, field by field")
    requester_account: str = Field(description="the account of who asked for it")
    may_decide: bool = Field(description="whether you may decide it")
    buttons: list[ButtonView] = Field(description="the buttons of `verbs`, and Withdraw")
    printed: str = Field(description="while it runs: the last lines of its output")
    result: str | None = Field(description="its result; in full at `…/{id}/result` and `…/{id}/files`")
    result_fields: list[ResultField] = Field(
        description="a result that is an object, with the labels and values that people read"
    )
    error: str | None = Field(description="why it failed")
    grant: str | None = Field(
        description="the label of the grant (a permission for similar calls) that let it run, such as `G-7`"
    )
    trial: TrialView | None = Field(description="what it did when it was tried first")
    read_again: list[RereadView] = Field(
        description="its fields as they were after the run, as far as they could be read"
    )
    batch: BatchPlaceView | None = Field(
        description="the table it is a row of, or null; see `GET /api/batches/ID`"
    )
    connection: ConnectionView | None = Field(
        description="the account in whose name it runs; null: Nod's own"
    )

    @classmethod
    def of_found(cls, found: VisibleProposal, **more: Any) -> Self:
        """Return the view of a proposal as one person may see it. ``more``: the fields of a subclass."""
        proposal, card = found.proposal, found.card
        secrets = secrets_in(proposal.arguments, card.schema)
        # a proposal that is decided has no form
        form_fields = fields_of(card.schema, card.arguments) if card.pending else ()
        verbs = (*card.verbs, Verb.CANCEL)
        connection = None
        if proposal.connection is not None:
            connection = ConnectionView.model_validate(proposal.connection)
        place_in_batch = None
        if found.place_in_batch is not None:
            place_in_batch = BatchPlaceView.model_validate(found.place_in_batch)
        return cls(
            **dict(_ProposalFields.model_validate(proposal)),
            **dict(_CardFields.model_validate(card)),
            teammate=found.teammate,
            conversation_id=find_conversation_id(found),
            channel=found.conversation.origin.channel if found.conversation else "",
            fields=[FieldView.model_validate(field) for field in form_fields],
            preview=[ChangeBody.of_change(card, change) for change in card.fields],
            requester_account=str(proposal.requester),
            may_decide=found.may_decide,
            buttons=[ButtonView.model_validate(card.button(verb)) for verb in verbs],
            printed=card.result if proposal.state is State.EXECUTING else "",
            result=redact_text(proposal.result, secrets) if proposal.result else None,
            result_fields=[ResultField(label=label, value=value) for label, value in card.result_fields],
            error=redact_text(proposal.error, secrets) if proposal.error else None,
            grant=f"G-{proposal.grant_id}" if proposal.grant_id is not None else None,
            trial=TrialView.of_trial(proposal.trial, card, secrets) if proposal.trial else None,
            read_again=[RereadView.model_validate(field) for field in _redact_reread(proposal, secrets)],
            batch=place_in_batch,
            connection=connection,
            **more,
        )


def _redact_reread(proposal: Proposal, secrets: Sequence[str]) -> Iterator[CheckedField]:
    """Yield the fields that were read again after the run, without secrets."""
    for field in proposal.read_again:
        now = redact_text(field.now, secrets) if field.now else field.now
        approved = redact_text(field.approved, secrets) if field.approved else field.approved
        yield replace(field, now=now, approved=approved)


async def make_views(found: Sequence[VisibleProposal]) -> list[ProposalView]:
    """Make the views of many proposals in a thread, so that other requests don't wait."""
    return await asyncio.to_thread(lambda: [ProposalView.of_found(visible) for visible in found])


def find_conversation_id(found: VisibleProposal) -> str:
    """Return the id of the conversation in which people see a proposal.

    For a teammate's proposal it is the lead agent's conversation.
    """
    if found.conversation is None:
        return found.proposal.conversation_id
    address = found.conversation.shown_at
    if address and address.channel == "http":
        return address.key.rpartition("/")[2]
    return found.conversation.id


class OneProposal(DoneBody):
    proposal: ProposalView


class PressedBody(OneProposal):
    text: str
    answer: Literal[Answer.ACCEPTED, Answer.ALREADY, Answer.DUPLICATE, Answer.LATER]


class Proposals(DoneBody):
    proposals: list[ProposalView]


class ProposalPage(Proposals):
    next: str | None


class Problem(View):
    """The body of every error."""

    ok: Literal[False] = False
    error: str
    fields: dict[str, str] | SkipJsonSchema[None] = Field(
        None, exclude_if=is_none, description="what is wrong with each field, by name"
    )
    proposal: ProposalView | None = Field(
        None, exclude_if=is_none, description="as it is after a press that didn't count"
    )
    conversation_id: Annotated[str | None, Field(exclude_if=is_none)] = None
