"""Who may talk to Nod in Telegram: people and chats in the settings, and whom an admin let in.

A stranger hears one polite line with a code; the admins get the same code with two buttons. Nobody is
let in by default.
"""

import secrets
from collections.abc import Mapping
from typing import Any

from sqlmodel import Session, col, select
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, User
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.callback import Callback, Does
from bot.channels.telegram.places import CHANNEL, Ref, Spot
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.errors import ChannelError, SettingsError
from bot.settings import Settings
from bot.store import events
from bot.store.database import Database
from bot.store.tables import DialogueRow
from bot.telemetry import logger

_MOST_ASKING = 20  # open requests; beyond that strangers are not passed on to the admins

_log = logger(__name__)


class Admission:
    """Raises SettingsError where a list holds something that is no Telegram id."""

    def __init__(self, settings: Settings, database: Database, transport: Transport, clock: Clock) -> None:
        self.admins = _accounts(settings.admins)
        self._people = set(
            self.admins
            + _accounts(settings.approvers)
            + _ids("TELEGRAM_ALLOWED_USERS", settings.telegram_allowed_users)
        )
        self._chats = set(
            _ids("TELEGRAM_ALLOWED_CHATS", settings.telegram_allowed_chats)
            + _accounts(settings.approver_chats)
        )
        self._database = database
        self._transport = transport
        self._clock = clock

    async def admits(self, user: User, chat_id: int) -> bool:
        if user.id in self._people or chat_id in self._chats:
            return True
        state = await self._state(_pairing(user.id))
        return state is not None and state["stands"] == "in"

    async def turn_away(self, user: User, spot: Spot) -> None:
        """Tell a stranger once, and pass a private one on to the admins."""
        key = _pairing(user.id) if spot.private else f"stranger:{spot.chat_id}"
        if await self._state(key) is not None:
            return
        code = secrets.token_hex(3).upper()
        _log.info("a stranger wrote on telegram", id=user.id, chat=spot.chat_id)
        asking = bool(spot.private and self.admins) and await self._room()
        state = {"stands": "asking" if asking else "told", "code": code, "name": user.full_name}
        await self._keep(key, state)
        if not spot.private:
            line = f"I am not set up for this group. Ask whoever runs me to allow the chat {spot.chat_id}."
        elif asking:
            line = f"We have not met. I have asked an admin to let you in; your code is {code}."
        else:
            line = f"We have not met. Ask whoever runs me to let you in; your Telegram id is {user.id}."
        await self._transport.send(spot, plain(line))
        if asking:
            await self._ask_admins(user, code)

    async def decide(self, callback: Callback, admin: User, message: Ref) -> str:
        """Take an admin's press; return what to tell them."""
        if admin.id not in self.admins:
            return "Only an admin may let people in."
        key = f"pair:{callback.id}"
        state = await self._state(key)
        if state is None:
            return "I do not know of this request."
        if state["stands"] in ("in", "out"):
            return f"{state.get('by', 'Somebody')} has already decided."
        let_in = callback.does is Does.LET_IN
        stands = "in" if let_in else "out"
        await self._keep(key, {**state, "stands": stands, "by": admin.full_name})
        outcome = f"{'✅ Let in' if let_in else '⚪️ Kept out'} by {admin.full_name}: {state['name']}"
        await self._transport.edit(message, plain(outcome))
        if let_in:
            welcome = f"{admin.full_name} let you in. What can I do for you?"
            await self._transport.send(Spot(int(callback.id)), plain(welcome))
        return "Done."

    async def _ask_admins(self, user: User, code: str) -> None:
        name = f"{user.full_name} ({f'@{user.username}, ' if user.username else ''}id {user.id})"
        text = plain(f"{name} would like to talk to Nod. Their code is {code}.")
        yes, no = Callback(Does.LET_IN, str(user.id)), Callback(Does.KEEP_OUT, str(user.id))
        row = [
            InlineKeyboardButton("Let in", callback_data=yes.pack(), style=KeyboardButtonStyle.SUCCESS),
            InlineKeyboardButton("Keep out", callback_data=no.pack(), style=KeyboardButtonStyle.DANGER),
        ]
        for admin in self.admins:
            try:
                await self._transport.send(Spot(admin), text, InlineKeyboardMarkup([row]))
            except ChannelError as error:  # an admin who has not written to the bot yet
                _log.warning("telegram admin not reached", admin=admin, reason=error.message)

    async def _state(self, key: str) -> dict[str, Any] | None:
        return await self._database.read(events.dialogue, CHANNEL, key)

    async def _keep(self, key: str, state: Mapping[str, Any]) -> None:
        await self._database.write(events.keep_dialogue, CHANNEL, key, state, self._clock())

    async def _room(self) -> bool:
        return await self._database.read(_asking) < _MOST_ASKING


def _asking(session: Session) -> int:
    """Count the requests no admin has decided yet."""
    rows = session.exec(
        select(DialogueRow).where(DialogueRow.channel == CHANNEL, col(DialogueRow.key).startswith("pair:"))
    )
    return sum(row.state["stands"] == "asking" for row in rows)


def _pairing(user_id: int) -> str:
    return f"pair:{user_id}"


def _accounts(values: tuple[str, ...]) -> list[int]:
    """Give the Telegram ids among accounts such as ``telegram:991``."""
    actors = (Actor.parse(v) for v in values)
    return _ids("NOD_ADMINS, NOD_APPROVERS", tuple(a.key for a in actors if a.channel == CHANNEL))


def _ids(setting: str, values: tuple[str, ...]) -> list[int]:
    try:
        return [int(v.partition("/")[0]) for v in values]
    except ValueError:
        raise SettingsError(f"{setting}: write Telegram's numeric ids, comma-separated") from None
