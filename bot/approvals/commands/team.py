"""``/nod team``: the teammates at work in this conversation, their plans and their status."""

from collections.abc import Sequence

from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.teams import Teammate, about

_SAID = 160
SHORT_ID = 8


def listed(team: Sequence[Teammate]) -> str:
    """A line for each teammate, and one for each proposal it waits for."""
    return "\n".join(line for each in team for line in _lines(each)) or "There are no teammates here."


def _lines(each: Teammate) -> list[str]:
    plan = f"; {each.plan_state}" if each.plan_state else ""
    said = redact_text(about(each))
    said = f": {said if len(said) <= _SAID else said[: _SAID - 1] + '…'}" if said else ""
    return [
        f"- **{each.name}** ({each.role}), {each.state}{plan}{said}",
        *(_waiting(p) for p in each.waits_for),
    ]


def _waiting(p: Proposal) -> str:
    return f"  - waits: `{p.id[:SHORT_ID]}` {redact_text(p.description)}"
