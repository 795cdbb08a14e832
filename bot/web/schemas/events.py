"""Events of streams (SSE): each is the JSON of one ``data:`` line.

`TurnEvents` are those of a conversation's stream, `ChangeEvents` those of the feed of all changes. The events
of a turn are made of the agent's own (`make_turn_event`), with secrets hidden.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from bot.domain.events import (
    Ending,
    TextDelta,
    TextRestarted,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnDelayed,
    TurnEvent,
)
from bot.domain.redaction import redact
from bot.web.schemas import View
from bot.web.schemas.conversations import Redacted, TeamView
from bot.web.schemas.proposals import ProposalView
from bot.web.schemas.questions import QuestionView


class AcceptedBody(View):
    """The message is stored."""

    type: Literal["accepted"] = "accepted"
    conversation_id: str
    message_id: int


class Delta(View):
    """More of the answer."""

    type: Literal["delta"] = "delta"
    content: str
    text: str = Field(description="the same as `content`")


class ThoughtSaid(View):
    """Thoughts of the model before it answers, which no conversation keeps."""

    type: Literal["thought"] = "thought"
    text: str


class Restart(View):
    """The answer was cut off and starts again: forget the text since the last tool call."""

    type: Literal["restart"] = "restart"


class CallStarted(View):
    """A call that reads, or is refused."""

    type: Literal["tool_call_start"] = "tool_call_start"
    call_id: str
    tool_name: str
    summary: Redacted
    arguments: Annotated[dict[str, Any], AfterValidator(redact)]


class CallProgress(View):
    """The progress of a call."""

    type: Literal["tool_call_progress"] = "tool_call_progress"
    call_id: str
    tool_name: str
    text: Annotated[Redacted, Field(validation_alias="words")]


class CallEnded(View):
    """The result of a call."""

    type: Literal["tool_call_result"] = "tool_call_result"
    call_id: str
    tool_name: str
    ok: bool
    result: Redacted


class ProposalEvent(View):
    """A change waits for a decision, or a proposal changed."""

    type: Literal["proposal_opened", "proposal_update"] = "proposal_update"
    proposal: ProposalView


class QuestionAnswered(View):
    """The agent answered a question about a proposal."""

    type: Literal["question_answered"] = "question_answered"
    proposal_id: str
    questions: list[QuestionView] = Field(description="all that were asked about it within a day")


class Reload(View):
    """Too much has changed to send each change: read the lists again."""

    type: Literal["reload"] = "reload"


class TeamEvent(View):
    """A conversation's teammates changed."""

    type: Literal["team_update"] = "team_update"
    team: TeamView


class TurnDone(View):
    """The turn ended."""

    type: Literal["done"] = "done"
    conversation_id: str
    message_id: int | None
    ending: Ending


class TurnBroke(View):
    """The turn could not continue."""

    type: Literal["error"] = "error"
    conversation_id: str
    error: str = Field(description="why")


class AguiEvent(View):
    """An event of AG-UI 1.0. Its other fields depend on its type (https://docs.ag-ui.com)."""

    type: str


TurnEvents = (
    AcceptedBody
    | Delta
    | ThoughtSaid
    | Restart
    | CallStarted
    | CallProgress
    | CallEnded
    | ProposalEvent
    | TeamEvent
    | TurnDone
    | TurnBroke
)


class TurnTold(View):
    """An event of a turn in one of your conversations, if the request asked for ``turns``."""

    type: Literal["turn"] = "turn"
    conversation_id: str
    event: Annotated[TurnEvents, Field(discriminator="type")]


ChangeEvents = ProposalEvent | QuestionAnswered | Reload | TurnTold


def make_turn_event(event: TurnEvent) -> TurnEvents | None:
    """Return the event of the stream for an event of a turn.

    None for events that the stream does not show, and for events that ``channel.py`` converts itself.
    """
    match event:
        case TextDelta(text):
            return Delta(content=text, text=text)
        case ThoughtDelta(text) | TurnDelayed(text):  # the reason of a wait is shown like a thought
            return ThoughtSaid(text=text)
        case TextRestarted():
            return Restart()
        case ToolStarted():
            return CallStarted.model_validate(event)
        case ToolProgress():
            return CallProgress.model_validate(event)
        case ToolFinished():
            return CallEnded.model_validate(event)
        case _:
            return None
