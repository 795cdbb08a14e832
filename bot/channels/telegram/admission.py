"""Access to Nod in Telegram: people and chats from the settings, and people whom an admin let in.

No one else is let in. A stranger gets one polite line, the first time. If they write in private, the line has
a code, and the admins get the same code with two buttons, *Let in* and *Keep out*. What became of a stranger
is stored by their id, see `RequestState`.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from sqlmodel import Session
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, User
from telegram.constants import KeyboardButtonStyle

from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.places import NAME, TelegramPlace, TelegramPosted
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.errors import ChannelError, SettingsError
from bot.settings import Settings
from bot.store.database import Database
from bot.store.state import (
    add_state,
    list_states,
    list_unchanged_keys,
    load_state,
    lock_state,
    store_state,
)
from bot.telemetry.logs import logger

_MAX_OPEN_REQUESTS = 20  # beyond that strangers are not passed on to the admins
_OPEN_REQUEST_PERIOD = timedelta(days=7)  # the time for which a request that no admin answered counts as open

# beginnings of the keys of stored states: the id of a person, or of a group, follows
_REQUEST_PREFIX = "pair:"
_GROUP_PREFIX = "stranger:"

log = logger(__name__)


class RequestState(StrEnum):
    """The state of a stranger, or of a group that is not let in; stored as ``stands``."""

    TOLD = "told"  # told that they are not let in; no admin was asked, or none could be reached
    ASKING = "asking"  # the admins were asked
    IN = "in"  # an admin let them in
    OUT = "out"  # an admin keeps them out


_DECIDED = frozenset({RequestState.IN, RequestState.OUT})


@dataclass(frozen=True, slots=True)
class AllowList:
    """The accounts and chats that the settings let in, by Telegram's numeric ids.

    People whom an admin let in are not among them: `Admission` reads these from the database.
    """

    admins: tuple[int, ...]
    approvers: tuple[int, ...]
    people: frozenset[int]
    chats: frozenset[int]

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Read the settings. Raises SettingsError if a list has anything but Telegram ids."""
        admins = _parse_accounts("NOD_ADMINS", settings.admins)
        approvers = _parse_accounts("NOD_APPROVERS", settings.approvers)
        users = _parse_ids("TELEGRAM_ALLOWED_USERS", settings.telegram_allowed_users)
        chats = _parse_ids("TELEGRAM_ALLOWED_CHATS", settings.telegram_allowed_chats)
        approver_chats = _parse_accounts("NOD_APPROVER_CHATS", settings.approver_chats)
        people = frozenset([*admins, *approvers, *users])
        return cls(tuple(admins), tuple(approvers), people, frozenset([*chats, *approver_chats]))


@dataclass(frozen=True, slots=True)
class _FirstMessage:
    """The first message of a stranger, or in a group that is not let in."""

    state_key: str
    code: str
    name: str
    may_ask: bool  # the admins, to let the stranger in


class Admission:
    """Decides whom Nod works for: people and chats of the allow list, and people whom an admin let in.

    Raises SettingsError as `AllowList.from_settings` does.
    """

    def __init__(self, settings: Settings, database: Database, transport: Transport, clock: Clock) -> None:
        self.allow_list = AllowList.from_settings(settings)
        self._database = database
        self._transport = transport
        self._clock = clock

    async def admits(self, user_id: int, chat_id: int) -> bool:
        """Tell if Nod works for a person in a chat, by the settings or since an admin let the person in.

        A group may have had another id before; the settings may name either.
        """
        moves = self._transport.moves
        chat_ids = {chat_id, moves.find_home_chat_id(chat_id), moves.find_current_chat_id(chat_id)}
        if user_id in self.allow_list.people or not self.allow_list.chats.isdisjoint(chat_ids):
            return True
        state = await self._load_state(_make_request_key(user_id))
        return state is not None and state["stands"] == RequestState.IN

    async def turn_away(self, user: User, place: TelegramPlace) -> None:
        """Tell a stranger once that they are not let in. If they write in private, ask the admins.

        In a group, the group as a whole is told once.
        """
        key = _make_request_key(user.id) if place.is_private else f"{_GROUP_PREFIX}{place.chat_id}"
        if await self._load_state(key) is not None:
            return
        code = secrets.token_hex(3).upper()
        may_ask = place.is_private and bool(self.allow_list.admins)
        first_message = _FirstMessage(key, code, user.full_name, may_ask)
        state = await self._database.write(_record_first_message, first_message, self._clock())
        if state is None:
            return
        log.info("a stranger wrote on telegram", id=user.id, chat=place.chat_id)
        # asked only now that this is stored, as an admin may decide before all are asked
        was_asked = state is RequestState.ASKING and await self._ask_admins(user, code)
        if state is RequestState.ASKING and not was_asked:
            await self._database.write(_record_no_admin_reached, key, self._clock())
        if not place.is_private:
            chat = place.chat_id
            line = f"I'm not set up for this group. Ask the person who runs me to allow the chat {chat}."
        elif was_asked:
            line = f"We haven't met. I've asked an admin to let you in. Your code is {code}."
        else:
            line = f"We haven't met. Ask the person who runs me to let you in. Your Telegram ID is {user.id}."
        await self._transport.send(place, plain(line))

    async def decide(
        self,
        button: ButtonData,
        admin: User,
        message: TelegramPosted,
        tell: Callable[[str], Awaitable[None]],
    ) -> str:
        """Let a stranger in or keep them out, as an admin pressed. Return the answer to the press.

        ``tell`` sends an answer before slow calls. If it was called, the returned answer is not sent.
        """
        if admin.id not in self.allow_list.admins:
            return "Only an admin may let people in."
        is_let_in = button.action is ButtonAction.LET_IN
        decision = RequestState.IN if is_let_in else RequestState.OUT
        key = _make_request_key(button.id)
        state = await self._database.write(_store_decision, key, decision, admin.full_name, self._clock())
        if state is None:
            return "I don't know of this request."
        if state["stands"] in _DECIDED:
            return f"{state.get('by', 'Someone')} has already decided."
        await tell("Done.")
        outcome = "✅ Let in" if is_let_in else "⚪️ Kept out"
        await self._transport.try_edit(message, plain(f"{outcome} by {admin.full_name}: {state['name']}"))
        if is_let_in:
            await self._welcome(int(button.id), admin)
        return "Done."

    async def _welcome(self, user_id: int, admin: User) -> None:
        welcome = f"{admin.full_name} let you in. What can I do for you?"
        try:
            await self._transport.send(TelegramPlace(user_id), plain(welcome))
        except ChannelError as error:  # they are in all the same
            log.warning("telegram welcome not sent", why=error.message)

    async def _ask_admins(self, user: User, code: str) -> bool:
        """Send each admin the two buttons. Return False if no admin was reached."""
        account = f"@{user.username}, id {user.id}" if user.username else f"id {user.id}"
        text = plain(f"{user.full_name} ({account}) would like to talk to Nod. Their code is {code}.")
        yes = ButtonData(ButtonAction.LET_IN, str(user.id))
        no = ButtonData(ButtonAction.KEEP_OUT, str(user.id))
        row = [
            InlineKeyboardButton("Let in", callback_data=yes.pack(), style=KeyboardButtonStyle.SUCCESS),
            InlineKeyboardButton("Keep out", callback_data=no.pack(), style=KeyboardButtonStyle.DANGER),
        ]
        was_reached = False
        for admin in self.allow_list.admins:
            try:
                await self._transport.send(TelegramPlace(admin), text, InlineKeyboardMarkup([row]))
                was_reached = True
            except ChannelError as error:  # an admin who has not written to the bot yet
                log.warning("telegram admin not reached", admin=admin, why=error.message)
        return was_reached

    async def _load_state(self, key: str) -> dict[str, Any] | None:
        return await self._database.read(load_state, NAME, key)


def _record_first_message(session: Session, first: _FirstMessage, now: datetime) -> RequestState | None:
    """Store the state of a stranger or group after their first message, and return it.

    It is `RequestState.ASKING` if the admins may be asked and have few open requests. The caller then asks
    them. Returns None if a state was stored before, so this is not the first message.
    """
    is_asking = first.may_ask and _count_open_requests(session, now) < _MAX_OPEN_REQUESTS
    stands = RequestState.ASKING if is_asking else RequestState.TOLD
    state = {"stands": stands, "code": first.code, "name": first.name}
    is_new = add_state(session, NAME, first.state_key, state, now)
    return stands if is_new else None


def _count_open_requests(session: Session, now: datetime) -> int:
    states = list_states(session, NAME, _REQUEST_PREFIX)
    asking = {key for key, state in states.items() if state["stands"] == RequestState.ASKING}
    return len(asking.difference(list_unchanged_keys(session, NAME, now - _OPEN_REQUEST_PERIOD, now)))


def _record_no_admin_reached(session: Session, key: str, now: datetime) -> None:
    """Store that a stranger's request reached no admin, unless one has decided on it."""
    state = lock_state(session, NAME, key)
    if state is not None and state["stands"] == RequestState.ASKING:
        store_state(session, NAME, key, {**state, "stands": RequestState.TOLD}, now)


def _store_decision(
    session: Session, key: str, decision: RequestState, by: str, now: datetime
) -> dict[str, Any] | None:
    """Store an admin's decision on a stranger, unless an admin has decided before.

    Returns the state before; None if the stranger has made no request.
    """
    state = lock_state(session, NAME, key)
    if state is not None and state["stands"] not in _DECIDED:
        store_state(session, NAME, key, {**state, "stands": decision, "by": by}, now)
    return state


def _make_request_key(user_id: int | str) -> str:
    return f"{_REQUEST_PREFIX}{user_id}"


def _parse_accounts(setting: str, values: tuple[str, ...]) -> list[int]:
    """Return the Telegram ids among these accounts."""
    actors = map(Actor.parse, values)
    return _parse_ids(setting, tuple(actor.key for actor in actors if actor.channel == NAME))


def _parse_ids(setting: str, values: tuple[str, ...]) -> list[int]:
    """Return the ids of people or chats, without the topic that may follow: ``-100/7`` -> -100."""
    ids = []
    for value in values:
        try:
            ids.append(int(value.partition("/")[0]))
        except ValueError:
            words = f"'{value}' is not a Telegram id. Use the number, such as 991: your bot tells yours"
            raise SettingsError(f"{setting}: {words}") from None
    return ids
