"""Files come, are read, forgotten and deleted in any order: each is seen where it was sent, only there."""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bot.approvals.lookup.conversations import ConversationLookup
from bot.approvals.lookup.proposals import ProposalLookup
from bot.approvals.tools.outputs import output_tools
from bot.domain.attachments import Upload
from bot.domain.chat import Address
from bot.domain.model import ToolResult, UserText
from bot.domain.people import Actor
from bot.errors import ChannelError
from bot.store import conversations, outputs
from bot.tools.toolset import FixedToolset
from tests.kit import FakeClock, Nod, RecordingChannel, call, says
from tests.kit.examples import examples
from tests.kit.urls import urls
from tests.machines.conftest import SLOW

pytestmark = pytest.mark.slow

ANA, BEN = Actor("http", "ana", "Ana"), Actor("http", "ben", "Ben")
EVE, ZOE = Actor("chat", "T1/eve", "Eve"), Actor("chat", "T2/zoe", "Zoe")
HALLS = [Address("chat", "T1/hall/1"), Address("chat", "T2/hall/1")]
PLACES: dict[Address, list[Actor]] = {  # and who can write there
    Address("http", "ana/1"): [ANA],
    Address("http", "ana/2"): [ANA],
    Address("http", "ben/1"): [BEN],
    Address("chat", "T1/eve"): [EVE],
    HALLS[0]: [EVE, ANA, BEN],
    HALLS[1]: [ZOE],
}
KEPT = timedelta(days=30)
WORD = re.compile(r"word\d+")
places = st.sampled_from(list(PLACES))
picks = st.integers(0, 9)


@dataclass
class Sent:
    """What the model knows of a file; ``place`` is the id of its conversation."""

    word: str
    place: str
    readable: bool
    at: datetime


class Reading(Nod):
    """The core with the tool that reads a long file further."""

    def tools(self) -> FixedToolset:
        return FixedToolset("all", (*self.toolset.fixed, *output_tools(self.database).fixed))


class FileMachine(RuleBasedStateMachine):
    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.places = contextlib.ExitStack()
        folder = Path(self.places.enter_context(tempfile.TemporaryDirectory()))
        url = self.places.enter_context(urls(self.kind, folder))("nod")
        self.files: dict[str, Sent] = {}  # by handle, also those that are forgotten
        self.deleted: set[str] = set()
        self.count = 0
        self.run(self._begin(url))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    async def _begin(self, url: str) -> None:
        self.chats = [RecordingChannel("chat"), RecordingChannel("http")]
        self.nod = Reading(url, FakeClock(), channels=self.chats)

    @property
    def lookup(self) -> ConversationLookup:
        gate = self.nod.gate
        seen = ProposalLookup(gate.groups, gate.registry, gate.policies)
        return ConversationLookup(self.nod.database, gate.registry, seen, self.nod.clock)

    def kept(self, place: str | None = None) -> dict[str, Sent]:
        """The files that are still there, of one conversation or of all."""
        since = self.nod.clock() - KEPT
        return {
            handle: file
            for handle, file in self.files.items()
            if file.at >= since and file.place not in self.deleted and place in (None, file.place)
        }

    @rule(
        place=places,
        who=picks,
        kinds=st.lists(st.sampled_from(["text", "far", "program", "gone"]), min_size=1, max_size=2),
        dies=st.sampled_from([0, 0, 0, 1, 2, 3, 4]),
        after=st.booleans(),
    )
    def someone_sends_files(
        self, place: Address, who: int, kinds: list[str], dies: int, *, after: bool
    ) -> None:
        self.run(self._send(place, PLACES[place][who % len(PLACES[place])], kinds, dies, after=after))

    async def _send(self, place: Address, who: Actor, kinds: list[str], dies: int, *, after: bool) -> None:
        made = [self._file(place, kind) for kind in kinds]
        files = [file for file, _ in made]
        event, words = f"sent {self.count}", {"by": who, "at": place, "private": place not in HALLS}
        if dies:
            telling = self.nod.say("Read it.", event=event, files=files, **words)
            await self.nod.dies_in(telling, self.nod.database.writes + dies, after_commit=after)
        await self.nod.say("Read it.", event=event, files=files, **words)  # delivered again after a crash
        await self.nod.idle()
        said = await self.nod.transcript(place)
        sent = [line for line in said.lines if line.files][-1].files
        assert len(sent) == len(files), "a message was lost, or taken in twice"
        for handle, (_, word) in zip(sent, made, strict=True):
            self.files[handle] = Sent(word, said.conversation.id, bool(word), self.nod.clock())

    def _file(self, place: Address, kind: str) -> tuple[Upload, str]:
        """One file, and the word in it; none where it can't be read."""
        self.count += 1
        word, name = f"word{self.count}", f"{self.count}.txt"
        chat = self.chats[place.channel == "http"]
        match kind:
            case "far":
                chat.uploads[name] = word.encode()
                return Upload(name, ref=name, size=9), word
            case "gone":
                chat.uploads[name] = ChannelError("its platform answered 404")
                return Upload(name, ref=name, size=9), ""
            case "program":
                return Upload(name, b"\x7fELF\0" + word.encode()), ""
        return Upload(name, word.encode()), word

    @rule(place=places, who=picks, pick=picks)
    def someone_asks_for_a_file_by_its_handle(self, place: Address, who: int, pick: int) -> None:
        """What the model is told there is what was sent there, also where it is asked for another's."""
        if self.files:
            handle = list(self.files)[pick % len(self.files)]
            self.run(self._ask(place, PLACES[place][who % len(PLACES[place])], handle))

    async def _ask(self, place: Address, who: Actor, handle: str) -> None:
        self.nod.model.will(says("I look.", call("output_read", handle=handle)))
        await self.nod.say(f"What is in {handle}?", by=who, at=place, private=place not in HALLS)
        await self.nod.idle()
        here = (await self.nod.transcript(place)).conversation.id
        told = self.nod.model.transcripts[-1]
        theirs = {file.word for file in self.kept(here).values() if file.readable}
        heard = " ".join(entry.text for entry in told if isinstance(entry, UserText))
        assert set(WORD.findall(heard)) == theirs
        *_, read = (entry.text for entry in told if isinstance(entry, ToolResult))
        file = self.kept(here).get(handle)
        assert WORD.findall(read) == ([file.word] if file and file.readable else [])

    @rule(place=places, who=picks)
    def someone_begins_anew(self, place: Address, who: int) -> None:
        self.run(self.nod.command("/nod new", by=PLACES[place][who % len(PLACES[place])], at=place))

    @rule(place=places)
    def a_conversation_is_deleted(self, place: Address) -> None:
        self.run(self._delete(place))

    async def _delete(self, place: Address) -> None:
        found = await self.nod.database.read(conversations.find_current_conversation, place)
        if found and not await self.lookup.forget_conversation(found.id):
            self.deleted.add(found.id)

    @rule(days=st.sampled_from([0, 1, 20, 31]), crashes=st.booleans())
    def time_passes(self, days: int, *, crashes: bool) -> None:
        self.run(self._pass(timedelta(days=days), crashes=crashes))

    async def _pass(self, time: timedelta, *, crashes: bool) -> None:
        await self.nod.tick(time)
        await self.nod.recovery.purge(self.nod.clock())
        if crashes:
            await self.nod.crash()

    @invariant()
    def each_is_handed_out_where_it_was_sent_and_nowhere_else(self) -> None:
        if hasattr(self, "nod"):
            self.run(self._check())

    async def _check(self) -> None:
        kept, read = self.kept(), self.nod.database.read
        for place in {file.place for file in self.files.values()}:
            here = {handle: file for handle, file in kept.items() if file.place == place}
            listed = {handle for handle, _ in await self.lookup.files(place)}
            assert listed == set(here)
            for handle in self.files:
                found = await self.lookup.file(place, handle)
                file = here.get(handle)
                assert (found is None) == (file is None)
                assert found is None or WORD.findall(found.text) == [file.word] * file.readable
                part = await read(outputs.load_text_part, place, handle, 0, 100)
                assert (part is None) == (file is None)
        for who in (ANA, BEN):
            own = {place for place in PLACES if place.channel == "http" and PLACES[place] == [who]}
            shown = {each.handle for each in await self.lookup.files_of("http", who, 100)}
            theirs = {handle for handle, file in kept.items() if await self._stands_at(file.place, own)}
            assert shown == theirs

    async def _stands_at(self, place: str, own: set[Address]) -> bool:
        found = await self.nod.database.read(conversations.get_conversation, place)
        assert found is not None
        others = [at for at in PLACES if at != found.address]
        assert [await self.lookup.find_own(place, at) for at in others] == [None] * len(others)
        return found.address in own

    def teardown(self) -> None:
        if not hasattr(self, "nod"):
            return
        shown = self.chats[0].shown + self.chats[1].shown
        unread = [file for file in self.files.values() if not file.readable]
        assert len(re.findall(r"I can't read \d+\.txt", shown)) == len(unread), "each is told once"
        self.run(self.nod.check())
        self.run(self.nod.close())
        self.runner.close()
        self.places.close()


TestFiles = FileMachine.TestCase
TestFiles.settings = examples(32, stateful_step_count=12, suppress_health_check=SLOW)
