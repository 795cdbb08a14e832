"""What may be pressed below a text of Nod's own: words that the person who presses them then says.

A press is an ordinary `Message`, so it counts as what was typed. The text itself says what to send, for
places without buttons and for choices that fit none.
"""

from collections.abc import Iterable

from bot.domain.chat import Address, Answer, Message, Reply
from bot.domain.people import Actor, Names

_MOST = 5
_MARK = "nod:say:"
_BYTES = 64  # of what a button carries; Telegram takes the fewest
_ALREADY = "This was pressed already."


def offered(choices: Iterable[str]) -> list[tuple[str, str]]:
    """The label of each button and what it carries, where that fits."""
    marked = [(words, f"{_MARK}{words}") for words in dict.fromkeys(choices)]
    return [(words, mark) for words, mark in marked if chosen(mark)][:_MOST]


def chosen(mark: str) -> str | None:
    """The words a button stands for; None for any other button."""
    words = mark.removeprefix(_MARK)
    fits = mark.startswith(_MARK) and words.strip() and len(mark.encode(errors="replace")) <= _BYTES
    return words if fits else None


def said(words: str, ref: str, actor: Actor, at: Address, *, private: bool, names: Names) -> Message:
    """What was pressed below the message ``ref``, as the one who pressed says it; only once."""
    return Message(at, actor, words, f"{ref} {_MARK}{words}", private, names=names)


def refusal(reply: Reply) -> str:
    """What the one who pressed is told; empty where it was taken in."""
    if reply.answer is Answer.ACCEPTED:
        return ""
    return _ALREADY if reply.answer is Answer.DUPLICATE else reply.text
