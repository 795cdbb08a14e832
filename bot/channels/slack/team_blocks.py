"""A team as Block Kit blocks: what each teammate does or found. Pure."""

from bot.channels.card_text import team_text
from bot.channels.slack import blocks, text
from bot.channels.slack.blocks import Block, RichLine, TextRun
from bot.channels.slack.card import SlackCard
from bot.domain.redaction import redact_text
from bot.domain.teams import Teammate, TeammateState, TeamStatus

_MAX_TEAMMATES = 20  # the newest
_ACTIVITY_UNITS = 300  # the room for a teammate's activity or result
_TASK_STATUSES = {
    TeammateState.WORKING: "in_progress",
    TeammateState.DONE: "complete",
    TeammateState.FAILED: "error",
    TeammateState.STOPPED: "error",
}


def render_team(status: TeamStatus) -> SlackCard:
    """Return a team as a plan block, with a task card for each teammate."""
    tasks = [_render_task(teammate) for teammate in status.teammates[-_MAX_TEAMMATES:]]
    block = {"type": "plan", "title": text.cut(status.title, blocks.MAX_TASK_TITLE_UNITS)[0], "tasks": tasks}
    return SlackCard([block], text.escape(status.title), shows_all=True)


def brief_team(status: TeamStatus) -> SlackCard:
    """Render a team's status in rich text only, for a Slack that refuses the other blocks."""
    lines = (RichLine((TextRun(line),)) for line in team_text(status).splitlines())
    return SlackCard(blocks.rich(lines), text.escape(status.title), shows_all=True)


def _render_task(teammate: Teammate) -> Block:
    task: Block = {
        "type": "task_card",
        "task_id": teammate.id,
        "title": _name_teammate(teammate),
        "status": _TASK_STATUSES[teammate.stored_state],
    }
    has_ended = teammate.stored_state is not TeammateState.WORKING
    activity = _describe_activity(teammate)
    if activity:
        task["output" if has_ended else "details"] = blocks.rich(activity)[0]
    return task


def _name_teammate(teammate: Teammate) -> str:
    plan = f"; {teammate.plan_state}" if teammate.plan_state else ""
    return text.cut(text.one_line(f"{teammate.name}: {teammate.state}{plan}"), blocks.MAX_TASK_TITLE_UNITS)[0]


def _describe_activity(teammate: Teammate) -> list[RichLine]:
    activity = text.cut(redact_text(teammate.status_text), _ACTIVITY_UNITS)[0]
    if activity.strip():
        return [RichLine((TextRun(activity),))]
    return []
