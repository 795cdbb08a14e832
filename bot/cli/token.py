"""``nod token``: makes, lists and revokes tokens of the HTTP interface.

A token belongs to a script, which acts as the account ``http:NAME``, or to an agent. An agent is a program
that calls some tools for one person, once that person has agreed.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer
from sqlmodel import Session

from bot.approvals.agent_tokens import end_work_of_tokens, make_consent_request
from bot.approvals.agent_tools import find_servers, list_matching
from bot.approvals.commands.operands import parse_account
from bot.approvals.requests import RequestGate
from bot.cli.command import command, shared_options
from bot.cli.gate import open_gate
from bot.cli.shared import (
    Json,
    escape_for_terminal,
    get_shell_actor,
    load_settings,
    log_at,
    open_existing,
    open_readonly,
    print_json,
)
from bot.domain.agents import Agent, read_patterns
from bot.domain.people import Actor
from bot.domain.times import format_relative, now, parse_duration
from bot.errors import NodError
from bot.settings import Settings
from bot.store import people, tokens
from bot.store.database import Database
from bot.store.locks.process_lock import notify_processes
from bot.store.tokens import AgentTerms, IssuedToken
from bot.tools.tool import Tool

_MAX_AGENT_LIFE = timedelta(days=366)

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
        token = database.write_now(tokens.issue_token, name, get_shell_actor(), now())
        print(token)
        revoking = f"nod token revoke {_label_of(token)}"
        words = f"Copy it now. It is not shown again. It is http:{name}. To end it: {revoking}"
        print(words, file=sys.stderr)


def _label_of(token: str) -> str:
    """Return the label in a token, which is its prefix, its label and its secret, joined by ``_``."""
    return token.split("_")[1]


async def _make_agent(
    settings: Settings, database: Database, name: str, tools: str, person: str, lasts: str
) -> None:
    """Make the token of an agent and print it, list the tools that it may call, and ask its person to agree.

    The parameters are the options of `new`, unparsed.
    """
    log_at("error")
    made_at = now()
    try:
        patterns = read_patterns(tools)
        until = made_at + parse_duration(lasts)
    except ValueError as error:
        raise NodError(str(error)) from None
    if until > made_at + _MAX_AGENT_LIFE:
        raise NodError("--for: a token of an agent lasts for 366 days at most")
    account = await database.read(_find_person, person) if person else get_shell_actor()
    async with open_gate(settings, database, all_now=True) as gate:
        matching = sorted(await list_matching(gate.registry, account, patterns), key=lambda tool: tool.name)
        names = [tool.name for tool in matching]
        _print_tools(matching)
        terms = AgentTerms(
            person=account,
            tools=patterns,
            servers=[],  # none yet: the person who agrees to the token allows its servers, too
            shown_tools=names,
            until=until,
        )
        token = await database.write(tokens.issue_token, name, get_shell_actor(), made_at, terms)
        label = _label_of(token)
        agent = Agent(
            name=name,
            label=label,
            person=account,
            tools=patterns,
            servers=(),
            shown_tools=frozenset(names),
            until=until,
        )
        consent_request = make_consent_request(agent, names, find_servers(matching), get_shell_actor(), until)
        proposal = (await RequestGate(gate).open(consent_request)).proposal
    print(token)
    words = f"Copy it now. It is not shown again. It calls for {account.label} until {until:%Y-%m-%d}."
    asked = f"It opens nothing before they say yes: in their chat, the console, or nod approve {proposal.id}"
    print(escape_for_terminal(f"{words}\n{asked}\nTo end it: nod token revoke {label}"), file=sys.stderr)


def _print_tools(tools: Sequence[Tool]) -> None:
    for tool in tools:
        print(escape_for_terminal(f"{tool.name:<24} {tool.risk_label}"), file=sys.stderr)
    if not tools:
        print("There is no such tool now. Its person is told when there is.", file=sys.stderr)


def _find_person(session: Session, text: str) -> Actor:
    """Return the account that a text names, or that of the one person with this name. Raises NodError."""
    if ":" in text:
        account = parse_account(text)
        name = people.find_known_names(session, [str(account)]).get(str(account), "")
        return Actor(account.channel, account.key, name)
    accounts = people.find_by_name(session, text)
    person_ids = {people.load_person(session, account).id for account in accounts}
    if len(person_ids) != 1:
        why = "several people have that name" if accounts else "no one here has that name"
        raise NodError(f"--as {text}: {why}. Name an account, such as slack:T1/U7 or http:ana")
    return accounts[0]


@command(app, "list")
def list_(*, as_json: Json = False) -> None:
    """List the tokens that work: label, account, who made it, when."""
    settings = load_settings()
    with open_readonly(settings) as database:
        issued = database.read_now(tokens.list_unrevoked)
    configured_names = sorted(settings.names_by_token.values())
    if as_json:
        rows = [_token_to_json(token.name, token) for token in issued]
        rows += [_token_to_json(name) for name in configured_names]
        print_json(rows)
        return
    for token in issued:
        made = f"by {token.made_by}, {format_relative(token.made_at, now())}"
        print(escape_for_terminal(f"{token.label}  {_name_holder(token)}  {made}{_format_agent_part(token)}"))
    for name in configured_names:
        print(f"{'-':<8}  http:{name}  in NOD_HTTP_TOKENS")
    if not issued and not configured_names:
        print("There are no tokens. To make one: nod token new NAME")


def _name_holder(token: IssuedToken) -> str:
    return f"agents/{token.name}" if token.is_agent else f"http:{token.name}"


def _format_agent_part(token: IssuedToken) -> str:
    """Return the end of a token's line on its agent; empty for the token of a script."""
    if not token.is_agent:
        return ""
    agreed = "" if token.agreed_at else ", not allowed yet"
    used = f", last used {format_relative(token.last_used_at, now())}" if token.last_used_at else ""
    return f", for {token.person}: {', '.join(token.tools or ())}{agreed}{used}"


def _token_to_json(name: str, token: IssuedToken | None = None) -> dict[str, Any]:
    """Return a token as JSON. A token of NOD_HTTP_TOKENS is not stored (None): only its account is known."""
    row: dict[str, Any] = {"label": None, "account": f"http:{name}", "made_by": None, "made_at": None}
    if token is None:
        return row
    row |= {"label": token.label, "made_by": token.made_by, "made_at": token.made_at.isoformat()}
    if token.is_agent:
        row |= {
            "account": None,
            "agent": name,
            "for": token.person,
            "tools": list(token.tools or ()),
            "until": token.until.isoformat() if token.until else None,
            "agreed": token.agreed_at is not None,
        }
    return row


@command(app, "revoke")
def revoke_token(
    which: Annotated[str, typer.Argument(metavar="LABEL", help="Its label, or the name of several.")],
) -> None:
    """Revoke a token: the running nod refuses it from then on, and ends its streams."""
    settings = load_settings()
    with open_existing(settings) as database:
        ended = database.write_now(_revoke, which)
        notify_processes(database.engine)
    if not ended:
        more = ""
        if which in settings.names_by_token.values():
            more = " It is in NOD_HTTP_TOKENS: remove it there."
        raise NodError(f"there is no token {which}.{more} See: nod token list")
    for token in ended:
        print(f"Revoked {token.label} of {_name_holder(token)}.")


def _revoke(session: Session, which: str) -> list[IssuedToken]:
    ended = tokens.revoke_token(session, which, get_shell_actor(), now())
    end_work_of_tokens(session, [token for token in ended if token.is_agent], now())
    return ended
