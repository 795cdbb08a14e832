"""Routes of rules, grants and slash commands. They run the same commands that people type in a chat.

A rule is set by an admin and says, for example, which calls need approval. A grant lets similar calls run
without asking. A route turns its request into the text of a command, such as ``/approvals drop 7``, and hands
the text to the core, so that both ways are checked alike. ``rule_bodies.py`` makes the text of a rule.
"""

from typing import Annotated

from fastapi import Path
from pydantic import Field

from bot.domain.chat import Address, Answer, Command, Reply
from bot.domain.people import Actor, Role
from bot.errors import NodError
from bot.web.answers import HttpError, NotFound
from bot.web.body import Body
from bot.web.channel import CHANNEL_NAME, make_address_key
from bot.web.rule_bodies import AnyRule, Pausing
from bot.web.schemas import SaidBody
from bot.web.schemas.grants import Grants, GrantView
from bot.web.schemas.rules import Rules, RuleSet, RuleView, TriedBody
from bot.web.site import Admin, Caller, Site, SiteDep, make_router

router = make_router("rules", prefix="/api")

_FAULT_STATUS = {Answer.REFUSED: 403, Answer.INVALID: 422}


@router.get("/rules", summary="The current policy and the rules that concern you")
async def in_force(actor: Caller, site: SiteDep) -> Rules:
    """Return everything to an admin (``everything``).

    Others get their own roles and grants, and the rules of the places where they are.
    """
    view = await site.channel.admin.current(actor)
    policy = view.policy
    misfits = await site.channel.registry.find_misfits(policy.rulebook)
    roles = {role: policy.list_holders(role) for role in Role}
    if view.person is not None:  # not an admin
        roles = {role: holders & view.person.accounts for role, holders in roles.items()}
    return Rules(
        everything=view.person is None,
        policy=policy.mode,
        ttl_seconds=policy.ttl.total_seconds(),
        paused=policy.rulebook.paused,
        roles={role: sorted(holders) for role, holders in roles.items()},
        rules=[
            RuleView(
                id=rule_row.rule.id,
                words=words,
                set_by=rule_row.set_by,
                set_at=rule_row.set_at,
                until=rule_row.rule.limits.until if rule_row.rule.limits else None,
                trouble=misfits.get(rule_row.rule.id),
            )
            for rule_row, words in view.rules
        ],
        grants=[GrantView.model_validate(grant) for grant in view.grants],
    )


@router.post("/rules", summary="Set a rule", status_code=201)
async def set_rule(body: AnyRule, actor: Caller, site: SiteDep) -> RuleSet:
    """A rule of the same subject, place and tools is replaced. ``text`` says what follows from the rule."""
    reply = await _run_command(site, actor, body.command_text)
    return RuleSet(id=reply.rule, text=reply.text)


class Attempt(Body):
    """``rule``: the text after ``/approvals``, such as ``policy never for comment_issue in slack:T1/C2``."""

    rule: Annotated[str, Field(min_length=1, max_length=1000)]
    days: Annotated[int, Field(ge=1, le=366)] = 30
    before: Annotated[
        str, Field(max_length=100, pattern=r"^\S*$", description="an earlier page's `next`")
    ] = ""


@router.post("/rules/try", summary="For admins: what a rule would have changed")
async def attempt(body: Attempt, actor: Admin, site: SiteDep) -> TriedBody:
    """The rule is not set. It is tried on earlier calls that write, newest first, with their stored risk."""
    words = f"{body.rule} last {body.days}d"
    if body.before:
        words += f" before {body.before}"
    address = Address(CHANNEL_NAME, make_address_key(actor, "console"))
    try:
        trial = await site.channel.admin.try_rule(Command(actor, "approvals", words, address))
    except NodError as error:
        raise HttpError(422, error.message) from None
    return TriedBody.model_validate(trial)


@router.delete("/rules/{rule_id}", summary="Drop a rule")
async def drop_rule(
    rule_id: Annotated[int, Path(ge=1, le=999_999_999)], actor: Caller, site: SiteDep
) -> SaidBody:
    """The answer is 404 if no rule of this number is current."""
    return await _run_ending(site, actor, f"drop {rule_id}")


@router.put("/rules/paused", summary="Pause or resume all execution")
async def pause(body: Pausing, actor: Caller, site: SiteDep) -> SaidBody:
    """While paused nothing runs and no proposal expires."""
    reply = await _run_command(site, actor, "pause" if body.paused else "resume")
    return SaidBody(text=reply.text)


@router.get("/grants", summary="What is allowed without asking")
async def live(actor: Caller, site: SiteDep) -> Grants:
    """Return the grants that you gave, or all grants to an admin."""
    return Grants.of(grants=await site.channel.admin.grants(actor))


@router.delete("/grants/{label}", summary="For admins: end a grant")
async def revoke(
    label: Annotated[str, Path(pattern=r"^G-[0-9]{1,9}$")], actor: Caller, site: SiteDep
) -> SaidBody:
    """``label`` is as listed, such as ``G-7``. Calls that ran by the grant stay; later calls ask again."""
    return await _run_ending(site, actor, f"revoke {label}")


async def _run_ending(site: Site, actor: Actor, text: str) -> SaidBody:
    """Run a command that ends a rule or grant. Raises NotFound without such a rule or grant."""
    reply = await _run_command(site, actor, text)
    if reply.answer is not Answer.ACCEPTED:
        raise NotFound(reply.text)
    return SaidBody(text=reply.text)


class Spoken(Body):
    """``name`` is ``nod`` or ``approvals``, ``text`` is what follows that name, such as ``policy test …``."""

    name: Annotated[str, Field(max_length=40)]
    text: Annotated[str, Field(max_length=4000)] = ""
    conversation_id: Annotated[str, Field(max_length=64)] = ""


@router.post(
    "/commands",
    summary="A slash command, such as /approvals list; the answer is for you alone",
)
async def command(body: Spoken, actor: Caller, site: SiteDep) -> SaidBody:
    conversation_id = body.conversation_id or "console"
    reply = await _run_command(site, actor, body.text, body.name, conversation_id)
    return SaidBody(text=reply.text)


async def _run_command(
    site: Site, actor: Actor, text: str, name: str = "approvals", conversation_id: str = "console"
) -> Reply:
    """Run a slash command, ``/approvals`` by default. Raises HttpError if it is refused or invalid."""
    address = Address(CHANNEL_NAME, make_address_key(actor, conversation_id))
    reply = await site.submit(Command(actor, name, text, address))
    if reply.answer in _FAULT_STATUS:
        raise HttpError(_FAULT_STATUS[reply.answer], reply.text)
    return reply
