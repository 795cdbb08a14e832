"""A table of words behind one slash command, with help and the near word for a wrong one."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.domain.chat import Answer, Command, Reply
from bot.domain.proposals import Proposal
from bot.errors import NodError


@dataclass(frozen=True, slots=True)
class Told:
    """An answer with the proposals it is about, whose cards a channel may show, and how it was taken."""

    text: str
    proposals: tuple[Proposal, ...] = ()
    answer: Answer = Answer.ACCEPTED


Do = Callable[[Command, str], Awaitable[str | Told]]


class Misspoken(NodError):
    """The words of a command do not fit; the message says how they go."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word: how it is used, what it means, and what does it (given what follows the word)."""

    usage: str
    meaning: str
    do: Do


class Words:
    """The words of ``/<name>``. ``help`` is always one of them."""

    def __init__(self, name: str, words: Mapping[str, Word]) -> None:
        self._name = name
        self._words = {"help": Word("help", "this list", self._help), **words}

    async def answer(self, command: Command) -> Reply:
        """Do what the words say. An unknown word changes nothing and gets help, the near word first."""
        name, _, rest = command.text.strip().partition(" ")
        word = self._words.get(name.lower() or "help")
        if word is None:
            near = difflib.get_close_matches(name.lower(), self._words, 1)
            hint = f" Did you mean `/{self._name} {self._words[near[0]].usage}`?" if near else ""
            return Reply(Answer.INVALID, f"I do not know `{name[:40]}`.{hint}\n\n{self.help}")
        try:
            said = await word.do(command, rest.strip())
        except Misspoken as error:
            return Reply(Answer.INVALID, f"{error.message}\nIt goes like this: `/{self._name} {word.usage}`")
        told = said if isinstance(said, Told) else Told(said)
        return Reply(told.answer, told.text, told.proposals)

    @property
    def help(self) -> str:
        return "\n".join(f"- `/{self._name} {w.usage}`: {w.meaning}" for w in self._words.values())

    async def _help(self, _: Command, __: str) -> str:
        return self.help
