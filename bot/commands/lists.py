"""Proposals as lines of text, and finding the one a person means."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.commands.words import Misspoken
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.store import proposals
from bot.store.database import Database

LISTED = 20
SHORT_ID = 8


async def find(database: Database, prefix: str) -> Proposal:
    """The one proposal whose id begins so; raises Misspoken when it is none or several."""
    if not prefix:
        raise Misspoken("Which one? Give its ID (the first characters do).")
    found = await database.read(proposals.starting_with, prefix.strip("`").lower())
    if not found:
        raise Misspoken(f"There is no proposal {prefix[:40]}.")
    if len(found) > 1:
        raise Misspoken(f"{prefix} could be several; give more characters of the ID.")
    return found[0]


def titled(title: str, found: Sequence[Proposal]) -> str:
    """A heading and a line for each, at most `LISTED`; empty when there is none."""
    if not found:
        return ""
    lines = [
        f"- `{p.id[:SHORT_ID]}` {redact_text(p.description)} "
        f"(asked by {p.requester.label}, until {p.expires_at:%Y-%m-%d %H:%M} UTC)"
        for p in found[:LISTED]
    ]
    more = f"\n…and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return f"**{title}**\n" + "\n".join(lines) + more


def recorded(row: Mapping[str, Any]) -> str:
    """One row of the record (`bot.store.checkpoints.rows`) as a line: when, what, who, from where, why."""
    who = f"{row['person']} ({row['actor']})" if row["person"] != row["actor"] else row["person"]
    if row["thing"]:
        was, now = row["before"], row["after"]
        change = " → ".join(_shown(each) for each in (was, now))
        return f"{row['at'][:16]} {row['thing']} {row['key']}: {row['verb']} by {who}: {change}"
    more = [row["reason"] or "", f"rule: {row['rule']}"]
    more += [f"grant G-{row['grant_id']}"] if row["grant_id"] else []
    return (
        f"{row['at'][:16]} `{row['proposal_id'][:SHORT_ID]}` {row['tool_name']}: {row['verb']} by {who} "
        f"→ {row['state']} (v{row['version']}, {'; '.join(part for part in more if part)})"
    )


def _shown(state: Mapping[str, Any] | None) -> str:
    """What a thing was or is, in brief."""
    if not state:
        return "nothing"
    for name in ("value", "allows", "person", "since"):
        if name in state:
            value = state[name]
            return " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "something"
