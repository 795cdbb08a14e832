"""Bodies about proposals, batches, and the requests of scripts.

`ProposalView` is a proposal as one person may see it. It is made of a `VisibleProposal`, which the core looks
up: the proposal, its card, and this person's rights. `_ProposalFields` are taken from the proposal as they
are, `_CardFields` from the card, and the rest is converted in `ProposalView.of_found`. `RequestView` is the
proposal of a script's request, `BatchView` a table of several proposals. Secrets are hidden.

Two fields need care: ``seen`` is a hash of what a card shows, which a press sends back. ``round`` is a number
that grows with each change of what is decided, such as an edit.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, Field, SerializeAsAny, WrapValidator
from pydantic.json_schema import SkipJsonSchema

from bot.approvals.lookup.proposals import VisibleBatch, VisibleProposal, VisibleRequest
from bot.domain.cards import Card
from bot.domain.chat import Answer
from bot.domain.connections import Identity
from bot.domain.diffs import diff
from bot.domain.forms import Shape, fields_of
from bot.domain.kinds import KINDS
from bot.domain.outcomes import name_outcome
from bot.domain.people import AGENTS, Actor
from bot.domain.preview import CheckedField, PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.risks import Level
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.trials import Trial, TriedFile
from bot.domain.value_text import label_of
from bot.domain.verbs import Look, Needs, Verb
from bot.web.schemas import DoneBody, OrNull, Time, View, is_none


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


class ChangeBody(View):
    """One value that changes."""

    field: str
    old_value: str | None
    new_value: str | None
    in_title: bool = Field(description="the title quotes all of it")
    diff: str | None = Field(
        description="the difference of two texts of several lines; its lines begin with `-`, `+` or a blank, "
        "and those with `…` count lines that stay the same"
    )

    @classmethod
    def of_change(cls, card: Card, change: PreviewField) -> Self:
        old, new = change.old_value, change.new_value
        return cls(
            field=change.field,
            old_value=old,
            new_value=new,
            in_title=card.quotes(change),
            diff=diff(old, new),
        )


class AnnotationView(View):
    """A line that a part of Nod adds under its own name."""

    name: str
    text: str
    late: bool = Field(validation_alias="is_late", description="it came after the card was posted")


class ConnectionView(View):
    """The account at a server in whose name a call runs."""

    server: str = Field(description="the name of the MCP server")
    identity: Identity = Field(description="whose account it is")
    owner: str = Field(description="the account or the chat here that it belongs to")
    owner_name: Annotated[str, Field(validation_alias="owner_label")]
    name: str = Field(description="what the server calls the account; empty if it does not say")
    subject: str = Field(description="the server's id of the account; empty if it gives none")
    words: str = Field(description="the account as a card names it")


class GroupView(View):
    """The single proposals of one answer, which can be decided together."""

    size: int = Field(description="the number of these proposals")
    open: int = Field(description="the number of those that are open")
    round: int = Field(description="the sum of their rounds; changes with the contents of any")


class BatchPlaceView(View):
    """The place of a row in its batch."""

    id: str
    size: int = Field(description="how many rows the batch has")
    position: int = Field(description="from 1")


class FieldView(View):
    """One argument in the edit form."""

    name: str
    label: str
    shape: Shape = Field(description="the kind of input that the form has for it")
    description: str
    required: bool
    nullable: bool
    value: Any
    default: Any
    options: list[Any]
    multiline: bool
    secret: bool


class SureView(View):
    """A question that is asked before a press counts, and the labels of its two answers."""

    question: str
    yes: str = Field(description="the label that confirms the press")
    no: str = Field(description="the label that cancels the press")
    more: str = Field(description="what to know first; before Undo, what it puts back")


class ButtonView(View):
    verb: Verb
    label: str
    doing: str = Field(description="the label while it works")
    needs: Needs = Field(description="the input that it asks for first")
    question: str | None = Field(
        None,
        validation_alias=AliasPath("asks", "question"),
        description="asks for the words that go with the press; null if it needs none",
    )
    hint: str | None = Field(
        None, validation_alias=AliasPath("asks", "hint"), description="what becomes of these words"
    )
    look: Look = Field(description="its emphasis")
    sure: SureView | None = Field(
        description="asked before what can't be undone, before Undo, and before Retry of what may have "
        "happened; else null"
    )
    rare: bool = Field(description="it may be in a menu instead of on the card")


class ResultField(View):
    """One field of a result that is a JSON object, as people read it."""

    label: str
    value: str


class RereadView(View):
    """A field of the changed thing, read again after the run. Long values are cut."""

    field: str
    now: str | None = Field(description="the value that was read")
    approved: str | None = Field(description="the value that was approved")
    agrees: bool = Field(description="it still has the approved value")


class TriedFileView(View):
    """A file that a trial changed."""

    path: str
    change: str = Field(description="added, changed or removed")
    old_size: int | None = Field(description="in bytes; null for a new file")
    new_size: int | None = Field(description="in bytes; null for a removed file")
    code: bool = Field(description="something runs it later")
    diff: str | None = Field(None, description="of a text, by lines")


class TrialView(View):
    """The result of a trial: before it was decided, the call ran in a cage, apart from the real files."""

    tried: bool = Field(description="false if it was not tried")
    applies: bool = Field(description="approving applies what the trial did")
    why: str = Field(description="why it was not tried, or why its changes can't be applied")
    cage: str = Field(description="the name of the cage")
    exit: int | None = Field(description="the exit code, or null")
    output: str = Field(description="the end of what it printed")
    files: list[TriedFileView]

    @classmethod
    def of_trial(cls, trial: Trial, card: Card, secrets: Sequence[str]) -> Self:
        why = redact_text(trial.why, secrets)
        output = redact_text(trial.output, secrets)
        trial_view = cls.model_validate(replace(trial, why=why, output=output))
        changes = {change.field: change for change in card.fields}
        for file_view, file in zip(trial_view.files, trial.files, strict=True):
            file_view.diff = _compare_file(file, changes)
        return trial_view


def _compare_file(file: TriedFile, changes: Mapping[str, PreviewField]) -> str | None:
    """Return the lines that a trial changed in a file; None if no field of the preview shows its text."""
    change = changes.get(label_of(file.field)) if file.field else None
    if change is None:
        return None
    if change.old_value is not None and change.new_value is not None:
        return diff(change.old_value, change.new_value)
    if change.new_value is None:
        mark = "-"
        text = change.old_value
    else:
        mark = "+"
        text = change.new_value
    return "\n".join(f"{mark} {line}" for line in (text or "").splitlines())


class PlanLineView(View):
    """A line of a plan: its summary, a step, a removed part, the risks or the alternatives."""

    text: str
    number: Annotated[int | None, OrNull] = Field(description="the number of a step; else null")
    label: str = Field(description="the label of a line that is no step; the summary has none")
    tools: list[str] = Field(description="the tools of a step that its text does not name")
    mark: str = Field(description="how it differs from the version before")


class StepView(View):
    """A step: one of those who are told, one after another, while no one decides."""

    to: str = Field(description="a notifier, a place, an account or a group")
    at: Time = Field(description="when it is due")
    is_over: bool = Field(description="its time has come")


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
    undone: str | None = Field(description="who had it undone, once it was")
    undone_by: str | None = Field(description="the id of the proposal that undoes it")
    undoes: str | None = Field(description="the id of the proposal that this one undoes")
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
    why: str = Field(description="`reason`, unless the person just said it")
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
    undo: str = Field(description="before it is decided: whether it can be undone, and for how long")
    again: str = Field(description="says that its fields, read again after the run, are as approved")
    choices: list[str] | None = Field(
        description="the likely answers to a question of the agent; null for anything else. Press `first` to "
        "`fifth`, or `answer` with your own words as `reason`"
    )
    record: list[str] = Field(
        description="what is unusual about the call, from earlier ones; most calls have nothing"
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


class RowView(View):
    """A row of a batch: one of its proposals."""

    id: str = Field(description="the id of the proposal")
    seen: str = Field(description="a hash of all that its card shows; send it back with a press")
    about: str = Field(description="its title without the beginning that all titles share")
    alone: bool = Field(description="it can't be undone, so it is never approved with others")
    may_decide: bool = Field(description="whether you may decide it")
    changes: list[ChangeBody] = Field(description="the fields in which the rows differ")
    notes: list[str]
    fault: str = Field(description="why it did not succeed; else empty")


class _BatchCardFields(View):
    """Fields of a batch as its card shows them."""

    title: str
    size: Annotated[int, Field(validation_alias=AliasPath("group", "size"))]
    open: Annotated[int, Field(validation_alias=AliasPath("group", "open"))]
    round: int
    state: State
    outcome: str
    deciders: str
    warning: str
    undo: str
    notes: list[str]
    acts_as: str = Field(description="the account in whose name all rows run; empty: Nod's own, or several")
    annotations: list[AnnotationView]
    expires_at: Time


class BatchView(_BatchCardFields):
    """Several calls of one tool in one answer, as a table."""

    id: str
    same: list[ChangeBody] = Field(description="the fields that are the same in all rows")
    buttons: list[ButtonView] = Field(
        description="the buttons for all rows; press them on any of its proposals"
    )
    rows: list[RowView]

    @classmethod
    def of_found(cls, found: VisibleBatch) -> Self:
        card = found.card
        return cls(
            **dict(_BatchCardFields.model_validate(card)),
            id=found.rows[0].proposal.card_id,
            same=[ChangeBody.of_change(card, change) for change in card.shown_fields],
            buttons=[ButtonView.model_validate(card.button(verb)) for verb in card.verbs],
            rows=[
                RowView(
                    id=visible.proposal.id,
                    seen=visible.proposal.seen,
                    about=row.about,
                    alone=row.needs_own_decision,
                    may_decide=visible.may_decide,
                    changes=[ChangeBody.of_change(row.card, change) for change in row.fields],
                    notes=list(row.notes),
                    fault=row.fault,
                )
                for visible, row in zip(found.rows, card.rows, strict=True)
            ],
        )


class OneBatch(DoneBody):
    """A batch, and each of its rows as a proposal."""

    batch: BatchView
    proposals: list[ProposalView]

    @classmethod
    def of_found(cls, found: VisibleBatch) -> Self:
        proposals = [ProposalView.of_found(row) for row in found.rows]
        return cls(batch=BatchView.of_found(found), proposals=proposals)


class ChosenBody(OneBatch):
    """A batch after a choice of rows."""

    text: str = Field(
        description="how many rows were approved and how many declined, and why the others were not"
    )
    answer: Literal[Answer.ACCEPTED, Answer.ALREADY]


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


class CallbackView(View):
    """The webhook of a request."""

    url: str
    attempts: int = Field(description="how often Nod tried to send it the outcome")
    told_at: Time | None = Field(description="when it got the outcome")
    given_up: bool = Field(description="Nod no longer tries")
    error: Annotated[str | None, OrNull, Field(validation_alias="fault")]


class RequestView(ProposalView):
    """A script's request: a proposal with more fields."""

    end: str = Field(
        description="`waiting`, `approved`, `declined`, `expired`, `cancelled`, `undeliverable`, `failed` or "
        "`outcome_unknown`"
    )
    callback: CallbackView | None = Field(description="its webhook, or null")
    arguments: dict[str, Any] | SkipJsonSchema[None] = Field(
        None,
        exclude_if=is_none,
        description="only for the account or the program that asked, which acts on them: "
        "edits included, secrets not hidden",
    )

    @classmethod
    def of_request(cls, found: VisibleRequest, actor: Actor) -> Self:
        """Return the view for ``actor``; only the account or the program that asked gets the arguments."""
        proposal = found.view.proposal
        is_asking_agent = proposal.agent is not None and str(actor) == f"{AGENTS}:{proposal.agent}"
        more: dict[str, Any] = {}
        if is_asking_agent or actor == proposal.requester:
            more["arguments"] = proposal.arguments
        if found.webhook:
            callback = CallbackView.model_validate(found.webhook)
        else:
            callback = None
        return cls.of_found(found.view, end=name_outcome(proposal), callback=callback, **more)


class OneRequest(DoneBody):
    proposal: RequestView


class OneProposal(DoneBody):
    proposal: ProposalView


class PressedBody(OneProposal):
    text: str
    answer: Literal[Answer.ACCEPTED, Answer.ALREADY, Answer.DUPLICATE, Answer.LATER]


class Proposals(DoneBody):
    proposals: list[ProposalView]


class ProposalPage(Proposals):
    next: str | None


class RungView(View):
    """A scope that a grant may have: which calls it lets run."""

    rung: GrantScope
    words: str


class ReachView(View):
    """An audience that a grant may have: whose calls it lets run, and where."""

    reach: GrantAudience
    words: str


class LadderBody(DoneBody):
    """The choices for a grant, a permission for similar calls."""

    ladder: list[RungView]
    reaches: list[ReachView]
    lasting: list[GrantDuration] = Field(description="how long it may hold")


class QuestionView(View):
    """A question that a person asked the agent about a proposal."""

    asker: Annotated[str, Field(validation_alias="name")]
    question: Annotated[str, Field(validation_alias="text")]
    answer: Annotated[str | None, OrNull] = Field(description="null until there is one")


class AskedQuestions(DoneBody):
    questions: list[QuestionView]


class FileView(View):
    id: str
    name: str


class Files(DoneBody):
    files: list[FileView]


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
