"""Rules and grants: seen, and by admins set and dropped, the same as with words (``commands.py``)."""

from typing import Annotated

from fastapi import Path

from bot.domain.chat import Answer
from bot.domain.people import Role
from bot.web.commands import say
from bot.web.errors import Missing
from bot.web.rule_bodies import AnyRule, Pausing
from bot.web.schemas.base import SaidBody
from bot.web.schemas.rules import GrantView, Rules, RuleSet, RuleView
from bot.web.site import Caller, Here, api_routes

router = api_routes("rules", prefix="/api")


@router.get("/rules", summary="The current policy and the rules that concern you")
async def in_force(actor: Caller, site: Here) -> Rules:
    """For admins (``everything``) all; for others their roles and grants, and the rules of where they are."""
    found = await site.channel.admin.current(actor)
    policy = found.policy
    mine = found.whose.accounts if found.whose else None
    return Rules(
        everything=found.whose is None,
        policy=policy.mode,
        ttl_seconds=policy.ttl.total_seconds(),
        paused=policy.book.paused,
        roles={role: sorted(policy.holders(role) & (mine or policy.holders(role))) for role in Role},
        rules=[
            RuleView(id=each.rule.id, words=words, set_by=each.by, set_at=each.at)
            for each, words in found.rules
        ],
        grants=[GrantView.model_validate(each) for each in found.grants],
    )


@router.post("/rules", summary="Set a rule", status_code=201)
async def set_rule(body: AnyRule, actor: Caller, site: Here) -> RuleSet:
    """One of the same subject, place and tools is replaced. ``text`` says what follows from it."""
    reply = await say(site, actor, body.words)
    return RuleSet(id=reply.rule, text=reply.text)


@router.delete("/rules/{rule_id}", summary="Drop a rule")
async def drop_rule(
    rule_id: Annotated[int, Path(ge=1, le=999_999_999)], actor: Caller, site: Here
) -> SaidBody:
    """404 where no such rule is current."""
    reply = await say(site, actor, f"drop {rule_id}")
    if reply.answer is not Answer.ACCEPTED:
        raise Missing(reply.text)
    return SaidBody(text=reply.text)


@router.put("/rules/paused", summary="Pause or resume all execution")
async def pause(body: Pausing, actor: Caller, site: Here) -> SaidBody:
    """While paused nothing runs and no proposal expires."""
    reply = await say(site, actor, "pause" if body.paused else "resume")
    return SaidBody(text=reply.text)
