"""Access to Nod in Telegram: people and chats from the settings, and those that an admin let in.

A stranger gets one polite line with a code; the admins get the same code with two buttons. No one is let in
by default.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

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
from bot.store.state import keep_state, list_states, load_state
from bot.telemetry.logs import logger

_MOST_ASKING = 20  # open requests; beyond that strangers are not passed on to the admins

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The accounts and chats that the settings let in, by Telegram's numeric ids."""

    admins: tuple[int, ...]
    approvers: tuple[int, ...]
    people: frozenset[int]
    chats: frozenset[int]

    @classmethod
    def by(cls, settings: Settings) -> Self:
        """Raise SettingsError where a list holds something that is not a Telegram id."""
        admins = _accounts("NOD_ADMINS", settings.admins)
        approvers = _accounts("NOD_APPROVERS", settings.approvers)
        users = _ids("TELEGRAM_ALLOWED_USERS", settings.telegram_allowed_users)
        chats = _ids("TELEGRAM_ALLOWED_CHATS", settings.telegram_allowed_chats)
        routes = _accounts("NOD_APPROVER_CHATS", settings.approver_chats)
        people, places = frozenset([*admins, *approvers, *users]), frozenset([*chats, *routes])
        return cls(tuple(admins), tuple(approvers), people, places)


class Admission:
    """Lets people in: those of the settings, and those whom an admin admits.

    Raises SettingsError as `Admitted.by` does.
    """

    def __init__(self, settings: Settings, database: Database, transport: Transport, clock: Clock) -> None:
        self.admitted = Admitted.by(settings)
        self._database = database
        self._transport = transport
        self._clock = clock

    async def admits(self, user_id: int, chat_id: int) -> bool:
        moves = self._transport.moves
        ids = {chat_id, moves.home(chat_id), moves.now(chat_id)}
        if user_id in self.admitted.people or self.admitted.chats & ids:
            return True
        state = await self._state(_pairing(user_id))
        return state is not None and state["stands"] == "in"

    async def turn_away(self, user: User, place: TelegramPlace) -> None:
        """Tell a stranger once, and pass a private one on to the admins."""
        key = _pairing(user.id) if place.is_private else f"stranger:{place.chat_id}"
        if await self._state(key) is not None:
            return
        code = secrets.token_hex(3).upper()
        log.info("a stranger wrote on telegram", id=user.id, chat=place.chat_id)
        asking = bool(place.is_private and self.admitted.admins) and await self._room()
        state = {"stands": "asking" if asking else "told", "code": code, "name": user.full_name}
        await self._keep(key, state)
        if asking and not (asking := await self._ask_admins(user, code)):
            await self._keep(key, {**state, "stands": "told"})
        if not place.is_private:
            chat = place.chat_id
            line = f"I'm not set up for this group. Ask the person who runs me to allow the chat {chat}."
        elif asking:
            line = f"We haven't met. I've asked an admin to let you in. Your code is {code}."
        else:
            line = f"We haven't met. Ask the person who runs me to let you in. Your Telegram ID is {user.id}."
        await self._transport.send(place, plain(line))

    async def decide(
        self,
        callback: ButtonData,
        admin: User,
        message: TelegramPosted,
        tell: Callable[[str], Awaitable[None]],
    ) -> str:
        """Take an admin's press. Returns what to tell them; ``tell`` says it before slower calls."""
        if admin.id not in self.admitted.admins:
            return "Only an admin may let people in."
        key = f"pair:{callback.id}"
        state = await self._state(key)
        if state is None:
            return "I don't know of this request."
        if state["stands"] in ("in", "out"):
            return f"{state.get('by', 'Someone')} has already decided."
        let_in = callback.action is ButtonAction.LET_IN
        stands = "in" if let_in else "out"
        await self._keep(key, {**state, "stands": stands, "by": admin.full_name})
        await tell("Done.")
        outcome = f"{'✅ Let in' if let_in else '⚪️ Kept out'} by {admin.full_name}: {state['name']}"
        await self._transport.try_edit(message, plain(outcome))
        if let_in:
            welcome = f"{admin.full_name} let you in. What can I do for you?"
            try:
                await self._transport.send(TelegramPlace(int(callback.id)), plain(welcome))
            except ChannelError as error:  # they are in all the same
                log.warning("telegram welcome not sent", why=error.message)
        return "Done."

    async def _ask_admins(self, user: User, code: str) -> bool:
        """Ask the admins, and tell if one of them was reached."""
        name = f"{user.full_name} ({f'@{user.username}, ' if user.username else ''}id {user.id})"
        text = plain(f"{name} would like to talk to Nod. Their code is {code}.")
        yes, no = (
            ButtonData(ButtonAction.LET_IN, str(user.id)),
            ButtonData(ButtonAction.KEEP_OUT, str(user.id)),
        )
        row = [
            InlineKeyboardButton("Let in", callback_data=yes.pack(), style=KeyboardButtonStyle.SUCCESS),
            InlineKeyboardButton("Keep out", callback_data=no.pack(), style=KeyboardButtonStyle.DANGER),
        ]
        reached = False
        for admin in self.admitted.admins:
            try:
                await self._transport.send(TelegramPlace(admin), text, InlineKeyboardMarkup([row]))
                reached = True
            except ChannelError as error:  # an admin who has not written to the bot yet
                log.warning("telegram admin not reached", admin=admin, why=error.message)
        return reached

    async def _state(self, key: str) -> dict[str, Any] | None:
        return await self._database.read(load_state, NAME, key)

    async def _keep(self, key: str, state: Mapping[str, Any]) -> None:
        await self._database.write(keep_state, NAME, key, state, self._clock())

    async def _room(self) -> bool:
        kept = await self._database.read(list_states, NAME, "pair:")
        return len([1 for state in kept.values() if state["stands"] == "asking"]) < _MOST_ASKING


def _pairing(user_id: int) -> str:
    return f"pair:{user_id}"


def _accounts(setting: str, values: tuple[str, ...]) -> list[int]:
    actors = (Actor.parse(v) for v in values)
    return _ids(setting, tuple(a.key for a in actors if a.channel == NAME))


def _ids(setting: str, values: tuple[str, ...]) -> list[int]:
    try:
        return [int(v.partition("/")[0]) for v in values]
    except ValueError:
        wrong = next(v for v in values if not v.partition("/")[0].removeprefix("-").isdecimal())
        raise SettingsError(
            f"{setting}: '{wrong}' is not a Telegram id. Use the number, such as 991: your bot tells yours"
        ) from None
