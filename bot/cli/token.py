"""``nod token``: tokens of the HTTP interface, made, listed and revoked."""

import asyncio
import sys
from datetime import timedelta
from typing import Annotated, Any

import typer
from sqlmodel import Session

from bot.approvals.agents import end_work, find_servers, list_matching, make_consent
from bot.cli.command import command, shared_options
from bot.cli.gate import gate_of
from bot.cli.shared import (
    Json,
    load_settings,
    log_at,
    open_existing,
    open_readonly,
    operator,
    plain,
    print_json,
)
from bot.domain.agents import Agent, read_patterns
from bot.domain.people import Actor
from bot.domain.times import format_relative, now, parse_duration
from bot.errors import NodError
from bot.settings import Settings
from bot.store import people, tokens
from bot.store.database import Database
from bot.store.locks.process_lock import notify
from bot.store.tokens import AgentTerms, IssuedToken

_LONGEST = timedelta(days=366)

app = typer.Typer(
    callback=shared_options,
    no_args_is_help=True,
    help="Make, list and revoke tokens for the HTTP interface.",
)


@command(app)
def new(
    name: Annotated[str, typer.Argument(help="Who uses it, such as ci (account http:ci), or an agent.")],
    tools: Annotated[
        str, typer.Option("--tools", help="For an agent: what it may call, as in 'issues_*,wiki_search'.")
    ] = "",
    person: Annotated[
        str, typer.Option("--as", help="For an agent: for whom it calls. They are asked for their yes.")
    ] = "",
    lasts: Annotated[str, typer.Option("--for", help="For an agent: how long it lasts.")] = "90d",
) -> None:
    """Make a token and print it, once: only its hash is kept.

    With --tools it is an agent's: it calls those tools for one person, and opens nothing before their yes.
    """
    settings = load_settings()
    with open_existing(settings) as database:
        if tools or person:
            asyncio.run(_make_agent(settings, database, name, tools, person, lasts))
            return
        token = database.write_now(tokens.issue, name, operator(), now())
        print(token)
        label = token.split("_")[1]
        words = f"Copy it now. It is not shown again. It is http:{name}. To end it: nod token revoke {label}"
        print(words, file=sys.stderr)


async def _make_agent(
    settings: Settings, database: Database, name: str, tools: str, person: str, lasts: str
) -> None:
    """Make the token of an agent, list its tools, and ask its person."""
    log_at("error")
    made_at = now()
    try:
        patterns, until = read_patterns(tools), made_at + parse_duration(lasts)
    except ValueError as error:
        raise NodError(str(error)) from None
    if until > made_at + _LONGEST:
        raise NodError("--for: a token of an agent lasts for 366 days at most")
    whose = await database.read(_find_person, person) if person else operator()
    async with gate_of(settings, database, all_now=True) as gate:
        found = await list_matching(gate.registry, whose, patterns)
        names, servers = sorted(tool.name for tool in found), find_servers(found)
        for tool in sorted(found, key=lambda tool: tool.name):
            print(plain(f"{tool.name:<24} {tool.harm}"), file=sys.stderr)
        if not found:
            print("There is no such tool now. Its person is told when there is.", file=sys.stderr)
        terms = AgentTerms(whose, patterns, [], names, until)
        token = await database.write(tokens.issue, name, operator(), made_at, terms)
        label = token.split("_")[1]
        agent = Agent(name, label, whose, patterns, (), frozenset(names), until=until)
        proposal = (await gate.open(make_consent(agent, names, servers, operator(), until))).proposal
    print(token)
    words = f"Copy it now. It is not shown again. It calls for {whose.label} until {until:%Y-%m-%d}."
    asked = f"It opens nothing before they say yes: in their chat, the console, or nod approve {proposal.id}"
    print(plain(f"{words}\n{asked}\nTo end it: nod token revoke {label}"), file=sys.stderr)


def _find_person(session: Session, text: str) -> Actor:
    """Return an account by its text or by a person's name. Raises NodError where that is not one person."""
    if ":" in text:
        account = Actor.parse(text)
        name = people.find_known_names(session, [text]).get(text, "")
        return Actor(account.channel, account.key, name)
    found = people.find_by_name(session, text)
    if len({people.person_of(session, each).id for each in found}) != 1:
        why = "no one here has that name" if not found else "several people have that name"
        raise NodError(f"--as {text}: {why}. Name an account, such as slack:T1/U7 or http:ana")
    return found[0]


@command(app, "list")
def list_(*, as_json: Json = False) -> None:
    """List the tokens that work: label, account, who made it, when."""
    settings = load_settings()
    with open_readonly(settings) as database:
        found = database.read_now(tokens.working)
    if as_json:
        print_json(
            [
                *(_token_to_json(t.name, t) for t in found),
                *map(_token_to_json, sorted(settings.tokens.values())),
            ]
        )
        return
    for t in found:
        made = f"by {t.made_by}, {format_relative(t.made_at, now())}"
        print(plain(f"{t.label}  {_name_holder(t)}  {made}{_describe_agent(t)}"))
    for name in sorted(settings.tokens.values()):
        print(f"{'-':<8}  http:{name}  in NOD_HTTP_TOKENS")
    if not found and not settings.tokens:
        print("There are no tokens. To make one: nod token new NAME")


def _name_holder(token: IssuedToken) -> str:
    return f"agents/{token.name}" if token.is_agent else f"http:{token.name}"


def _describe_agent(token: IssuedToken) -> str:
    if not token.is_agent:
        return ""
    agreed = "" if token.agreed_at else ", not allowed yet"
    used = f", last used {format_relative(token.last_used_at, now())}" if token.last_used_at else ""
    return f", for {token.person}: {', '.join(token.tools or ())}{agreed}{used}"


def _token_to_json(name: str, token: IssuedToken | None = None) -> dict[str, Any]:
    """Return a token as JSON. Tokens of NOD_HTTP_TOKENS have nothing but an account."""
    label, made_by, at = (token.label, token.made_by, token.made_at.isoformat()) if token else (None,) * 3
    told: dict[str, Any] = {"label": label, "account": f"http:{name}", "made_by": made_by, "made_at": at}
    if token is None or not token.is_agent:
        return told
    agent = {"account": None, "agent": name, "for": token.person, "tools": list(token.tools or ())}
    until = token.until.isoformat() if token.until else None
    return told | agent | {"until": until, "agreed": token.agreed_at is not None}


@command(app, "revoke")
def revoke_token(
    which: Annotated[str, typer.Argument(metavar="LABEL", help="Its label, or the name of several.")],
) -> None:
    """Revoke a token: the running nod refuses it from then on, and ends its streams."""
    settings = load_settings()
    with open_existing(settings) as database:
        ended = database.write_now(_revoke, which)
        notify(database.engine)
    if not ended:
        if which in settings.tokens.values():
            more = " It is in NOD_HTTP_TOKENS: remove it there."
        else:
            more = ""
        raise NodError(f"there is no token {which}.{more} See: nod token list")
    for t in ended:
        print(f"Revoked {t.label} of {_name_holder(t)}.")


def _revoke(session: Session, which: str) -> list[IssuedToken]:
    ended = tokens.revoke_token(session, which, operator(), now())
    end_work(session, [each for each in ended if each.is_agent], now())
    return ended
