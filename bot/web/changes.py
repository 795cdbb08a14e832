"""The route of the feed of changes: a stream (SSE) of all changes of proposals that the caller may see.

Its events have the ids of rows, so a client that was cut off resumes where it was.
"""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header, Query
from starlette.responses import Response

from bot.approvals.lookup.proposals import ChangeFeed, list_progressed
from bot.domain.people import Actor
from bot.web.broadcaster import Listener
from bot.web.channel import HttpChannel
from bot.web.schemas.events import ChangeEvents, ProposalEvent, QuestionAnswered, Reload, TurnTold
from bot.web.schemas.proposals import ProposalView
from bot.web.schemas.questions import QuestionView
from bot.web.site import Caller, SiteDep, Streaming, make_router, make_stream_options
from bot.web.streams import KEEP_ALIVE, LISTENING, format_event, merge

router = make_router("proposals", prefix="/api")

_MAX_ROW_ID = 2**63 - 1
_MAX_REPLAYED_CHANGES = 200  # a client that missed more reads the lists again


@router.get(
    "/events",
    summary="SSE: every change of a proposal you may see, and answers about it; resumes by Last-Event-ID",
    **make_stream_options(ChangeEvents),
)
async def changes(
    actor: Caller,
    site: SiteDep,
    stream_response: Streaming,
    last_event_id: Annotated[int | None, Header(ge=0, le=_MAX_ROW_ID)] = None,
    *,
    turns: Annotated[bool, Query(description="your own conversations as well, as their turns run")] = False,
) -> Response:
    """With ``turns`` one stream has all that a person looks at. The events of turns have no ``id``."""
    channel = site.channel
    newest = await channel.proposals.newest_change()
    last_seen = newest if last_event_id is None else last_event_id
    events = _stream_changes(channel, actor, last_seen, newest)
    if turns:
        events = _with_turns(channel, actor, events)
    return stream_response(events)


async def _with_turns(channel: HttpChannel, actor: Actor, changes: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the changes together with the events of turns in the caller's own conversations."""
    with channel.broadcaster.listen_to_owner(actor.key) as listener:
        async for block in merge(changes, _stream_turns(listener)):
            yield block


async def _stream_turns(listener: Listener) -> AsyncIterator[str]:
    """Yield the events of turns; changes of proposals come from their rows."""
    while (item := await listener.get()) is not None:
        event = item.console_event
        if event is not None and event.type != "proposal_update":
            yield format_event(TurnTold(conversation_id=item.conversation_id, event=event))


async def _stream_changes(
    channel: HttpChannel, actor: Actor, last_seen: int, newest_row: int
) -> AsyncIterator[str]:
    """Yield the changes of proposals after the row ``last_seen``, as far as the caller may see them.

    ``newest_row``: the id of the newest row now. If the client missed too many changes, it is told to read
    the lists again.
    """
    missed = newest_row - last_seen
    if missed < 0 or missed > _MAX_REPLAYED_CHANGES:  # negative: a restored backup has older ids
        last_seen = newest_row
        yield f"id: {last_seen}\n" + format_event(Reload())
    yield f"id: {last_seen}\n{LISTENING}"
    # about the time since the last block: each wait counts as a full one, so a keep-alive may come early
    quiet_seconds = 0.0
    previous = ChangeFeed(changes=(), progress={}, open_questions={})
    while not channel.broadcaster.closed:
        generation = channel.notifier.generation  # read first, so that `wait` misses no later change
        feed = await channel.proposals.feed(last_seen)
        async for block in _describe_feed(channel, actor, previous, feed):
            yield block
            quiet_seconds = 0.0
        previous = feed
        if feed.changes:
            last_seen, _ = feed.changes[-1]
            continue
        if quiet_seconds >= channel.pace.keep_alive_seconds:
            quiet_seconds = 0.0
            yield KEEP_ALIVE
        quiet_seconds += channel.pace.poll_seconds
        await channel.notifier.wait(generation, channel.pace.poll_seconds)


async def _describe_feed(
    channel: HttpChannel, actor: Actor, previous: ChangeFeed, feed: ChangeFeed
) -> AsyncIterator[str]:
    """Yield an event for each change from the ``previous`` feed to this one that the caller may see.

    Changes are new rows, the progress of running proposals, and questions that were answered.
    """
    newest_row_by_proposal = {proposal_id: row_id for row_id, proposal_id in feed.changes}
    # in the order of the rows, so that a client that resumes misses no change and gets none twice
    for proposal_id, row_id in sorted(newest_row_by_proposal.items(), key=lambda change: change[1]):
        found = await channel.proposals.find(proposal_id, actor)
        if found is not None:
            yield f"id: {row_id}\n" + format_event(ProposalEvent(proposal=ProposalView.of_found(found)))
    for proposal_id in list_progressed(previous.progress, feed.progress):
        found = await channel.proposals.find(proposal_id, actor)
        if found is not None:
            yield format_event(ProposalEvent(proposal=ProposalView.of_found(found)))
    answered_keys = previous.open_questions.keys() - feed.open_questions.keys()
    unique_proposals = dict.fromkeys(previous.open_questions[key] for key in answered_keys)
    for proposal_id in unique_proposals:
        questions = await channel.proposals.questions(proposal_id, actor)
        if questions is not None:
            views = [QuestionView.model_validate(question) for question in questions]
            yield format_event(QuestionAnswered(proposal_id=proposal_id, questions=views))
