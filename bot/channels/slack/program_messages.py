"""The messages of other programs in the threads that Nod follows.

They are stored as they arrive, and handed over with the next message of a person.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.channels.slack.earlier_messages import MAX_MESSAGE_CHARS, EarlierMessages
from bot.channels.slack.marks import make_readable
from bot.channels.slack.places import NAME, SlackPlace
from bot.channels.slack.reading import find_program_name, read_files, read_full_text
from bot.domain.attachments import Upload, choose_earlier
from bot.domain.chat import Clock
from bot.store.database import Database
from bot.store.state import load_state, store_state

_MAX_PROGRAM_MESSAGES = 30  # messages of other programs of one thread that are stored since a person wrote


@dataclass(frozen=True, slots=True)
class ProgramMessages:
    """The repository of these messages, one entry for each thread."""

    database: Database
    clock: Clock

    async def add(self, place: SlackPlace, event: Mapping[str, Any]) -> None:
        """Store a message of a thread."""
        author = find_program_name(event) or "another program"
        text = make_readable(read_full_text(event), {})[:MAX_MESSAGE_CHARS]
        stored = await self.load(place)
        lines = [*stored.lines, (author, text)][-_MAX_PROGRAM_MESSAGES:]
        files = choose_earlier([*stored.files, *read_files(event)])
        await self._store(place, EarlierMessages(lines, files))

    async def load(self, place: SlackPlace) -> EarlierMessages:
        """Return the messages of other programs in a thread since a person last wrote to Nod there."""
        key = _make_key(place)
        state = await self.database.read(load_state, NAME, key) or {}
        lines = [(str(author), str(text)) for author, text in state.get("said", ())]
        files = [Upload(name, ref=ref, size=size) for name, ref, size in state.get("files", ())]
        return EarlierMessages(lines, choose_earlier(files))

    async def _store(self, place: SlackPlace, messages: EarlierMessages) -> None:
        files = [(file.name, file.ref, file.size) for file in messages.files]
        state = {"said": messages.lines, "files": files}
        key = _make_key(place)
        await self.database.write(store_state, NAME, key, state, self.clock())

    async def delete(self, place: SlackPlace) -> None:
        key = _make_key(place)
        await self.database.write(store_state, NAME, key, None, self.clock())


def _make_key(place: SlackPlace) -> str:
    """Return the key under which the messages of programs in a thread are stored."""
    return f"programs:{place.address.key}"
