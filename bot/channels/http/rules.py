"""What admins see of rules and grants. They change them with words: ``commands.py``."""

from typing import Any

from fastapi import APIRouter
from sqlmodel import Session
from starlette.responses import JSONResponse

from bot.channels.http.errors import problem
from bot.channels.http.site import Caller, Here, ok
from bot.domain.people import Role
from bot.store import grants, rules

router = APIRouter(prefix="/api")


@router.get("/rules", summary="For admins: the policy in force, every rule and every grant")
async def in_force(actor: Caller, site: Here) -> JSONResponse:
    views = site.channel.views

    def read(session: Session) -> dict[str, Any] | None:
        if not views.policies.is_admin(session, actor):
            return None
        policy = views.policies.load(session)
        return {
            "policy": policy.mode,
            "ttl_seconds": policy.ttl.total_seconds(),
            "paused": policy.book.paused,
            "roles": {role: sorted(policy.holders(role)) for role in Role},
            "rules": [
                {
                    "id": each.rule.id,
                    "words": each.rule.words.partition(": ")[2],
                    "set_by": each.by,
                    "set_at": each.at.isoformat(),
                }
                for each in rules.in_force(session)
            ],
            "grants": [
                {
                    "label": grant.label,
                    "words": grant.words,
                    "given_by": grant.person_name,
                    "given_at": grant.created_at.isoformat(),
                    "expires_at": grant.expires_at.isoformat() if grant.expires_at else None,
                    "uses": grant.uses,
                }
                for grant in grants.live(session, views.clock())
            ],
        }

    found = await site.channel.database.read(read)
    return problem(403, "The rules are for admins.") if found is None else ok(**found)
