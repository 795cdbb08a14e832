"""People as clients of all processes: a story is something that they do until it has come to its end."""

import asyncio
import contextlib
import itertools
import json
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

import httpx

from tests.torture.accounts import Accounts
from tests.torture.agents import Agents
from tests.torture.chats import Chat, Chats
from tests.torture.nods import PATIENCE, PAUSE, TOKENS, Nods
from tests.torture.tools import AFTER, BEFORE, LATER

_GIVEN_UP = "given up"
_MOVES = 0.3  # how often the base of a trial changes before it is approved
_THEIRS = "another's"  # what stands there then
_STAYS = 0.3  # how often what was applied is not undone
_BUDGET = 5  # answers that are paid for
_LOOKED = 2.0  # seconds that a person looks at a card before they press again
_DECIDED = "SELECT state FROM proposal WHERE id = :ident AND state <> 'proposed'"
_CALLED = "kind = :kind AND CAST(arguments AS text) LIKE :named"

OVER_BUDGET = "The budget is used up"


@dataclass(frozen=True)
class Told:
    """What a press was answered: who pressed what on which proposal, and the state that was shown."""

    who: str
    verb: str
    ident: str
    answer: str
    state: str


class People:
    """``told`` and ``accepted`` are what clients know: answers to presses, texts that were taken in."""

    def __init__(self, nods: Nods, chats: Chats, accounts: Accounts) -> None:
        self._nods = nods
        self._chats = chats
        self._client = httpx.AsyncClient(timeout=30)
        self.told: list[Told] = []
        self.accepted: list[str] = []
        self._agents = Agents(nods, self._press)
        self._stories: dict[str, Callable[[str, random.Random], Awaitable[str]]] = {
            "press": self._press_twice,
            "quarrel": self._quarrel,
            "edit": self._edit,
            "quorum": self._quorum,
            "similar": self._similar,
            "expiry": self._expiry,
            "pair": self._pair,
            "batch": self._batch,
            "stop": self._stop,
            "death": self._death,
            "revoke": self._revoke,
            "undo": self._undo,
            "trial": self._trial,
            "schedule": self._schedule,
            "question": self._question,
            "memory": self._memory,
            "file": self._file,
            "budget": self._budget,
            "team": self._team,
            "account": lambda name, dice: accounts.live(self, name, dice),
            "agent": self._agents.live,
            "ended agent": self._agents.end,
            "slack": lambda name, dice: self._in_chat(chats.all["slack"], name, dice),
            "telegram": lambda name, dice: self._in_chat(chats.all["telegram"], name, dice),
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        await self._agents.close()

    async def rule(self, rules: Sequence[str]) -> None:
        for words in rules:
            body = {"name": "approvals", "text": words}
            await self._insist(random.Random(0), "ana", "/api/commands", self._posting(body))

    async def live(
        self, number: int, dice: random.Random, over: asyncio.Event, stories: Sequence[str]
    ) -> None:
        """One story after the other, each at least once, until it is over."""
        names = list(stories or self._stories)
        names = names[number % len(names) :] + names[: number % len(names)]
        for count, name in enumerate(itertools.cycle(names)):
            if over.is_set() and count >= len(names):
                return
            try:
                how = await self._stories[name](f"{name} {number}-{count}", dice)
            except AssertionError as fault:
                self._nods.check()
                self._nods.figures.faults.append(f"{name} {number}-{count}: {fault}")
            else:
                self._nods.figures.ends[how] += 1

    async def _press_twice(self, name: str, dice: random.Random) -> str:
        """The same press arrives at two processes in the same moment."""
        [ident] = await self._asked("mark", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        verb = "approve" if dice.random() < 0.85 else "decline"
        return await self._timed(ident, *(self._press("ana", verb, ident, dice) for _ in range(2)))

    async def _quarrel(self, name: str, dice: random.Random) -> str:
        """Three people press something different in the same moment."""
        [ident] = await self._asked("mark", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        verbs = zip(("ana", "ben", "cleo"), dice.sample(("approve", "decline", "approve"), 3), strict=True)
        presses = [self._press(who, verb, ident, dice) for who, verb in verbs]
        return await self._timed(ident, *presses, self._press("ana", "cancel", ident, dice))

    async def _edit(self, name: str, dice: random.Random) -> str:
        """Two people change it and one approves what was there before; then what it is now is approved."""
        [ident] = await self._asked("mark", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        edits = [
            self._press(who, verb, ident, dice, arguments={"text": f"{name} {verb}ed by {who}"}, round=1)
            for who, verb in (("ana", "edit"), ("ben", "edit"), ("cleo", "approve"))
        ]
        await asyncio.gather(*edits, self._press("ben", "approve", ident, dice, round=1))
        return await self._approved(ident, "ana", dice)

    async def _quorum(self, name: str, dice: random.Random) -> str:
        [ident] = await self._asked("together", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        who = ("ana", "ana", "ben", "cleo")
        return await self._timed(ident, *(self._press(each, "approve", ident, dice) for each in who))

    async def _similar(self, name: str, dice: random.Random) -> str:
        """What comes after runs without a press."""
        conversation = await self._say(f"mark {name}", dice)
        [ident] = await self._cards(conversation, 1) or [""]
        if not ident:
            return _GIVEN_UP
        allows = {"rung": "tool", "lasting": "conversation"}
        await asyncio.gather(*(self._press("ana", "similar", ident, dice, **allows) for _ in range(2)))
        await self._end(ident)
        await self._say(f"mark {name} and this", dice, conversation)
        further = await self._cards(conversation, 2)
        return await self._end(further[-1]) if further else _GIVEN_UP

    async def _expiry(self, name: str, dice: random.Random) -> str:
        """It is approved in the moment in which it expires; where that asks again, no one decides."""
        [ident] = await self._asked("soon", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        await asyncio.sleep(dice.uniform(1, 3))
        await asyncio.gather(*(self._press(who, "approve", ident, dice) for who in ("ana", "ben")))
        return await self._end(ident)

    async def _pair(self, name: str, dice: random.Random) -> str:
        """Two changes of one answer, approved together by two people."""
        pair = await self._asked("pair", name, dice, many=2)
        if not pair:
            return _GIVEN_UP
        await asyncio.gather(
            *(self._press(who, "approve_all", ident, dice) for who in ("ana", "ben") for ident in pair)
        )
        ends = [await self._end(ident) for ident in pair]
        return ends[0] if len(set(ends)) == 1 else " and ".join(sorted(ends))

    async def _batch(self, name: str, dice: random.Random) -> str:
        """Five changes as one table: two people each decide rows of it, at the same time."""
        rows = await self._asked("batch", name, dice, many=5)
        if not rows:
            return _GIVEN_UP
        await asyncio.gather(*(self._press(who, "approve_all", rows[0], dice) for who in ("ana", "ben")))
        ends = [await self._end(ident) for ident in rows]
        return ends[0] if len(set(ends)) == 1 else " and ".join(sorted(set(ends)))

    async def _stop(self, name: str, dice: random.Random) -> str:
        """The turn is stopped while it runs, or was; what it had proposed is withdrawn."""
        conversation = await self._say(f"mark {name}", dice)
        await asyncio.sleep(dice.uniform(0, 0.2))
        await self._insist(dice, "ana", f"/api/conversations/{conversation}/stop", self._posting({}))
        await self._nods.until(
            "SELECT 'it rests' WHERE NOT EXISTS "
            "(SELECT 1 FROM turn WHERE conversation_id = :conversation AND state = 'wanted')",
            conversation=conversation,
        )
        for ident in await self._of(conversation):
            await self._press("ana", "cancel", ident, dice)
            return await self._end(ident)
        return "stopped"

    async def _death(self, name: str, dice: random.Random) -> str:
        """The tool kills its process; the outcome is unknown, and a person tries again in two places."""
        [ident] = await self._asked("mark", f"{dice.choice((BEFORE, AFTER))} {name}", dice) or [""]
        if not ident:
            return _GIVEN_UP
        how = await self._approved(ident, "ana", dice)
        if how != "failed":
            return how
        await asyncio.gather(*(self._press("ana", "retry", ident, dice, round=1) for _ in range(2)))
        return f"{await self._end(ident)} when tried again"

    async def _undo(self, name: str, dice: random.Random) -> str:
        """Two people undo it in the same moment; at times what undoes it kills its process."""
        [ident] = await self._asked("back", f"{dice.choice(('', LATER))} {name}", dice) or [""]
        if not ident:
            return _GIVEN_UP
        how = await self._approved(ident, "ana", dice)
        if how != "succeeded":
            return how
        await asyncio.gather(*(self._press(who, "undo", ident, dice) for who in ("ana", "ben", "ana")))
        return await self._undone(ident)

    async def _undone(self, ident: str) -> str:
        """How it ended that the one change undoes another."""
        found = await self._nods.column("SELECT id FROM proposal WHERE undoes = :ident", ident=ident)
        if len(found) != 1:
            raise AssertionError(f"{ident} is undone by {found}")
        return f"{await self._end(found[0])} as undone"

    async def _trial(self, name: str, dice: random.Random) -> str:
        """It is tried first; at times its process is killed while what it did is applied, or undone."""
        [ident] = await self._asked("tried", f"{dice.choice(('', BEFORE, LATER))} {name}", dice) or [""]
        if not ident:
            return _GIVEN_UP
        moved = dice.random() < _MOVES and await self._move_base(ident, dice)
        how = await self._approved(ident, "ana", dice)
        if moved:
            return f"{how} once its base had changed"
        if how == "failed":
            await asyncio.gather(*(self._press("ana", "retry", ident, dice, round=1) for _ in range(2)))
            return f"{await self._end(ident)} when applied again"
        if how != "succeeded" or dice.random() < _STAYS:
            return f"{how} as tried"
        found = await self._insist(dice, "ana", f"/api/proposals/{ident}", self._getting)
        if "undo" not in found["proposal"]["verbs"]:  # of a person 30 calls are tried in an hour
            return f"{how} untried"
        await asyncio.gather(*(self._press(who, "undo", ident, dice) for who in ("ana", "ben")))
        return f"{await self._undone(ident)}, tried"

    async def _move_base(self, ident: str, dice: random.Random) -> bool:
        """Another's file comes to stand where a call was tried: it is asked about again, not written over."""
        found = await self._insist(dice, "ana", f"/api/proposals/{ident}", self._getting)
        proposal = found["proposal"]
        files = [each["path"] for each in (proposal["trial"] or {}).get("files", ()) if "/" in each["path"]]
        if not files:  # of a person 30 calls are tried in an hour
            return False
        theirs = self._nods.effects.with_name("workspace") / files[0]
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_text(_THEIRS)
        await self._press("ana", "approve", ident, dice, round=proposal["round"])
        state = await self._nods.until(
            f"SELECT state FROM proposal WHERE id = :ident AND (round > {int(proposal['round'])} "
            "OR state NOT IN ('proposed', 'approved', 'executing'))",
            ident=ident,
        )
        if state != "proposed" or theirs.read_text() != _THEIRS:
            raise AssertionError(f"{ident} is {state}, applied over a base that changed")
        return True

    async def _revoke(self, name: str, dice: random.Random) -> str:
        """What a grant allows is asked for in the moment in which it is revoked, and once more after."""
        conversation = await self._say(f"mark {name}", dice)
        [ident] = await self._cards(conversation, 1) or [""]
        if not ident:
            return _GIVEN_UP
        await self._press("ana", "similar", ident, dice, rung="tool", lasting="conversation")
        await self._end(ident)
        [grant] = await self._nods.column(
            "SELECT id FROM grant_given WHERE proposal_id = :ident", ident=ident
        ) or [""]
        if not grant:
            return "nothing was allowed"
        revoking = (self._insist(dice, "ana", f"/api/grants/G-{grant}", self._deleting) for _ in range(2))
        await asyncio.gather(self._say(f"mark {name} and this", dice, conversation), *revoking)
        for many, words in ((2, ""), (3, f"mark {name} and that")):
            if words:
                await self._say(words, dice, conversation)
            found = await self._cards(conversation, many)
            if not found:
                return _GIVEN_UP
            await self._approved(found[-1], "ben", dice)
        return "revoked"

    async def _schedule(self, name: str, dice: random.Random) -> str:
        """It is run now, wanted twice in the same moment, and once more; then it is deleted, twice."""
        [ident] = await self._asked("later", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        how = await self._approved(ident, "ana", dice)
        if how != "succeeded":
            return f"{how} as scheduled"
        path, run = f"/api/schedules/{ident}", self._posting({"do": "run"}, refusals=True)
        for count in (1, 2):
            await asyncio.gather(*(self._insist(dice, "ana", path, run) for _ in range(2)))
            await self._nods.until(
                f"SELECT 'ran' FROM schedule WHERE id = :ident AND runs >= {count} AND due_at > last_at",
                ident=ident,
            )
        await asyncio.gather(*(self._insist(dice, "ana", path, self._deleting) for _ in range(2)))
        return "scheduled"

    async def _question(self, name: str, dice: random.Random) -> str:
        """It is answered otherwise in the same moment, by someone else, too; the model is told one answer."""
        conversation = await self._say(f"ask {name}", dice)
        [ident] = await self._cards(conversation, 1) or [""]
        if not ident:
            return _GIVEN_UP
        answers = (("ana", "yes"), ("ana", "no"), ("ben", "maybe"))
        how = await self._timed(
            ident,
            *(self._press(who, "answer", ident, dice, reason=f"{name}: {words}") for who, words in answers),
        )
        heard = await self._answers(conversation)
        if heard is None:
            return _GIVEN_UP
        [result] = await self._nods.column("SELECT result FROM proposal WHERE id = :ident", ident=ident)
        if how != "succeeded" or result not in (f"{name}: yes", f"{name}: no"):
            raise AssertionError(f"{ident} is {how} with the answer {result}")
        if [each for each in heard if each.startswith("I heard")] != [f"I heard: {result}"]:
            raise AssertionError(f"{ident} was answered with {result}, and the model said {heard}")
        return "answered"

    async def _memory(self, name: str, dice: random.Random) -> str:
        """A fact is kept, decided twice in the same moment; no one else sees it, and it is forgotten."""
        [ident] = await self._asked("keep", name, dice) or [""]
        if not ident:
            return _GIVEN_UP
        verb = "approve" if dice.random() < 0.85 else "decline"
        how = await self._timed(
            ident, *(self._press(who, verb, ident, dice) for who in ("ana", "ana", "ben"))
        )
        kept = await self._nods.column("SELECT id FROM memory WHERE fact = :name", name=name)
        if len(kept) != (how == "succeeded"):
            raise AssertionError(f"{ident} is {how}, and its fact is there {len(kept)} times")
        seen = await self._insist(dice, "ben", "/api/memory", self._getting)
        if name in json.dumps(seen):
            raise AssertionError(f"{ident} is for one person, and another sees it")
        for fact in kept:
            forgetting = (self._insist(dice, "ana", f"/api/memory/{fact}", self._deleting) for _ in range(2))
            await asyncio.gather(*forgetting)
            if await self._nods.column("SELECT id FROM memory WHERE fact = :name", name=name):
                raise AssertionError(f"{ident} was forgotten, and its fact is there")
        return f"{how} as kept"

    async def _file(self, name: str, dice: random.Random) -> str:
        """A file comes with a message: the model reads it, or people are told once that it can't be read."""
        begins = dice.choice((b"", b"", b"\x7fELF\0"))  # text, or a program
        conversation = await self._say(f"read {name}", dice, file=begins + f"what {name} says".encode())
        told = await self._answers(conversation)
        if told is None:
            return _GIVEN_UP
        files = await self._nods.column(
            "SELECT name FROM output WHERE conversation_id = :conversation AND ready",
            conversation=conversation,
        )
        if files != ["notes.txt"]:
            raise AssertionError(f"{name} has the files {files}")
        refused = "I can't read notes.txt: it is a program."
        if told != (["I read: nothing", refused] if begins else [f"I read: what {name} says"]):
            raise AssertionError(f"{name} was answered with {told}")
        return "not readable" if begins else "read"

    async def _budget(self, name: str, dice: random.Random) -> str:
        """What it pays for last is a change, and that is done; two extend it in the same moment."""
        conversation = await self._say(f"hello {name}", dice)
        where = f"http:ana/{conversation}"
        await self.rule([f"budget {_BUDGET} USD a month for {where}"])
        for words in (*(f"hello {count}" for count in range(2, _BUDGET)), "mark"):
            if await self._answers(conversation) is None:
                return _GIVEN_UP
            await self._say(f"{words} {name}", dice, conversation)
        [ident] = await self._cards(conversation, 1) or [""]
        if not ident:
            return _GIVEN_UP
        how = await self._approved(ident, "ana", dice)
        if how != "succeeded":
            return f"{how} over budget"
        told = await self._answers(conversation)
        if told is None:
            return _GIVEN_UP
        *said, warned, stopped = told
        if len(said) != _BUDGET or not warned.startswith("80%") or not stopped.startswith(OVER_BUDGET):
            raise AssertionError(f"{name} was answered with {told}")
        await self._in_two_places(f"budget extend {await self._budget_of(where)} {_BUDGET} USD", dice)
        await self._say(f"hello after all {name}", dice, conversation)
        if await self._answers(conversation) is None:
            return _GIVEN_UP
        usage = await self._insist(dice, "ana", "/api/usage", self._getting)
        rule = await self._budget_of(where)
        found = [(each["spent"], each["limit"]) for each in usage["budgets"] if str(each["rule"]) == rule]
        if found != [(_BUDGET + 1, 2 * _BUDGET)]:
            raise AssertionError(f"{name} has spent, of what it may: {found}")
        await self._in_two_places(f"drop {rule}", dice)
        return "extended"

    async def _in_two_places(self, words: str, dice: random.Random) -> None:
        """An admin sends a command to two processes in the same moment."""
        send = self._posting({"name": "approvals", "text": words}, refusals=True)
        await asyncio.gather(*(self._insist(dice, "ana", "/api/commands", send) for _ in range(2)))

    async def _budget_of(self, where: str) -> str:
        """The number of the rule."""
        query = "SELECT id FROM rule WHERE subject = 'budget' AND scope = :where AND ended_at IS NULL"
        [found] = await self._nods.column(query, where=where)
        return found

    async def _answers(self, conversation: str) -> list[str] | None:
        """What was said in it, people apart, once no one is at it; None where a turn was given up."""
        await self._nods.until(
            "SELECT 'it rests' WHERE NOT EXISTS "
            "(SELECT 1 FROM turn WHERE conversation_id = :conversation AND state = 'wanted')",
            conversation=conversation,
        )
        failed = (
            "SELECT id FROM turn WHERE conversation_id = :conversation AND state = 'failed' "
            f"AND error NOT LIKE '{OVER_BUDGET}%'"
        )
        if await self._nods.column(failed, conversation=conversation):
            return None
        return await self._nods.column(
            "SELECT text FROM message WHERE conversation_id = :conversation "
            "AND role IN ('assistant', 'notice') ORDER BY role, id",
            conversation=conversation,
        )

    async def _team(self, name: str, dice: random.Random) -> str:
        """Two people decide a teammate's plan in the same moment; what it then asks for is approved."""
        await self._say(f"team {name}", dice)
        plan = await self._called(name, "plan")
        if not plan:
            return _GIVEN_UP
        verbs = ("approve", "approve" if dice.random() < 0.7 else "decline")
        presses = (
            self._press(who, verb, plan, dice) for who, verb in zip(("ana", "ben"), verbs, strict=True)
        )
        how = await self._timed(plan, *presses)
        if how != "succeeded":
            return f"plan {how}"
        mark = await self._called(name)
        return f"{await self._approved(mark, 'ana', dice)} as planned" if mark else _GIVEN_UP

    async def _in_chat(self, chat: Chat, name: str, dice: random.Random) -> str:
        """It is asked for and decided in a chat; who sees that nothing came of a press presses again."""
        began = time.monotonic()
        await chat.say(f"mark {name}")
        self.accepted.append(f"mark {name}")
        self._nods.figures.messages += 1
        ident = await self._called(name)
        if not ident:
            return _GIVEN_UP
        self._nods.figures.parked.append(time.monotonic() - began)
        label = "Approve" if dice.random() < 0.8 else "Decline"
        end, pressed = time.monotonic() + PATIENCE, math.inf
        while time.monotonic() < end:
            if await chat.press(ident, label):
                pressed = min(pressed, time.monotonic())
                self._nods.figures.presses += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOKED):
                    await self._nods.until(_DECIDED, ident=ident)
                    self._took(pressed)
                    return await self._end(ident)
        raise AssertionError(f"{ident} could not be decided in a chat")

    def _took(self, began: float) -> None:
        """A press that began then is answered now."""
        figures = self._nods.figures
        (figures.pressed_rolling if self._nods.rolling else figures.pressed).append(time.monotonic() - began)

    async def leave(self, dice: random.Random) -> None:
        """Decline what still waits, where a turn was given up and a story ended."""
        waiting = await self._nods.column(
            "SELECT id FROM proposal WHERE state = 'proposed' AND ttl_seconds > 1000"
        )
        await asyncio.gather(*(self._press("ben", "decline", ident, dice) for ident in waiting))

    async def see_every_answer(self) -> None:
        """Wait until each press was answered and no card is open that should not be.

        A card that was posted twice, because no row of the first was kept, is put right by a press.
        """
        open_ones = {each.ident for each in self._chats.shown() if each.open}
        ended = set(await self._nods.column("SELECT id FROM proposal WHERE state <> 'proposed'"))
        for ident in sorted(open_ones & ended):
            cards = [each for each in self._chats.shown() if each.ident == ident]
            if all(each.open for each in cards):
                continue  # it is no copy that was forgotten: the checker will say so
            self._nods.figures.stale += 1
            for chat in self._chats.all.values():
                await chat.press(ident, "Approve")

        def right() -> bool:
            lying = any(each.open for each in self._chats.shown() if each.ident in ended)
            return not (lying or self._chats.unanswered())

        end = time.monotonic() + PATIENCE
        while not right() and time.monotonic() < end:  # noqa: ASYNC110 - a chat rings no bell
            await asyncio.sleep(PAUSE)

    async def _called(self, name: str, kind: str = "call") -> str:
        """The proposal that asks for what is called so; empty where the turn was given up instead."""
        found = await self._nods.until(
            f"SELECT id FROM proposal WHERE {_CALLED} UNION ALL SELECT 'given up' WHERE NOT EXISTS "
            f"(SELECT 1 FROM proposal WHERE {_CALLED}) AND EXISTS (SELECT 1 FROM turn "
            "WHERE state = 'failed' AND conversation_id IN "
            "(SELECT conversation_id FROM message WHERE text LIKE :told) AND id = "
            "(SELECT max(id) FROM turn AS last WHERE last.conversation_id = turn.conversation_id))",
            kind=kind,
            named=f'%"{name}"%',
            told=f"%{name}",
        )
        return "" if found == "given up" else found

    async def _asked(self, tool: str, name: str, dice: random.Random, many: int = 1) -> list[str]:
        """The cards that a message led to; none where its turn was given up."""
        began = time.monotonic()
        conversation = await self._say(f"{tool} {name}", dice)
        found = await self._cards(conversation, many)
        if found:
            self._nods.figures.parked.append(time.monotonic() - began)
        return found

    async def _cards(self, conversation: str, many: int, lacking: str = "") -> list[str]:
        """Once there are so many; none where the turn was given up instead.

        ``lacking``: a tool of a server, which a turn may have to do without: it waits 5 s for its list.
        """
        found = await self._nods.until(
            "SELECT CASE WHEN (SELECT count(*) FROM proposal WHERE conversation_id = :conversation) >= "
            f"{many} THEN 'cards' WHEN EXISTS (SELECT 1 FROM turn WHERE conversation_id = :conversation "
            "AND state = 'failed' AND id = (SELECT max(id) FROM turn "
            "WHERE conversation_id = :conversation)) THEN 'given up' "
            "WHEN :lacking <> '' AND EXISTS (SELECT 1 FROM message WHERE conversation_id = :conversation "
            "AND CAST(results AS text) LIKE :lacking) THEN 'lacking' END",
            conversation=conversation,
            lacking=lacking and f"%There is no tool called '{lacking}'%",
        )
        return await self._of(conversation) if found == "cards" else []

    async def _of(self, conversation: str) -> list[str]:
        """The ids of its proposals, oldest first."""
        return await self._nods.column(
            "SELECT id FROM proposal WHERE conversation_id = :conversation ORDER BY message_id, position",
            conversation=conversation,
        )

    async def _approved(self, ident: str, who: str, dice: random.Random) -> str:
        """Approve what it is now, until it is decided."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = await self._insist(dice, who, f"/api/proposals/{ident}", self._getting)
            if found["proposal"]["state"] != "proposed":
                return await self._end(ident)
            await self._press(who, "approve", ident, dice, round=found["proposal"]["round"])
        raise AssertionError(f"{ident} could not be decided")

    async def _timed(self, ident: str, *presses: Awaitable[object]) -> str:
        began = time.monotonic()
        await asyncio.gather(*presses)
        how = await self._end(ident)
        self._nods.figures.ended.append(time.monotonic() - began)
        return how

    async def _end(self, ident: str) -> str:
        return await self._nods.until(
            "SELECT CASE WHEN cause = 'outcome_unknown' THEN 'failed' ELSE state END FROM proposal "
            "WHERE id = :ident AND state NOT IN ('proposed', 'approved', 'executing')",
            ident=ident,
        )

    async def _say(
        self,
        words: str,
        dice: random.Random,
        conversation: str = "",
        file: bytes | None = None,
        who: str = "ana",
    ) -> str:
        """Send a message, sometimes to two processes in the same moment; gives its conversation."""
        body = {"message": words} | ({"conversation_id": conversation} if conversation else {})
        sent: dict[str, Any] = {"json": body}
        if file is not None:
            sent = {"data": body, "files": [("files", ("notes.txt", file))]}

        async def once(url: str, headers: dict[str, str]) -> Any:
            headers = headers | {"Idempotency-Key": words}
            async with self._client.stream("POST", url, **sent, headers=headers) as answer:
                if answer.status_code == HTTPStatus.CONFLICT:
                    return json.loads(await answer.aread())
                if answer.status_code == HTTPStatus.OK:
                    async for line in answer.aiter_lines():
                        return json.loads(line.removeprefix("data: "))  # the rest is in the rows
            return None

        many = 2 if dice.random() < 0.3 else 1
        answers = await asyncio.gather(*(self._insist(dice, who, "/api/chat", once) for _ in range(many)))
        self.accepted.append(words)
        self._nods.figures.messages += 1
        return str(answers[0]["conversation_id"])

    async def _press(self, who: str, verb: str, ident: str, dice: random.Random, **body: Any) -> None:
        path = f"/api/proposals/{ident}/{verb}"
        began = time.monotonic()
        answer = await self._insist(dice, who, path, self._posting(body, refusals=True))
        self._took(began)
        shown = (answer.get("proposal") or {}).get("state", "")
        self.told.append(Told(who, verb, ident, str(answer.get("answer", "refused")), shown))
        self._nods.figures.presses += 1

    def _posting(self, body: dict[str, Any], *, refusals: bool = False) -> Callable[..., Awaitable[Any]]:
        """``refusals``: they are answers, too."""

        async def once(url: str, headers: dict[str, str]) -> Any:
            answer = await self._client.post(url, json=body, headers=headers)
            if answer.is_client_error and not refusals:
                raise AssertionError(f"{url} refused: {answer.text}")
            return None if answer.is_server_error else answer.json()

        return once

    async def _deleting(self, url: str, headers: dict[str, str]) -> Any:
        answer = await self._client.delete(url, headers=headers)
        return None if answer.is_server_error else answer.json()

    async def _getting(self, url: str, headers: dict[str, str]) -> Any:
        answer = await self._client.get(url, headers=headers)
        return answer.json() if answer.is_success else None

    async def _insist(
        self, dice: random.Random, who: str, path: str, once: Callable[..., Awaitable[Any]]
    ) -> Any:
        """Ask one process after the other until one answers: those that are killed break off."""
        end = time.monotonic() + PATIENCE
        headers = {"Authorization": f"Bearer {TOKENS[who]}"}
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):
                if answer := await once(f"http://127.0.0.1:{self._nods.port(dice)}{path}", headers):
                    return answer
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"{path} was not answered in {PATIENCE:.0f} s")
