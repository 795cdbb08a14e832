"""The membership of proposals in batches: which calls of an answer are one, which proposals share a card."""

from collections.abc import Iterable, Sequence

from bot.domain.proposals import Proposal

_MIN_CALLS = 3  # fewer calls of one tool in one answer make no table


def assign_batches(calls: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the id of the batch for each call of one answer that is in one, by call id.

    ``calls``: the id of each call and the name of its tool; a call with an empty name is in no batch.
    """
    calls_by_tool: dict[str, list[str]] = {}
    for call_id, tool_name in calls:
        if tool_name:
            calls_by_tool.setdefault(tool_name, []).append(call_id)
    batch_ids: dict[str, str] = {}
    for call_ids in calls_by_tool.values():
        if len(call_ids) >= _MIN_CALLS:
            batch_ids |= dict.fromkeys(call_ids, call_ids[0])
    return batch_ids


def group_by_card(proposals: Iterable[Proposal]) -> list[list[Proposal]]:
    """Group proposals by their cards: the rows of a batch in their order, or a single proposal."""
    groups: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        groups.setdefault(proposal.card_id, []).append(proposal)
    return [sorted(rows, key=lambda row: row.position) for rows in groups.values()]


def describe_others(other_count: int) -> str:
    """Return the remark on the ``other_count`` other rows of a batch, after words on one row; empty for 0."""
    if other_count:
        return f", and {other_count} more of its batch"
    return ""
