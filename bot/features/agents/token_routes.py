"""The routes by which people list, make and end the tokens of their agents.

An agent is a program that calls the team's tools for one person.
"""

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from fastapi import Path
from pydantic import Field
from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.agent_tokens import end_work_of_tokens
from bot.approvals.agent_tools import find_servers, list_matching
from bot.domain.agents import read_patterns
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.domain.times import parse_duration
from bot.errors import NodError
from bot.features.feature import PartsDep, RouteParts
from bot.store import tokens
from bot.store.tokens import AgentTerms, IssuedToken
from bot.web.answers import HttpError
from bot.web.body import Body
from bot.web.schemas import DoneBody, Time, View
from bot.web.site import Caller, SiteDep, make_router

_MAX_LIFE = timedelta(days=366)

router = make_router("agents", prefix="/api")

Label = Annotated[str, Path(max_length=64)]


class AgentView(View):
    """A token of an agent, without its secret.

    - `label`: the public part of the token, which names the token; `name`: the name of the agent.
    - `person`: the person for whom the agent calls tools. `agreed`: this person agreed to the token.
    - `tools`: patterns of the names of tools. `servers`: where the agent acts with this person's sign-in.
    - `mine`: the agent calls tools for the caller of this route.
    """

    label: str
    name: str
    person: str
    person_name: str
    tools: list[str]
    servers: list[str]
    agreed: bool
    made_by: str
    made_at: Time
    until: Time | None
    last_used_at: Time | None
    mine: bool


class AgentList(DoneBody):
    """``everyone``: the list has the agents of all people, for an admin of all of Nod."""

    everyone: bool
    agents: list[AgentView]


class NewAgent(Body):
    """``tools``: patterns of names, as in ``issues_*``. ``lasts``: for how long, as in ``90d``.

    ``dry_run``: make no token, only list the tools that match the patterns now.
    """

    name: Annotated[str, Field(max_length=64)]
    tools: Annotated[list[str], Field(max_length=20)]
    lasts: Annotated[str, Field(max_length=20)] = "90d"
    dry_run: bool = False


class MadeAgent(DoneBody):
    """``token`` is shown only now; null for a dry run. ``tools``: the tools that the token may call now."""

    token: str | None
    label: str | None
    tools: list[str]
    servers: list[str]
    until: Time


@router.get("/agents", summary="The agents that call tools for you")
async def list_agents(actor: Caller, parts: PartsDep) -> AgentList:
    """Return your agents; to an admin of all of Nod everyone's."""
    visible = await parts.database.read(_list_visible, parts, actor)
    agents = [_make_view(token, visible.own_accounts) for token in visible.tokens]
    return AgentList(everyone=visible.everyone, agents=agents)


class _VisibleAgents(NamedTuple):
    """The tokens of agents that a person may see."""

    everyone: bool  # the tokens are those of all people, for an admin of all of Nod
    own_accounts: frozenset[str]  # the accounts of the person
    tokens: list[IssuedToken]


def _list_visible(session: Session, parts: RouteParts, actor: Actor) -> _VisibleAgents:
    accounts = rights.find_visible_accounts(session, parts.policies, actor)  # None: everyone's
    return _VisibleAgents(
        everyone=accounts is None,
        own_accounts=rights.list_accounts(session, actor),
        tokens=tokens.list_agents(session, accounts, parts.clock()),
    )


def _make_view(token: IssuedToken, own_accounts: frozenset[str]) -> AgentView:
    """Return a token as the person with these accounts sees it."""
    return AgentView(
        label=token.label,
        name=token.name,
        person=token.person or "",
        person_name=token.person_name or token.person or "",
        tools=list(token.tools or ()),
        servers=list(token.servers or ()),
        agreed=token.agreed_at is not None,
        made_by=token.made_by,
        made_at=token.made_at,
        until=token.until,
        last_used_at=token.last_used_at,
        mine=token.person in own_accounts,
    )


@router.post("/agents", summary="Make a token for an agent of yours", status_code=201)
async def make_agent(body: NewAgent, actor: Caller, site: SiteDep, parts: PartsDep) -> MadeAgent:
    """Make a token for an agent that calls tools for you.

    An agent of another person needs this person's consent: ``nod token new NAME --as`` asks for it.
    """
    try:
        patterns = read_patterns(body.tools)
        lasts = parse_duration(body.lasts)
    except ValueError as error:
        raise HttpError(422, str(error)) from None
    if lasts > _MAX_LIFE:
        raise HttpError(422, "A token lasts for 366 days at most.")
    until = parts.clock() + lasts
    matching_tools = await list_matching(site.channel.registry, actor, patterns)
    servers = find_servers(matching_tools)
    names = sorted(tool.name for tool in matching_tools)
    token = label = None
    if not body.dry_run:
        terms = AgentTerms(
            person=actor, tools=patterns, servers=servers, shown_tools=names, until=until, agreed=True
        )
        token = await _issue(parts, body.name, actor, parts.clock(), terms)
        label = token.split("_")[1]  # a token is its prefix, its label and its secret
    return MadeAgent(token=token, label=label, tools=names, servers=servers, until=until)


async def _issue(parts: RouteParts, name: str, actor: Actor, now: datetime, terms: AgentTerms) -> str:
    try:
        return await parts.database.write(tokens.issue_token, name, actor, now, terms)
    except NodError as error:
        raise HttpError(422, error.message) from None


@router.delete("/agents/{label}", summary="End an agent's token")
async def end_agent(label: Label, actor: Caller, parts: PartsDep) -> DoneBody:
    """End a token of yours; an admin of all of Nod ends anyone's.

    The grants given to the agent end with it, and its open calls are withdrawn.
    """

    def end_token(session: Session) -> tuple[int, tuple[Job, ...]]:
        now = parts.clock()
        if rights.is_global_admin(session, parts.policies, actor):
            ended = tokens.revoke_agent_for_admin(session, label, actor, now)
        else:
            ended = tokens.revoke_own_agent(session, label, actor, now)
        return len(ended), end_work_of_tokens(session, ended, now)

    ended_count, jobs = await parts.database.write(end_token)
    if not ended_count:
        raise HttpError(404, "There is no such token of yours.")
    await parts.wake(*jobs)
    return DoneBody()
