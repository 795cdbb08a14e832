"""The routes of mutes, which list and end the caller's own mutes. Mutes are set by a button or a command."""

from typing import Annotated

from fastapi import Path
from sqlmodel import Session

from bot.domain.people import Actor
from bot.features.feature import PartsDep, RouteParts
from bot.features.mutes import rows
from bot.store import people
from bot.web.answers import require_or_404
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.site import Caller, make_router

router = make_router("mutes", prefix="/api")

MuteNumber = Annotated[int, Path(ge=1, lt=10**9)]


class MuteView(View):
    """A mute: the caller is not told of the cards of a tool until a time."""

    id: int
    tool_name: str
    until: Time


class MutesBody(DoneBody):
    mutes: list[MuteView]


class MuteEndedBody(SaidBody):
    """``tool_name``: the tool of whose cards the caller is told again."""

    id: int
    tool_name: str


@router.get("/mutes", summary="Kinds of cards that you are not told of")
async def list_own_mutes(actor: Caller, parts: PartsDep) -> MutesBody:
    """Return your own mutes. You may decide the cards of these tools all the same."""

    def read_current(session: Session) -> list[rows.Mute]:
        mutes = rows.list_mutes(session, people.load_person(session, actor).accounts)
        return [mute for mute in mutes if mute.until > parts.clock()]

    return MutesBody.of(mutes=await parts.database.read(read_current))


@router.delete("/mutes/{number}", summary="Be told of a kind of card again")
async def end_own_mute(number: MuteNumber, actor: Caller, parts: PartsDep) -> MuteEndedBody:
    ended_tool = await parts.database.write(_end_mute, actor, number, parts)
    tool_name = require_or_404(ended_tool, "You don't mute that.")
    return MuteEndedBody(id=number, tool_name=tool_name, text=f"You are told again of {tool_name}.")


def _end_mute(session: Session, actor: Actor, number: int, parts: RouteParts) -> str | None:
    """End a mute of this person, and return the name of its tool; None if there is no such mute."""
    person = people.load_person(session, actor)
    tool_names = rows.end_mutes(session, actor, person, [number], parts.clock())
    return tool_names[0] if tool_names else None
