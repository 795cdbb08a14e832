"""The risk of the addresses that a call would open."""

from collections.abc import Collection
from dataclasses import replace

from bot.domain import outbound_addresses
from bot.domain.call_facts import CallFacts
from bot.domain.conversations import Transcript
from bot.domain.forms import defaults_of, without_defaults
from bot.domain.policy import Policy
from bot.tools.tool import Tool


def raise_risk_by_addresses(
    call: CallFacts, tool: Tool, policy: Policy, transcript: Transcript | None = None
) -> CallFacts:
    """Return a call with a higher risk if it would open an address that no person has written.

    Such an address, for example of a web page, may contain data that was read before, and so tell that data
    to another server. ``transcript``: the conversation, in which people have written addresses; None if there
    is no conversation.
    """
    if call.risk.writes or not tool.open_world:
        return call
    # a default is the tool's own value, so it can't contain data that was read
    given = without_defaults(call.arguments, defaults_of(tool.form_schema))
    addresses = tuple(outbound_addresses.find_addresses(given))
    if not addresses:
        return call
    known_addresses: Collection[str] = ()
    if transcript is not None:
        known_addresses = outbound_addresses.find_allowed_addresses(
            transcript, call.requester.accounts, tool.name, addresses
        )
    risk = outbound_addresses.judge_addresses(
        call.risk, addresses, known_addresses, policy.rulebook.hosts(call)
    )
    return replace(call, risk=risk)
