"""A team as Slack shows it: a plan block, a task card for each teammate. Pure; posting is in ``channel.py``.

`brief` says the same in rich text, for a Slack that refuses the blocks.
"""

from bot.channels.slack import blocks, text
from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block, ContextLine, Run
from bot.channels.slack.card import SlackCard
from bot.domain.redaction import redact_text
from bot.domain.teams import Standing, Teammate, TeamStatus, about

_SHOWN = 20  # teammates; the newest
_SAID = 300  # units of what one does or found
_STATUS = {
    Standing.WORKING: "in_progress",
    Standing.DONE: "complete",
    Standing.FAILED: "error",
    Standing.STOPPED: "error",
}
_SIGNS = {Standing.WORKING: "⏳", Standing.DONE: "✅", Standing.FAILED: "❌", Standing.STOPPED: "⏹"}


def render(board: TeamStatus) -> SlackCard:
    tasks = [_task(each) for each in board.teammates[-_SHOWN:]]
    block = {"type": "plan", "title": text.cut(board.title, blocks.TASK_TITLE)[0], "tasks": tasks}
    return SlackCard([block], text.escape(board.title), whole=True)


def brief(board: TeamStatus) -> SlackCard:
    lines = [ContextLine((Run(board.title, "bold"),))]
    for each in board.teammates[-_SHOWN:]:
        lines += [ContextLine((Run(f"{_SIGNS[each.standing]} {_title(each)}"),)), *_details(each)]
    return SlackCard(b.rich(lines), text.escape(board.title), whole=True)


def _task(each: Teammate) -> Block:
    task: Block = {
        "type": "task_card",
        "task_id": each.id,
        "title": _title(each),
        "status": _STATUS[each.standing],
    }
    ended = each.standing is not Standing.WORKING
    if said := _details(each):
        task["output" if ended else "details"] = b.rich(said)[0]
    return task


def _title(each: Teammate) -> str:
    plan = f"; {each.plan_state}" if each.plan_state else ""
    return text.cut(text.link_text(f"{each.name}: {each.state}{plan}"), blocks.TASK_TITLE)[0]


def _details(each: Teammate) -> list[ContextLine]:
    said = text.cut(redact_text(about(each)), _SAID)[0]
    return [ContextLine((Run(said),))] if said.strip() else []
