"""Rules and grants: seen, and by admins set and dropped, the same as with words (``commands.py``)."""

from typing import Annotated

from fastapi import Path
from starlette.responses import JSONResponse

from bot.channels.http.channel import NAME, key_of
from bot.channels.http.commands import COMMAND_STATUS
from bot.channels.http.errors import problem
from bot.channels.http.rule_bodies import AnyRule, Pausing
from bot.channels.http.site import Caller, Here, Site, api_routes, ok
from bot.channels.http.views import grant_view
from bot.channels.http.wire import Rules, RuleSet, SaidBody
from bot.domain.chat import Address, Answer, Command, Reply
from bot.domain.people import Actor, Role

router = api_routes("rules", prefix="/api")


@router.get("/rules", summary="The current policy and the rules that concern you", response_model=Rules)
async def in_force(actor: Caller, site: Here) -> JSONResponse:
    """For admins (``everything``) all; for others their roles and grants, and the rules of where they are."""
    found = await site.channel.admin.current(actor)
    policy = found.policy
    mine = found.whose.accounts if found.whose else None
    return ok(
        everything=found.whose is None,
        policy=policy.mode,
        ttl_seconds=policy.ttl.total_seconds(),
        paused=policy.book.paused,
        roles={role: sorted(policy.holders(role) & (mine or policy.holders(role))) for role in Role},
        rules=[
            {"id": each.rule.id, "words": words, "set_by": each.by, "set_at": each.at.isoformat()}
            for each, words in found.rules
        ],
        grants=[grant_view(each) for each in found.grants],
    )


@router.post("/rules", summary="Set a rule", status_code=201, response_model=RuleSet)
async def set_rule(body: AnyRule, actor: Caller, site: Here) -> JSONResponse:
    """One of the same subject, place and tools is replaced. ``text`` says what follows from it."""
    reply = await say(site, actor, body.words)
    if isinstance(reply, JSONResponse):
        return reply
    answer = ok(id=reply.rule, text=reply.text)
    answer.status_code = 201
    return answer


@router.delete("/rules/{rule_id}", summary="Drop a rule", response_model=SaidBody)
async def drop_rule(
    rule_id: Annotated[int, Path(ge=1, le=999_999_999)], actor: Caller, site: Here
) -> JSONResponse:
    """404 where no such rule is current."""
    reply = await say(site, actor, f"drop {rule_id}")
    if isinstance(reply, JSONResponse):
        return reply
    return ok(text=reply.text) if reply.answer is Answer.ACCEPTED else problem(404, reply.text)


@router.put("/rules/paused", summary="Pause or resume all execution", response_model=SaidBody)
async def pause(body: Pausing, actor: Caller, site: Here) -> JSONResponse:
    """While paused nothing runs and no proposal expires."""
    reply = await say(site, actor, "pause" if body.paused else "resume")
    return reply if isinstance(reply, JSONResponse) else ok(text=reply.text)


async def say(site: Site, actor: Actor, words: str, name: str = "approvals") -> Reply | JSONResponse:
    """Say the words after a slash command, an admin's by default; what is wrong with them is the answer."""
    address = Address(NAME, key_of(actor, "console"))
    reply = await site.take_in(Command(actor, name, words, address))
    return problem(COMMAND_STATUS[reply.answer], reply.text) if reply.answer in COMMAND_STATUS else reply
