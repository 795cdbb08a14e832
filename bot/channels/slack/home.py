"""App Home: a person's own page of Nod's app in Slack.

It shows what waits for the person, what they asked for, and what was decided lately.

`render_home` renders the page. `Homes` publishes it when the person opens it. After any proposal changed, it
is published again soon for everyone who ever opened it.
"""

import asyncio
import json
from collections.abc import Collection, Sequence

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup, Overview
from bot.channels.slack import blocks, text
from bot.channels.slack.blocks import Block, RichLine, TextRun
from bot.channels.slack.buttons import (
    CHOOSE_ROWS,
    MORE,
    REVIEW,
    SEND_COMMAND,
    VIEW,
    OverflowEntry,
    action_id,
    list_entries,
    value_of,
)
from bot.channels.slack.places import actor_of
from bot.channels.slack.rows import list_homes, remember_home
from bot.channels.slack.workspaces import Workspaces
from bot.domain.cards import Card
from bot.domain.chat import Clock
from bot.domain.hooks import CommandOffer
from bot.domain.risks import Level
from bot.domain.verbs import CHOOSE_LABEL, ROWS_LABEL, Verb
from bot.errors import ChannelError
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

_MAX_CARDS_PER_PART = 8  # three parts of 8 cards with 3 blocks each stay below Slack's 100 blocks
_MAX_OFFERS = 5
_MAX_TITLE_UNITS = 300
_MAX_OUTCOME_UNITS = 200
_MAX_ASKER_UNITS = 60
_DEBOUNCE_SECONDS = 0.5  # changes within this time are shown together


def render_home(overview: Overview, notice: str = "") -> Block:
    """Render the page of one person. ``notice`` is a line for everybody.

    The person's own open proposals are in the second part; those that they may decide themselves are in the
    first part instead.
    """
    own_ids = frozenset(card.proposal_id for card in overview.asked)
    waiting_ids = {card.proposal_id for card in overview.waiting}
    asked = tuple(card for card in overview.asked if card.proposal_id not in waiting_ids)
    nothing_asked = "Nothing else of yours is open." if own_ids else "Nothing of yours is open."
    shown = [
        blocks.header("Waiting for you"),
        *_render_part(overview.waiting, "You're all caught up.", may_decide=True, own_ids=own_ids),
        blocks.divider(),
        blocks.header("You asked for"),
        *_render_part(asked, nothing_asked, own_ids=own_ids),
        blocks.divider(),
        blocks.header("Lately"),
        *_render_part(overview.recent, "Nothing yet. Write to Nod in the Messages tab."),
        *_render_offers(overview.offers),
    ]
    if notice:
        shown.insert(0, blocks.context(notice))
    return {"type": "home", "blocks": shown}


def _render_offers(offers: Sequence[CommandOffer]) -> list[Block]:
    """Return the offers of features to this person: each a line and a button that sends its command."""
    shown: list[Block] = [blocks.divider(), blocks.header("Your accounts")] if offers else []
    for offer in offers[:_MAX_OFFERS]:
        label, _ = text.cut(offer.label, blocks.MAX_BUTTON_UNITS)
        shown += [
            blocks.context(offer.description),
            blocks.actions(blocks.button(label, action_id(SEND_COMMAND), offer.text)),
        ]
    return shown


def _render_part(
    cards: tuple[Card, ...], empty_text: str, *, may_decide: bool = False, own_ids: Collection[str] = ()
) -> list[Block]:
    """Render a part of the page. ``empty_text`` stands there if it has no cards.

    ``may_decide``: the person may decide these cards. ``own_ids``: the proposals that they asked for.
    """
    if not cards:
        return [blocks.context(empty_text)]
    shown: list[Block] = []
    for card in cards[:_MAX_CARDS_PER_PART]:
        shown += _render_entry(card, may_decide=may_decide, is_own=card.proposal_id in own_ids)
    if len(cards) > _MAX_CARDS_PER_PART:
        shown.append(blocks.context(f"… and {len(cards) - _MAX_CARDS_PER_PART} more."))
    return shown


def _render_entry(card: Card, *, may_decide: bool, is_own: bool) -> list[Block]:
    title, _ = text.cut(text.one_line(card.title) or card.tool_name, _MAX_TITLE_UNITS)
    sign = "🔴 " if card.level is Level.DESTRUCTIVE else ""
    outcome, _ = text.cut(card.outcome, _MAX_OUTCOME_UNITS)
    asker, _ = text.cut(card.asked_by, _MAX_ASKER_UNITS)
    details = f"{sign}{outcome} Asked by {asker}."
    shown = blocks.rich([RichLine((TextRun(title, "bold"),)), RichLine((TextRun(details),))])
    if card.pending:
        shown.append(blocks.footer(label="Expires", at=card.local_expires_at))
    elif card.decided_at:
        shown.append(blocks.footer(label="Decided", at=card.decided_at.astimezone(card.zone)))
    return [*shown, blocks.actions(*_make_buttons(card, may_decide=may_decide, is_own=is_own))]


def _make_buttons(card: Card, *, may_decide: bool, is_own: bool) -> list[Block]:
    value = value_of(card)
    view_all = blocks.button("View all", action_id(VIEW), value)
    if card.batch:
        if not (may_decide or card.batch.has_buttons):  # no row has a button, such as Undo
            return [view_all]
        label = CHOOSE_LABEL if card.pending else ROWS_LABEL
        style = "primary" if may_decide else ""
        return [blocks.button(label, action_id(CHOOSE_ROWS), value, style), view_all]
    if may_decide and Verb.APPROVE in card.verbs:
        entries = list(list_entries(card, shows_all=False))
        if is_own:
            entries.insert(0, OverflowEntry("Withdraw", f"{Verb.CANCEL}:{value}"))
        view_all_entry = OverflowEntry("View all", f"{VIEW}:{value}")
        entries = [*entries[: blocks.MAX_OVERFLOW_OPTIONS - 1], view_all_entry]
        review_label = "Read, then answer" if card.kind.is_answer else "Read, then approve"
        return [
            blocks.button(review_label, action_id(REVIEW), value, "primary"),
            blocks.button("Decline", action_id(Verb.DECLINE), value, "danger"),
            blocks.overflow(MORE, entries),
        ]
    if is_own and card.pending:
        confirmation = "It is withdrawn and will not run."
        return [view_all, blocks.button("Withdraw", action_id(Verb.CANCEL), value, "danger", confirmation)]
    return [view_all]


class Homes:
    """The pages that people have opened: each is kept current."""

    def __init__(self, workspaces: Workspaces, database: Database, lookup: Lookup, clock: Clock) -> None:
        self._workspaces = workspaces
        self._database = database
        self._lookup = lookup
        self._clock = clock
        self._published_hashes: dict[tuple[str, str], int] = {}  # of each published page, by team and user
        self._is_outdated = False  # a proposal changed since the pages were published
        self._task: asyncio.Task[None] | None = None

    async def open_home(self, team: str, user: str) -> None:
        """Show a person's home, and keep it current from now on."""
        await self._database.write(remember_home, team, user, self._clock())
        self._published_hashes.pop((team, user), None)
        await self._publish(team, user)

    def refresh_soon(self) -> None:
        """Publish each page that has changed, in a moment, because a proposal changed."""
        self._is_outdated = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _refresh(self) -> None:
        while self._is_outdated:
            await asyncio.sleep(_DEBOUNCE_SECONDS)
            self._is_outdated = False
            try:
                for team, user in await self._database.read(list_homes):
                    await self._publish(team, user)
            except Exception:
                log.exception("App Homes not refreshed")

    async def _publish(self, team: str, user: str) -> None:
        home = render_home(await self._lookup.overview(actor_of(team, user)), self._lookup.notice)
        home_hash = hash(json.dumps(home, sort_keys=True))
        if self._published_hashes.get((team, user)) == home_hash:
            return
        try:
            client = await self._workspaces.get_client(team)
            await client.views_publish(user_id=user, view=home)
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.warning("App Home not published", team=team, why=str(error))
            return
        self._published_hashes[team, user] = home_hash
