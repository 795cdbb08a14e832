"""Routes of what asking costs: as JSON with plots, and as a table for spreadsheets."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from bot.domain.insights import Facet, Insights
from bot.features.feature import Over
from bot.features.insights import counting
from bot.features.insights.counting import MONTH, OFF_TEXT, as_csv
from bot.web.answers import Missing
from bot.web.body import Since
from bot.web.plots import plots
from bot.web.schemas import DoneBody, Time, View
from bot.web.site import Caller, SiteDep, api_routes

router = api_routes("insights", prefix="/api")


class TallyView(View):
    """``edited``: approved after an edit; ``failed`` and ``undone`` were approved, too.

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
    """``back_to``: how far that was looked at, where there was too much of it, else null.

    ``week``: how often people were asked, a list of hours for each weekday from Monday, in the team's time
    zone. ``plots``: SVG, by name; each shows what stands in the rest of the answer.
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
    over: Over,
    since: Annotated[
        Since | None, Query(description="30 days ago by default, a year at most; UTC unless it says")
    ] = None,
) -> AsyncIterator[Insights]:
    if not over.settings.insights:
        raise Missing(OFF_TEXT)
    now = site.channel.clock()
    begin = max(since or now - MONTH, now - timedelta(days=366))
    with site.exporting.place(str(actor)):
        found = await over.database.read(counting.find_insights, over.policies, actor, begin)
    yield found


Found = Annotated[Insights, Depends(_find_insights)]


@router.get("/insights", summary="What people were asked, how it ended, how long it took")
async def insights(found: Found, by: Facet = Facet.TOOL) -> InsightBody:
    """Counts what you asked for; for admins everyone's (``everyone``). At most 200 ``parts``."""
    parts = found.parts[by]
    return InsightBody.of(
        since=found.since,
        back_to=found.back_to,
        everyone=found.everyone,
        by=by,
        total=found.total,
        parts=parts,
        deciders=found.deciders,
        week=found.week,
        plots=plots(found, parts),
    )


@router.get(
    "/insights/export",
    summary="The same as CSV, by tool, place, person and account, with who decided and the week by hours",
    response_class=Response,
    response_model=None,
    responses={200: {"content": {"text/csv": {}}}},
)
async def export(found: Found) -> Response:
    """``part`` says what a row is about: tool, place, person, connection, decider or hour."""
    attached = {"Content-Disposition": 'attachment; filename="insights.csv"'}
    return Response(as_csv(found), media_type="text/csv", headers=attached)
