"""The agents' tokens that work now: for an admin's list of active parts, and for ``nod doctor``."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, ok, warn
from bot.domain.text import name_some
from bot.features.feature import FeatureParts
from bot.store import tokens
from bot.store.tokens import IssuedToken

_PART = "Agents"
_MAX_NAMED = 5  # tokens in one finding
_SOON = timedelta(days=7)


def list_tokens(session: Session, now: datetime) -> Sequence[ActiveLine]:
    """Return the tokens of agents that have not ended."""
    return [
        ActiveLine(_PART, _describe_token(each), each.made_by, each.made_at)
        for each in tokens.list_agents(session, None, now)
    ]


async def examine_agents(parts: FeatureParts) -> Sequence[Finding]:
    """Return a finding on the tokens of agents; nothing where no agent has a token."""
    now = parts.clock()
    found = await parts.database.read(tokens.list_agents, None, now)
    if not found:
        return ()
    ending = [each.name for each in found if each.until is not None and each.until - now < _SOON]
    if ending:
        named = name_some(ending, _MAX_NAMED)
        return (warn("agents", f"the token of {named} ends within a week. Make another: nod token new"),)
    return (ok("agents", f"{len(found)} with a token that works"),)


def _describe_token(token: IssuedToken) -> str:
    words = f"{token.name} for {token.person}: {', '.join(token.tools or ())}"
    if token.agreed_at is None:
        return f"{words}, not allowed by that person yet"
    return words
