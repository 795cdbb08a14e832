"""Proposals and requests of scripts."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, Field, SerializeAsAny, WrapValidator
from pydantic.json_schema import SkipJsonSchema

from bot.approvals.lookup.proposals import Seen, SeenBatch, SeenRequest
from bot.domain.cards import Card
from bot.domain.chat import Answer
from bot.domain.connections import Identity
from bot.domain.diffs import diff
from bot.domain.forms import Shape, fields_of
from bot.domain.kinds import KINDS
from bot.domain.outcomes import end_of
from bot.domain.people import AGENTS, Actor
from bot.domain.proposals import Cause, Level, PreviewField, Proposal, Reread, State
from bot.domain.redaction import redact_text, secrets_in
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.trials import Trial, TriedFile
from bot.domain.value_text import label_of
from bot.domain.verbs import Look, Needs, Verb
from bot.web.schemas import DoneBody, OrNull, Time, View, is_none


class Kind(StrEnum):
    _ignore_ = "kind"
    for kind in KINDS:
        vars()[kind.name.upper()] = kind.name


def _name_kind(kind: Any, handler: Callable[[str], Kind]) -> str:
    if str(kind) in set(Kind):
        return handler(str(kind))
    return str(kind)


class ChangeBody(View):
    """``in_title``: the title quotes all of it. ``diff``: what changes in texts of several lines.

    Its lines begin with ``-``, ``+`` or a blank; those with ``…`` count what stays the same.
    """

    field: str
    old_value: str | None
    new_value: str | None
    in_title: bool
    diff: str | None

    @classmethod
    def on(cls, card: Card, change: PreviewField) -> Self:
        old, new = change.old_value, change.new_value
        return cls(
            field=change.field,
            old_value=old,
            new_value=new,
            in_title=card.quotes(change),
            diff=diff(old, new),
        )


class AnnotationView(View):
    """A line that a part of Nod adds under its own name. ``late``: it came after the card was posted."""

    name: str
    text: str
    late: Annotated[bool, Field(validation_alias="is_late")]


class ConnectionView(View):
    """In whose name it runs: ``owner`` is an account or a chat, ``name`` what the server calls the account.

    ``name`` is empty where the server does not tell it. ``words``: as a card says it.
    """

    server: str
    identity: Identity
    owner: str
    owner_name: Annotated[str, Field(validation_alias="owner_label")]
    name: str
    subject: str
    words: str


class GroupView(View):
    size: int
    open: int
    round: int


class BatchPlaceView(View):
    """Its batch, how many rows that has, and which of them it is, from 1."""

    id: str
    size: int
    position: int


class FieldView(View):
    """One argument in the edit form: ``shape`` says how it is asked for."""

    name: str
    label: str
    shape: Shape
    description: str
    required: bool
    nullable: bool
    value: Any
    default: Any
    options: list[Any]
    multiline: bool
    secret: bool


class SureView(View):
    """The question before what can't be undone, or before Undo, and the labels of its two answers.

    ``more``: what to know first; before Undo, what it puts back.
    """

    question: str
    yes: str
    no: str
    more: str


class ButtonView(View):
    """``doing`` is what it says while it works; ``needs`` what it asks for first.

    ``sure``: asked before what can't be undone, Undo, and Retry of what may have happened, else null.
    ``question`` asks for words, where it needs any, and ``hint`` says what becomes of them; else null.
    """

    verb: Verb
    label: str
    doing: str
    needs: Needs
    question: Annotated[str | None, Field(validation_alias=AliasPath("asks", "question"))] = None
    hint: Annotated[str | None, Field(validation_alias=AliasPath("asks", "hint"))] = None
    look: Look
    sure: SureView | None
    rare: bool


class ResultField(View):
    """One field of a result that is a JSON object, as people read it."""

    label: str
    value: str


class RereadView(View):
    """A field as it was read again after the run, cut if long. ``agrees``: it is what was approved."""

    field: str
    now: str | None
    approved: str | None
    agrees: bool


class TriedFileView(View):
    """A file that a trial changed. Sizes in bytes, null for no file.

    ``change``: added, changed or removed. ``code``: something runs it later. ``diff``: of a text, by lines.
    """

    path: str
    change: str
    old_size: int | None
    new_size: int | None
    code: bool
    diff: str | None = None


class TrialView(View):
    """What a call did when it was tried. ``applies``: approving applies that; else ``why`` says why not.

    ``tried``: false where it was not. ``exit``: the exit code, or null. ``output``: the end
    of what it printed.
    """

    tried: bool
    applies: bool
    why: str
    cage: str
    exit: int | None
    output: str
    files: list[TriedFileView]

    @classmethod
    def of_trial(cls, trial: Trial, card: Card, secrets: Sequence[str]) -> Self:
        changes = {each.field: each for each in card.fields}

        def compared(file: TriedFile) -> str | None:
            change = changes.get(label_of(file.field)) if file.field else None
            if change is None:
                return None
            if change.old_value is not None and change.new_value is not None:
                return diff(change.old_value, change.new_value)
            mark, text = ("-", change.old_value) if change.new_value is None else ("+", change.new_value)
            return "\n".join(f"{mark} {line}" for line in (text or "").splitlines())

        why, output = (redact_text(each, secrets) for each in (trial.why, trial.output))
        made = cls.model_validate(replace(trial, why=why, output=output))
        for shown, file in zip(made.files, trial.files, strict=True):
            shown.diff = compared(file)
        return made


class PlanLineView(View):
    """``number``: of a step. ``mark``: how it differs from the version before."""

    text: str
    number: Annotated[int | None, OrNull]
    label: str
    tools: list[str]
    mark: str


class StepView(View):
    """A step: its target, when it is due, and whether it came (``is_over``)."""

    to: str
    at: Time
    is_over: bool


class _OfRow(View):
    """Fields of the proposal itself."""

    id: str
    kind: SerializeAsAny[Annotated[Kind, WrapValidator(_name_kind)]]  # or the name of one not known
    message_id: int
    call_id: str
    tool_name: str
    quorum: int
    state: State
    idempotency_key: str
    ended_badly: str | None
    result_url: str | None
    cause: Cause | None
    created_at: Time
    updated_at: Time
    expires_at: Time
    decided_at: Time | None
    decided_by: str | None
    decided_from: str | None
    decline_reason: str | None
    edited_by: str | None
    digest: str
    seen: str
    version: int
    round: int
    undo_until: Time | None
    undone: str | None
    undone_by: str | None
    undoes: str | None
    for_real: bool | None
    steps: Annotated[list[StepView], Field(validation_alias="all_steps")]


class _OfCard(View):
    """Fields as the card shows them, secrets hidden."""

    tool_arguments: Annotated[dict[str, Any], Field(validation_alias="arguments")]
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    description: Annotated[str, Field(validation_alias="title")]
    risk: Annotated[Level, Field(validation_alias="level")]
    risk_reason: str
    reason: str
    why: str
    outline: list[PlanLineView]
    requester: Annotated[str, Field(validation_alias="asked_by")]
    deciders: str
    votes: list[str]
    outcome: str
    notes: list[str]
    verbs: list[Verb]
    headline: str
    warning: str
    asker_decides: bool
    group: GroupView | None
    undo: str
    again: str
    choices: list[str] | None
    record: list[str]
    annotations: list[AnnotationView]


class ProposalView(_OfRow, _OfCard):
    """A proposal with everything that a card shows.

    - `id`, `conversation_id`, `message_id`, `call_id`, `channel`, `kind`: which it is, and which call asked.
    - `tool_name`, `tool_arguments`, `schema`: what would run, secrets hidden, and its schema.
    - `fields`: the same as fields of an edit form, in order: label, shape, value, whether it is the default.
    - `description`, `preview`, `risk`, `risk_reason`, `reason`: the change in words, field by field, and why.
    - `why`, `outline`: `reason` where it is not just what was said; a plan line by line.
    - `headline`, `warning`: the card's first line; what to know before approving.
    - `teammate`: the name of the teammate that asks; empty for the lead agent.
    - `requester`, `requester_account`: who asked.
    - `connection`: the account in whose name it runs: server, owner, name, subject; null: Nod's own.
    - `deciders`, `quorum`, `votes`, `may_decide`: who decides, whether you may.
    - `asker_decides`: the requester may decide alone, so a card need not say who may.
    - `state`, `outcome`, `cause`, `notes`: its status.
    - `record`: what is unusual about the call, from earlier ones; most calls have none of it.
    - `annotations`: lines that parts of Nod add, each under a name; `late` ones came after it was posted.
    - `verbs`, `buttons`, `group`: what can be pressed now, with labels; the rest of the group.
    - `printed`: while it runs: the last lines of its output.
    - `result`, `ended_badly`, `result_url`, `error`: how it ended; in full: `…/{id}/result`, `…/{id}/files`.
    - `result_fields`: a result that is an object, with the labels and values that people read.
    - `decided_by`, `decided_from`, `decided_at`, `decline_reason`, `edited_by`: who decided, and from where.
    - `trial`: what it did when tried first: `files`, `output`, `exit`; `for_real`: it runs all the same.
    - `grant`: the label of the grant that let it run, such as `G-7`.
    - `batch`: the table it is a row of, or null; see `GET /api/batches/ID`.
    - `created_at`, `updated_at`, `expires_at`: ISO 8601, UTC.
    - `idempotency_key`: the same for every run, so that a tool that remembers keys acts once.
    - `seen`: a hash of all that the card shows, old values too. Send it back with a press:
      a change since is a 409.
    - `steps`: who is told while no one decides: a notifier, a place, an account or a group; when; whether it
      came.
    - `undo`: before it is decided: whether it can be undone, and for how long, in words.
    - `undo_until`, `undone_by`, `undone`: until when `undo` can be pressed; the proposal that undoes it;
      who had that done, once it was. `undoes`: the proposal that this one undoes.
    - `choices`: the likely answers to a question of the agent; null for anything else. Press `first` to
      `fifth`, or `answer` with your own words as `reason`.
    - `read_again`, `again`: its fields as they were after the run, as far as they could be read; the same in
      words, where they are what was approved.
    - `digest`, `round`, `version`: the same for tool and arguments, for the content, for any change.
    """

    teammate: str
    conversation_id: str
    channel: str
    fields: list[FieldView]
    preview: list[ChangeBody]
    requester_account: str
    may_decide: bool
    buttons: list[ButtonView]
    printed: str
    result: str | None
    result_fields: list[ResultField]
    error: str | None
    grant: str | None
    trial: TrialView | None
    read_again: list[RereadView]
    batch: BatchPlaceView | None
    connection: ConnectionView | None

    @classmethod
    def seen_as(cls, found: Seen, **more: Any) -> Self:
        """Make it of what one person may see; ``more`` are a subclass's own fields."""
        p, card = found.proposal, found.card
        secrets = secrets_in(p.arguments, card.schema)
        return cls(
            **dict(_OfRow.model_validate(p)),
            **dict(_OfCard.model_validate(card)),
            teammate=found.teammate,
            conversation_id=conversation_of(found),
            channel=found.conversation.origin.channel if found.conversation else "",
            fields=[FieldView.model_validate(each) for each in fields_of(card.schema, card.arguments)]
            if card.pending
            else [],
            preview=[ChangeBody.on(card, each) for each in card.fields],
            requester_account=str(p.requester),
            may_decide=found.may_decide,
            buttons=[ButtonView.model_validate(card.button(verb)) for verb in (*card.verbs, Verb.CANCEL)],
            printed=card.result if p.state is State.EXECUTING else "",
            result=redact_text(p.result, secrets) if p.result else None,
            result_fields=[ResultField(label=label, value=value) for label, value in card.result_fields],
            error=redact_text(p.error, secrets) if p.error else None,
            grant=f"G-{p.grant_id}" if p.grant_id is not None else None,
            trial=TrialView.of_trial(p.trial, card, secrets) if p.trial else None,
            read_again=[RereadView.model_validate(each) for each in _reread(p, secrets)],
            batch=None if found.place is None else BatchPlaceView.model_validate(found.place),
            connection=None if p.connection is None else ConnectionView.model_validate(p.connection),
            **more,
        )


def _reread(p: Proposal, secrets: Sequence[str]) -> Iterator[Reread]:
    for each in p.read_again:
        now, approved = (v and redact_text(v, secrets) for v in (each.now, each.approved))
        yield replace(each, now=now, approved=approved)


class RowView(View):
    """A row: what it is about, and the fields in which it differs. ``alone``: it can't be undone.

    What can't be undone is never approved with others. ``may_decide``: whether you may decide it.
    """

    id: str
    seen: str
    about: str
    alone: bool
    may_decide: bool
    changes: list[ChangeBody]
    notes: list[str]
    fault: str


class _OfBatchCard(View):
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
    acts_as: str
    annotations: list[AnnotationView]
    expires_at: Time


class BatchView(_OfBatchCard):
    """``same``: what is the same for all rows. ``outcome``: how far it is, such as ``12 of 37 done``.

    ``buttons``: what can be pressed for all, on any of its proposals; ``round`` goes with such a press.
    """

    id: str
    same: list[ChangeBody]
    buttons: list[ButtonView]
    rows: list[RowView]

    @classmethod
    def seen_as(cls, found: SeenBatch) -> Self:
        card = found.card
        return cls(
            **dict(_OfBatchCard.model_validate(card)),
            id=found.rows[0].proposal.card_id,
            same=[ChangeBody.on(card, each) for each in card.shown_fields],
            buttons=[ButtonView.model_validate(card.button(verb)) for verb in card.verbs],
            rows=[
                RowView(
                    id=seen.proposal.id,
                    seen=seen.proposal.seen,
                    about=row.about,
                    alone=row.harms,
                    may_decide=seen.may_decide,
                    changes=[ChangeBody.on(row.card, each) for each in row.fields],
                    notes=list(row.notes),
                    fault=row.fault,
                )
                for seen, row in zip(found.rows, card.rows, strict=True)
            ],
        )


class OneBatch(DoneBody):
    """A batch, and each of its rows as a proposal."""

    batch: BatchView
    proposals: list[ProposalView]

    @classmethod
    def seen_as(cls, found: SeenBatch) -> Self:
        return cls(
            batch=BatchView.seen_as(found), proposals=[ProposalView.seen_as(each) for each in found.rows]
        )


class ChosenBody(OneBatch):
    """``text`` says how many rows were approved and declined, and why not the others."""

    text: str
    answer: Literal[Answer.ACCEPTED, Answer.ALREADY]


async def make_views(found: Sequence[Seen]) -> list[ProposalView]:
    """Make the views of many proposals in a thread, so that other requests don't wait."""
    return await asyncio.to_thread(lambda: [ProposalView.seen_as(each) for each in found])


def conversation_of(found: Seen) -> str:
    """Return the id of the conversation in which people see it: a teammate's is the lead agent's."""
    if found.conversation is None:
        return found.proposal.conversation_id
    at = found.conversation.shown_at
    if at and at.channel == "http":
        return at.key.rpartition("/")[2]
    return found.conversation.id


class CallbackView(View):
    """The webhook of a request: how often it was tried, and whether it was told the end."""

    url: str
    attempts: int
    told_at: Time | None
    given_up: bool
    error: Annotated[str | None, OrNull, Field(validation_alias="fault")]


class RequestView(ProposalView):
    """A script's request: a proposal with ``end``, ``arguments`` and ``callback``.

    ``end``: `waiting`, `approved`, `declined`, `expired`, `cancelled`, `undeliverable`, `failed` or
    `outcome_unknown`. Who asked gets the ``arguments`` as they are, edits included: it acts on them.
    ``callback``: its webhook, or null without one.
    """

    end: str
    callback: CallbackView | None
    arguments: Annotated[dict[str, Any] | SkipJsonSchema[None], Field(exclude_if=is_none)] = None

    @classmethod
    def asked(cls, found: SeenRequest, actor: Actor) -> Self:
        p = found.seen.proposal
        asked = p.agent is not None and str(actor) == f"{AGENTS}:{p.agent}"
        own = {"arguments": p.arguments} if asked or actor == p.requester else {}
        if found.webhook:
            callback = CallbackView.model_validate(found.webhook)
        else:
            callback = None
        return cls.seen_as(found.seen, end=end_of(p), callback=callback, **own)


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
    rung: GrantScope
    words: str


class ReachView(View):
    reach: GrantAudience
    words: str


class LadderBody(DoneBody):
    ladder: list[RungView]
    reaches: list[ReachView]
    lasting: list[GrantDuration]


class QuestionView(View):
    """``answer`` is null until there is one."""

    asker: Annotated[str, Field(validation_alias="name")]
    question: Annotated[str, Field(validation_alias="text")]
    answer: Annotated[str | None, OrNull]


class AskedQuestions(DoneBody):
    questions: list[QuestionView]


class FileView(View):
    id: str
    name: str


class Files(DoneBody):
    files: list[FileView]


class Problem(View):
    """The body of every error.

    ``fields``: what is wrong with each, by name. ``proposal``: how it is after a press that didn't count.
    """

    ok: Literal[False] = False
    error: str
    fields: Annotated[dict[str, str] | SkipJsonSchema[None], Field(exclude_if=is_none)] = None
    proposal: Annotated[ProposalView | None, Field(exclude_if=is_none)] = None
    conversation_id: Annotated[str | None, Field(exclude_if=is_none)] = None
