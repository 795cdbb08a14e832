"""What asking costs, and what a rule would have changed."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from bot.approvals.lookup.past import Effect
from bot.domain.insights import Facet
from bot.web.body import cursor
from bot.web.schemas import DoneBody, Time, View


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
    """A tool, a place or a person. Private chats of a channel are one place, which has the channel's name."""

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


class PricedView(View):
    """A call of which people would not have been asked. ``price``: declined, edited or undone; by whom."""

    id: str
    tool_name: str
    title: str
    at: Time
    price: str
    by: str | None
    reason: str | None


class TriedBody(DoneBody):
    """``looked``: at how many changes; ``back_to``: when the oldest of them was proposed.

    ``effects``: for how many of them people would not have been asked (``spared``), would have been in
    addition (``asked``), could not have been (``refused``), or others would have been (``otherwise``).
    ``priced`` of the spared were declined, edited or undone; ``price`` names the newest. ``next`` is the
    ``before`` of the next page, null on the last. ``text`` says it.
    """

    rule: str
    looked: int
    back_to: Time | None
    effects: dict[Effect, int]
    priced: int
    price: list[PricedView]
    next: Annotated[str | None, Field(validation_alias="before"), BeforeValidator(cursor)]
    text: Annotated[str, Field(validation_alias="words")]
