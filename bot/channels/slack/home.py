"""App Home: what waits for you, what you asked for, how things ended; kept current for all who opened it."""

import asyncio
import json
from collections.abc import Collection, Sequence

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.base import Lookup, Overview
from bot.channels.slack import blocks, text
from bot.channels.slack import blocks as b
from bot.channels.slack.blocks import Block, ContextLine, Run
from bot.channels.slack.card import CHOOSING, MORE, REVIEW, SEND_COMMAND, VIEW, action_id, more, value_of
from bot.channels.slack.places import actor_of
from bot.channels.slack.rows import homes, remember_home
from bot.channels.slack.workspaces import Workspaces
from bot.domain.cards import Card
from bot.domain.chat import Clock
from bot.domain.hooks import CommandOffer
from bot.domain.proposals import Level
from bot.domain.verbs import CHOOSE, EACH_ROW, Verb
from bot.errors import ChannelError
from bot.store.database import Database
from bot.telemetry.logs import logger

_EACH = 8  # cards per part: three parts of 8 with 3 blocks each stay below 100
_MOST_OFFERS = 5
_CALM = 0.5  # seconds; changes within them are shown together


def view(overview: Overview, notice: str = "") -> Block:
    """Render the home tab of one person; what they asked for and may decide stands under the first part.

    ``notice`` is a line for everybody.
    """
    mine = frozenset(card.proposal_id for card in overview.asked)
    waiting = {card.proposal_id for card in overview.waiting}
    asked = tuple(card for card in overview.asked if card.proposal_id not in waiting)
    shown = [
        *([b.context(notice)] if notice else []),
        b.header("Waiting for you"),
        *_part(overview.waiting, "You're all caught up.", decide=True, mine=mine),
        b.divider(),
        b.header("You asked for"),
        *_part(asked, "Nothing else of yours is open." if mine else "Nothing of yours is open.", mine=mine),
        b.divider(),
        b.header("Lately"),
        *_part(overview.recent, "Nothing yet. Write to Nod in the Messages tab."),
        *_list_offers(overview.offers),
    ]
    return {"type": "home", "blocks": shown}


def _list_offers(offers: Sequence[CommandOffer]) -> list[Block]:
    """Render what parts of Nod offer this person: each a line and a button that sends its command."""
    shown: list[Block] = [b.divider(), b.header("Your accounts")] if offers else []
    for each in offers[:_MOST_OFFERS]:
        label = text.cut(each.label, blocks.BUTTON_TEXT)[0]
        shown += [b.context(each.about), b.actions(b.button(label, action_id(SEND_COMMAND), each.words))]
    return shown


def _part(
    cards: tuple[Card, ...], empty: str, *, decide: bool = False, mine: Collection[str] = ()
) -> list[Block]:
    if not cards:
        return [b.context(empty)]
    shown: list[Block] = []
    for card in cards[:_EACH]:
        shown += _entry(card, decide=decide, mine=card.proposal_id in mine)
    if len(cards) > _EACH:
        shown.append(b.context(f"… and {len(cards) - _EACH} more."))
    return shown


def _entry(card: Card, *, decide: bool, mine: bool) -> list[Block]:
    title = text.cut(text.link_text(card.title) or card.tool_name, 300)[0]
    sign = "🔴 " if card.level is Level.DESTRUCTIVE else ""
    under = f"{sign}{text.cut(card.outcome, 200)[0]} Asked by {text.cut(card.asked_by, 60)[0]}."
    value = value_of(card)
    shown = b.rich([ContextLine((Run(title, "bold"),)), ContextLine((Run(under),))])
    if card.pending:
        shown.append(b.footer(label="Expires", at=card.expires))
    elif card.decided_at:
        shown.append(b.footer(label="Decided", at=card.decided_at.astimezone(card.zone)))
    buttons, view_all = [], b.button("View all", action_id(VIEW), value)
    if card.batch:
        label, style = CHOOSE if card.pending else EACH_ROW, "primary" if decide else ""
        choose = b.button(label, action_id(CHOOSING), value, style)
        rows = [choose] if decide or card.batch.offers else []
        buttons += [*rows, view_all]
    elif decide and Verb.APPROVE in card.verbs:
        withdraw = [("Withdraw", f"{Verb.CANCEL}:{value}")] if mine else []
        hidden = [*withdraw, *more(card, whole=False)][: blocks.OVERFLOW_OPTIONS - 1]
        first = "Read, then answer" if card.kind.is_answer else "Read, then approve"
        buttons += [
            b.button(first, action_id(REVIEW), value, "primary"),
            b.button("Decline", action_id(Verb.DECLINE), value, "danger"),
            b.overflow(MORE, [*hidden, ("View all", f"{VIEW}:{value}")]),
        ]
    elif mine and card.pending:
        sure = "It is withdrawn and will not run."
        buttons += [view_all, b.button("Withdraw", action_id(Verb.CANCEL), value, "danger", sure)]
    else:
        buttons.append(view_all)
    return [*shown, b.actions(*buttons)]


log = logger(__name__)


class Homes:
    """The home tabs that people opened, each refreshed when it changed."""

    def __init__(self, workspaces: Workspaces, database: Database, lookup: Lookup, clock: Clock) -> None:
        self._workspaces = workspaces
        self._database = database
        self._lookup = lookup
        self._clock = clock
        self._shown: dict[tuple[str, str], int] = {}
        self._behind = False
        self._task: asyncio.Task[None] | None = None

    async def open_home(self, team: str, user: str) -> None:
        """Show a person's home and keep it current from now on."""
        await self._database.write(remember_home, team, user, self._clock())
        self._shown.pop((team, user), None)
        await self._publish(team, user)

    def changed(self) -> None:
        """Note that some proposal changed: refresh every home soon, one refresh after the other."""
        self._behind = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _refresh(self) -> None:
        while self._behind:
            await asyncio.sleep(_CALM)
            self._behind = False
            try:
                for team, user in await self._database.read(homes):
                    await self._publish(team, user)
            except Exception:
                log.exception("App Homes not refreshed")

    async def _publish(self, team: str, user: str) -> None:
        shown = view(await self._lookup.overview(actor_of(team, user)), self._lookup.notice)
        mark = hash(json.dumps(shown, sort_keys=True))
        if self._shown.get((team, user)) == mark:
            return
        try:
            client = await self._workspaces.client(team)
            await client.views_publish(user_id=user, view=shown)
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.warning("App Home not published", team=team, why=str(error))
            return
        self._shown[team, user] = mark
