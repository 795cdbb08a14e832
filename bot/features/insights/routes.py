"""Routes of insights: the cost of asking for approval, and signs of how people decide.

The cost comes as JSON with plots, or as CSV for spreadsheets (`cost_report.py`). The signs come from votes
and, if NOD_INSIGHTS is ``people``, from notes on how people read their cards (`reading_notes.py`). The
console reports when a person opens a part of a card.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field
from sqlmodel import Session
from starlette.responses import Response

from bot.approvals import rights
from bot.domain.insights import Facet, Insights
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.features.feature import PartsDep
from bot.features.insights import cost_report, reading_notes, reading_signs
from bot.features.insights.cost_report import MONTH, OFF_TEXT, format_as_csv
from bot.features.insights.reading_notes import CardPart
from bot.settings import Zone
from bot.store import proposals
from bot.store.hooks import hooks_in, hooks_of
from bot.store.rules import Policies
from bot.web.answers import NotFound
from bot.web.body import Body, Since
from bot.web.plots import draw_plots
from bot.web.schemas import DoneBody, Time, View
from bot.web.site import Caller, SiteDep, make_router

router = make_router("insights", prefix="/api")


class TallyView(View):
    """Numbers of requests by outcome.

    ``edited`` were approved after an edit; ``failed`` and ``undone`` count as approved, too.
    ``median_seconds``: half of the decisions took no longer; ``slowest_seconds``: a tenth of them took at
    least as long. Both are null where no one decided.
    """

    asked: int
    approved: int
    edited: int
    declined: int
    expired: int
    undone: int
    failed: int
    median_seconds: float | None
    slowest_seconds: float | None


class PartView(View):
    """A tool, a place, a person or an account in whose name it runs.

    Private chats of a channel are one place, which has the channel's name.
    """

    key: str
    name: str
    tally: TallyView


class DeciderView(View):
    key: str
    name: str
    approved: int
    declined: int


class InsightBody(DoneBody):
    """Insights by one dimension. ``everyone``: they count everyone's requests, not only the caller's.

    ``back_to``: the oldest time that was counted, if there were too many requests to count all; else null.
    ``week``: how often people were asked, a list of hours for each weekday from Monday, in the team's time
    zone. ``plots``: SVG, by name; each shows numbers of the rest of the answer.
    """

    since: Time
    back_to: Time | None
    everyone: bool
    by: Facet
    total: TallyView
    parts: list[PartView]
    deciders: list[DeciderView]
    week: list[list[int]]
    plots: dict[str, str]


async def _find_insights(
    actor: Caller,
    site: SiteDep,
    parts: PartsDep,
    since: Annotated[
        Since | None, Query(description="30 days ago by default, a year at most; UTC unless it says")
    ] = None,
) -> AsyncIterator[Insights]:
    """Yield the insights for which a request asks. A person has only a few such requests at a time."""
    if not parts.settings.insights:
        raise NotFound(OFF_TEXT)
    now = site.channel.clock()
    begin = max(since or now - MONTH, now - reading_notes.RETENTION)
    with site.export_limit.hold(str(actor)):
        counted = await parts.database.read(cost_report.count_visible_insights, parts.policies, actor, begin)
    yield counted


InsightsDep = Annotated[Insights, Depends(_find_insights)]


@router.get("/insights", summary="What people were asked, how it ended, how long it took")
async def insights(found: InsightsDep, by: Facet = Facet.TOOL) -> InsightBody:
    """Count your requests; for admins everyone's. There are at most 200 ``parts``."""
    shown_parts = found.parts[by]
    return InsightBody.of(
        since=found.since,
        back_to=found.back_to,
        everyone=found.everyone,
        by=by,
        total=found.total,
        parts=shown_parts,
        deciders=found.deciders,
        week=found.week,
        plots=draw_plots(found, shown_parts),
    )


class SignsView(View):
    """The signs of a person, or of several.

    - ``timed``: the decisions for which the time to read is known. ``faster``: those of them that came faster
      than the shown words can be read, at 5 words a second.
    - ``longest_run``: the most approvals without a no in between.
    - ``a_day``: the average number of decisions on days with any. ``busiest_hour``: the most decisions in one
      hour of the clock.
    - ``outside_hours``: decisions not from 8 to 18 on weekdays: yours on the clock of ``zone``, everyone
      else's on the clock of their quiet hours, or the team's without any.
    - ``viewed``: approvals before which *View all* was opened. ``with_trial``: approvals of calls with a
      trial. ``diffs_open``: those of them before which the trial's diff was opened.
    """

    decided: int
    approved: int
    timed: int
    faster: int
    longest_run: int
    a_day: float
    busiest_hour: int
    outside_hours: int
    viewed: int
    with_trial: int
    diffs_open: int


class NamedSignsView(View):
    key: str
    name: str
    signs: SignsView


class SignsBody(DoneBody):
    """Signs of how people decide. ``everyone``: the caller is an admin, to whom they are about all people.

    ``people``: the signs by name: of everyone for an admin if NOD_INSIGHTS is ``people``, else the caller's
    own. ``total``: for an admin who sees no names, everyone together; null if too few people decided.
    ``timed``: notes on how people read are stored. Without them, ``timed``, ``faster``, ``viewed`` and
    ``diffs_open`` of all signs are 0.
    """

    since: Time
    everyone: bool
    timed: bool
    total: SignsView | None
    people: list[NamedSignsView]


class OpenedBody(Body):
    """The part of a proposal's card that was opened: ``all`` of it, or the trial's ``diff``."""

    proposal: Annotated[str, Field(min_length=1, max_length=64)]
    part: CardPart


class KeptBody(DoneBody):
    kept: bool


async def _find_start_time(
    site: SiteDep,
    parts: PartsDep,
    since: Annotated[
        Since | None, Query(description="30 days ago by default, a year at most; UTC unless it says")
    ] = None,
) -> datetime:
    """Return the time from which signs are counted."""
    if not parts.settings.insights:
        raise NotFound(OFF_TEXT)
    now = site.channel.clock()
    return max(since or now - MONTH, now - reading_notes.RETENTION)


@router.get("/insights/people", summary="Signs of how people decide: for admins of everyone, else your own")
async def people(
    actor: Caller,
    site: SiteDep,
    parts: PartsDep,
    begin: Annotated[datetime, Depends(_find_start_time)],
    zone: Annotated[Zone | None, Query(description="of your clock, by which your hours go")] = None,
) -> SignsBody:
    """Return signs of how people decide, which are no guilt: by name only with ``NOD_INSIGHTS=people``."""
    has_notes = parts.settings.insights == reading_signs.BY_PEOPLE
    find_signs = partial(reading_signs.find_signs, has_notes=has_notes, zone=zone)
    with site.export_limit.hold(str(actor)):
        signs = await parts.database.read(find_signs, parts.policies, actor, begin)
    return SignsBody.of(
        since=signs.since,
        everyone=signs.everyone,
        timed=signs.has_notes,
        total=signs.total,
        people=list(signs.people),
    )


@router.post("/insights/opened", summary="Say that you opened a part of a card")
async def note_opened_part(body: OpenedBody, actor: Caller, site: SiteDep, parts: PartsDep) -> KeptBody:
    """Note that you opened a part of a card, as the console reports it.

    ``kept``: the note is stored. It is stored only with ``NOD_INSIGHTS=people``.
    """
    is_kept = bool(hooks_in(parts.database).note_opened)
    if is_kept:
        await parts.database.write(_note_opened, parts.policies, actor, body, site.channel.clock())
    return KeptBody.of(kept=is_kept)


def _note_opened(session: Session, policies: Policies, actor: Actor, body: OpenedBody, now: datetime) -> None:
    proposal = proposals.get(session, body.proposal)
    if proposal is None or not rights.may_see_proposal(session, policies, proposal, actor):
        raise NotFound(f"There is no proposal {body.proposal}.")
    if proposal.state is State.PROPOSED:
        for note_opened in hooks_of(session).note_opened:
            note_opened(session, proposal, actor, body.part, now)


@router.get(
    "/insights/export",
    summary="The same as CSV, by tool, place, person and account, with who decided and the week by hours",
    response_class=Response,
    response_model=None,
    responses={200: {"content": {"text/csv": {}}}},
)
async def export(found: InsightsDep) -> Response:
    """Return the insights as CSV.

    ``part`` is the subject of a row: tool, place, person, connection, decider or hour.
    """
    attached = {"Content-Disposition": 'attachment; filename="insights.csv"'}
    return Response(format_as_csv(found), media_type="text/csv", headers=attached)
