"""A team as Discord shows it: one embed, a line or two for each teammate. Pure."""

from typing import Any

from bot.channels.discord.limits import EMBED_TEXT
from bot.channels.discord.text import cut, literal
from bot.domain.redaction import redact_text
from bot.domain.teams import Standing, Teammate, TeamStatus, about

_SHOWN = 10  # teammates; the newest
_SAID = 120  # units of what one does or found
_SIGNS = {Standing.WORKING: "⏳", Standing.DONE: "✅", Standing.FAILED: "🔴", Standing.STOPPED: "⏹"}


def rendered(board: TeamStatus) -> dict[str, Any]:
    lines = [f"👥 **{literal(board.title)}**", *map(_teammate, board.teammates[-_SHOWN:])]
    if len(board.teammates) > _SHOWN:
        lines.append(f"and {len(board.teammates) - _SHOWN} more: `/nod team`")
    return {"embeds": [{"description": cut("\n".join(lines), EMBED_TEXT)}]}


def _teammate(each: Teammate) -> str:
    plan, said = f"; {each.plan_state}" if each.plan_state else "", cut(redact_text(about(each)), _SAID)
    return f"{_SIGNS[each.standing]} **{literal(each.name)}**: {literal(each.state + plan)}" + (
        f"\n> {literal(said)}" if said else ""
    )
