"""Bodies about conversations: their messages and files, and the teammates of the agent.

A message is a line of a transcript: what a person wrote or the agent answered, with its tool calls.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field

from bot.domain.attachments import Attachment
from bot.domain.conversations import Conversation, Line, LineRole, Transcript
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.tools.registry import AvailableTools
from bot.web.schemas import DoneBody, Time, View
from bot.web.schemas.files import FileView
from bot.web.schemas.proposals import ProposalView

Redacted = Annotated[str, AfterValidator(redact_text)]


class KeptFileView(FileView):
    """A file, which is read at ``/api/conversations/{conversation_id}/files/{id}``."""

    id: Annotated[str, Field(validation_alias="handle")]
    size: int = Field(description="in characters")
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
    def of_conversation(cls, conversation: Conversation, open_proposals: int) -> Self:
        return cls(
            id=conversation.id,
            title=conversation.title,
            created_at=conversation.created_at,
            open_proposals=open_proposals,
        )


class ConversationPage(DoneBody):
    conversations: list[ConversationView]
    next: str | None


class CallView(View):
    """A call of a tool that has a result."""

    call_id: str
    tool_name: str
    summary: Redacted
    result: str
    ok: bool


class AttachmentView(FileView):
    """A file that a person attached."""

    id: Annotated[str, Field(validation_alias="handle")]
    size: int = Field(description="in bytes")
    kind: str = Field(description="its media type, by its bytes")
    fault: str = Field(description="why it can't be read; empty while it can")


class MessageView(View):
    """A message with its calls, as the agent's conversation has them."""

    id: int
    role: str
    text: str
    name: str = Field(description="the name of the person who wrote it; else empty")
    created_at: Time
    proposals: list[str] = Field(description="the ids of the proposals that its calls became")
    calls: list[CallView]
    files: list[AttachmentView] = Field(description="what a person attached and Nod still has")

    @classmethod
    def of_line(
        cls,
        line: Line,
        proposals: Mapping[tuple[int, str], Proposal],
        available: AvailableTools,
        files: Mapping[str, Attachment],
    ) -> Self:
        """Return the view of a line.

        ``proposals``: by the ids of their line and call. ``files``: by handle. Both may have entries of other
        lines, too.
        """
        proposal_ids: list[str] = []
        calls: list[CallView] = []
        for call in line.calls:
            proposal = proposals.get((line.id, call.id))
            if proposal is not None:
                proposal_ids.append(proposal.id)
            result = line.results.get(call.id)
            if result is not None:
                text = redact_text(result.text, available.secrets_of(call))
                calls.append(
                    CallView(
                        call_id=call.id,
                        tool_name=call.tool_name,
                        summary=call.summary,
                        result=text,
                        ok=result.ok,
                    )
                )
        attached = [files[handle] for handle in line.files if handle in files]
        return cls(
            id=line.id,
            role=line.role,
            text=line.text,
            name=line.actor.label if line.actor and line.role is LineRole.USER else "",
            created_at=line.created_at,
            proposals=proposal_ids,
            calls=calls,
            files=[AttachmentView.model_validate(file) for file in attached],
        )


class Messages(DoneBody):
    messages: list[MessageView]

    @classmethod
    def of_transcript(cls, transcript: Transcript | None, available: AvailableTools) -> Self:
        """Return the lines of a transcript in reading order."""
        if transcript is None:
            return cls(messages=[])
        proposals, files = transcript.proposals, transcript.files
        return cls(
            messages=[MessageView.of_line(line, proposals, available, files) for line in transcript.lines]
        )

    @classmethod
    def of_redacted_lines(cls, lines: Iterable[Line]) -> Self:
        """Return the messages of lines whose secrets are hidden already, without their proposals."""
        no_tools = AvailableTools({})
        return cls(messages=[MessageView.of_line(line, {}, no_tools, {}) for line in lines])


class Export(ConversationView):
    messages: list[MessageView]
    proposals: list[ProposalView]


def _list_ids(proposals: Iterable[Any]) -> list[str]:
    """Return the ids of proposals. From another process the ids come instead; they are returned unchanged."""
    return [proposal if isinstance(proposal, str) else proposal.id for proposal in proposals]


class TeammateView(View):
    """A teammate: an agent with a role, which the lead agent started for a task."""

    id: str
    name: str
    role: str
    task: Redacted
    standing: str = Field(validation_alias="stored_state", description="its stored state, such as `working`")
    state: str = Field(description="its state in words; while it works, what it waits for")
    plan: str | None = Field(validation_alias="plan_state", description="the state of its plan, in words")
    locked: bool = Field(description="it may only read, since its plan isn't approved yet")
    about: Redacted = Field(validation_alias="status_text", description="the first line of its last words")
    proposals: Annotated[list[str], BeforeValidator(_list_ids)] = Field(
        validation_alias="waits_for", description="the ids of the open proposals that it waits for"
    )
    tokens: int
    started_at: Annotated[Time | None, Field(validation_alias="created_at")]
    ended_at: Time | None


class TeamView(View):
    title: str
    at_work: int = Field(description="the number of teammates that work")
    teammates: list[TeammateView]


class Team(DoneBody):
    team: TeamView
