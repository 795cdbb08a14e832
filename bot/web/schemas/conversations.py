"""Conversations, what was said in them, and their teammates."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field

from bot.domain.attachments import Attachment
from bot.domain.conversations import Conversation, Line, LineRole, Transcript
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.tools.registry import AvailableTools
from bot.web.schemas import DoneBody, Time, View
from bot.web.schemas.proposals import FileView, ProposalView

Redacted = Annotated[str, AfterValidator(redact_text)]


class KeptFileView(FileView):
    """``size`` in characters. It is read at ``/api/conversations/{conversation_id}/files/{id}``."""

    id: Annotated[str, Field(validation_alias="handle")]
    size: int
    made_at: Annotated[Time, Field(validation_alias="at")]
    conversation_id: str
    title: str


class KeptFiles(DoneBody):
    files: list[KeptFileView]


class ConversationView(View):
    id: str
    title: str
    created_at: Time
    open_proposals: int

    @classmethod
    def with_open(cls, found: Conversation, open_proposals: int) -> Self:
        return cls(id=found.id, title=found.title, created_at=found.created_at, open_proposals=open_proposals)


class ConversationPage(DoneBody):
    conversations: list[ConversationView]
    next: str | None


class CallView(View):
    call_id: str
    tool_name: str
    summary: Redacted
    result: str
    ok: bool


class AttachmentView(FileView):
    """``size`` in bytes. ``fault``: why it can't be read, empty while it can; ``kind``: by its bytes."""

    id: Annotated[str, Field(validation_alias="handle")]
    size: int
    kind: str
    fault: str


class MessageView(View):
    """``proposals`` are ids; ``files`` are what a person attached, without those that are forgotten."""

    id: int
    role: str
    text: str
    name: str
    created_at: Time
    proposals: list[str]
    calls: list[CallView]
    files: list[AttachmentView]

    @classmethod
    def make_view(
        cls,
        line: Line,
        found: Mapping[tuple[int, str], Proposal],
        available: AvailableTools,
        files: Mapping[str, Attachment],
    ) -> Self:
        """Return a line with its calls and the ids of its proposals, which are among those ``found``."""
        return cls(
            id=line.id,
            role=line.role,
            text=line.text,
            name=line.actor.label if line.actor and line.role is LineRole.USER else "",
            created_at=line.created_at,
            proposals=[found[line.id, call.id].id for call in line.calls if (line.id, call.id) in found],
            calls=[
                CallView(
                    call_id=call.id,
                    tool_name=call.tool_name,
                    summary=call.summary,
                    result=redact_text(line.results[call.id].text, available.secrets_of(call)),
                    ok=line.results[call.id].ok,
                )
                for call in line.calls
                if call.id in line.results
            ],
            files=[AttachmentView.model_validate(files[each]) for each in line.files if each in files],
        )


class Messages(DoneBody):
    messages: list[MessageView]

    @classmethod
    def of_transcript(cls, transcript: Transcript | None, available: AvailableTools) -> Self:
        """Return the lines of a transcript in reading order."""
        if transcript is None:
            return cls(messages=[])
        found, files = transcript.proposals, transcript.files
        return cls(
            messages=[MessageView.make_view(each, found, available, files) for each in transcript.lines]
        )

    @classmethod
    def read(cls, lines: Iterable[Line]) -> Self:
        """Return lines whose secrets are hidden already, without their proposals."""
        return cls(messages=[MessageView.make_view(each, {}, AvailableTools({}), {}) for each in lines])


class Export(ConversationView):
    messages: list[MessageView]
    proposals: list[ProposalView]


def _ids(found: Iterable[Any]) -> list[str]:
    return [each if isinstance(each, str) else each.id for each in found]


class TeammateView(View):
    """``plan`` and ``about`` are in words; ``proposals`` are ids of what it waits for."""

    id: str
    name: str
    role: str
    task: Redacted
    standing: str
    state: str
    plan: Annotated[str | None, Field(validation_alias="plan_state")]
    locked: bool
    about: Redacted
    proposals: Annotated[list[str], Field(validation_alias="waits_for"), BeforeValidator(_ids)]
    tokens: int
    started_at: Annotated[Time | None, Field(validation_alias="created_at")]
    ended_at: Time | None


class TeamView(View):
    title: str
    at_work: int
    teammates: list[TeammateView]


class Team(DoneBody):
    team: TeamView
