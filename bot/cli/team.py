"""``nod team``: look at the teammates there are, and change nothing."""

from typing import Any

from bot.approvals.commands.everyone import listed
from bot.cli.shared import load, looking, plain, print_json, told
from bot.domain.redaction import redact_text
from bot.domain.teams import Teammate, about
from bot.store import teams


def team(*, as_json: bool) -> None:
    """List the teammates of all conversations with their plans."""
    with told(), looking(load()) as database:
        found = database.read_now(teams.at, None)
        if as_json:
            print_json([_member(each) for each in found])
        else:
            print(plain(listed(found).replace("**", "").replace("`", "")))


def _member(each: Teammate) -> dict[str, Any]:
    return {
        "id": each.id,
        "conversation_id": each.lead_id,
        "name": each.name,
        "role": each.role,
        "state": each.state,
        "plan_state": each.plan_state,
        "about": redact_text(about(each)),
        "waits_for": [p.id for p in each.waits_for],
        "created_at": each.created_at.isoformat(),
    }
