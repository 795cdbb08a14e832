"""Routes that say how Nod is set up and what it costs: settings, features, the doctor, tools, usage.

The doctor (``nod doctor``) looks for faults of the set-up. Usage is the number of turns, model calls and
tokens.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from typing import Annotated

from fastapi import Query

from bot.agent.openai.offers import list_omissions
from bot.approvals.lookup.settings import list_settings
from bot.domain.chat import Parts, UsageRow
from bot.domain.people import AGENTS, Actor
from bot.errors import CallRefused, TooManyCalls
from bot.tools.tool import Tool
from bot.web.answers import TooManyRequests
from bot.web.body import Since
from bot.web.plots import draw_usage_plots
from bot.web.schemas.status import ActiveParts, Findings, SettingList, Tools, ToolView, Usages
from bot.web.sign_in.tokens import Forbidden
from bot.web.site import Admin, Caller, Site, SiteDep, make_router

router = make_router("status", prefix="/api")

_MONTH = timedelta(days=30)


@router.get("/settings", summary="For admins: the settings that apply")
async def settings(_: Admin, site: SiteDep) -> SettingList:
    """Secrets are not shown, only whether they are set."""
    return SettingList.of(settings=list_settings(site.doctor.settings))


@router.get("/features", summary="For admins: what is on, and who set it")
async def list_active(_: Admin, site: SiteDep) -> ActiveParts:
    """A part is an area of Nod; at most 50 lines of each are listed. Parts with nothing on are not listed."""
    return ActiveParts.of(parts=await site.channel.admin.list_active())


@router.get("/doctor", summary="For admins: what nod doctor finds")
async def doctor(_: Admin, site: SiteDep) -> Findings:
    """The settings and all they reach are looked at, in at most two minutes. Findings are kept for 10 s."""
    return Findings.model_validate(await site.doctor.examine())


@router.get("/tools", summary="The tools there are right now")
async def listed(actor: Caller, site: SiteDep) -> Tools:
    """With ``offered`` false, no model is told of the tool: only a person or a script may ask for it.

    With an agent's token, the list has the tools that the agent may call.
    """
    tools = await _list_tools(site, actor)

    def list_all_omissions() -> list[Sequence[str]]:
        return [list_omissions(tool.spec) for tool in tools]

    omissions = await asyncio.to_thread(list_all_omissions)
    views = []
    for tool, omitted in zip(tools, omissions, strict=True):
        view = ToolView.model_validate(tool)
        refusals = site.models.describe_refusals(tool.spec)
        views.append(view.model_copy(update={"untold": omitted, "refused_by": refusals}))
    return Tools.of(tools=views)


async def _list_tools(site: Site, actor: Actor) -> Sequence[Tool]:
    if actor.channel == AGENTS:
        try:
            return await site.tools_of(actor)
        except CallRefused as error:
            raise Forbidden(error.message) from None
        except TooManyCalls as error:
            raise TooManyRequests(error.message) from None
    available = await site.channel.registry.load_tools()
    return sorted(available, key=lambda tool: (tool.group, tool.name))


@router.get("/usage", summary="Turns, model calls, tokens and cost, by day or otherwise")
async def used(
    actor: Caller,
    site: SiteDep,
    by: Parts = Parts.DAY,
    since: Annotated[Since | None, Query(description="30 days ago by default; UTC unless it says")] = None,
) -> Usages:
    """Covers your own conversations; for admins everyone's (``everyone``).

    `by` divides the usage into `parts`, such as days or people; there are at most 1,000.
    """
    begin = since or site.channel.clock() - _MONTH
    admin = site.channel.admin
    everyone, parts = await admin.usage(actor, by, begin)
    no_usage = UsageRow("", "", turns=0, model_calls=0, prompt_tokens=0, completion_tokens=0)
    return Usages.of(
        since=begin,
        everyone=everyone,
        currency=admin.currency,
        total=reduce(UsageRow.add, parts, no_usage),
        parts=parts,
        plots=draw_usage_plots(parts, admin.currency),
        budgets=await admin.budgets(actor),
    )
