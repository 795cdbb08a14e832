"""A team as Telegram shows it: one message, a line or two for each teammate. Pure."""

from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.text import Rich, joined, plain, split, styled
from bot.domain.redaction import redact_text
from bot.domain.teams import Standing, Teammate, TeamStatus, about

_SHOWN = 12  # teammates; the newest
_SAID = 200  # characters of what one does or found
_SIGNS = {Standing.WORKING: "⏳", Standing.DONE: "✅", Standing.FAILED: "🔴", Standing.STOPPED: "⏹"}


def rendered(board: TeamStatus) -> Rich:
    """Lay out the board; fits one message whatever the teammates say."""
    lines = [styled(f"👥 {board.title}", "bold")]
    lines += [_teammate(each) for each in board.teammates[-_SHOWN:]]
    if len(board.teammates) > _SHOWN:
        lines.append(plain(f"and {len(board.teammates) - _SHOWN} more: /team"))
    return split(joined(lines), TEXT_UNITS)[0]


def _teammate(each: Teammate) -> Rich:
    plan = f"; {each.plan_state}" if each.plan_state else ""
    said = redact_text(about(each))
    said = said if len(said) <= _SAID else f"{said[: _SAID - 1]}…"
    head = plain(f"{_SIGNS[each.standing]} ") + styled(each.name, "bold") + plain(f": {each.state}{plan}")
    return joined([head, plain(f"    {said}")]) if said else head
