"""Limits on the work of one answer, one conversation and one person. Anything beyond is refused in words."""

from dataclasses import dataclass, field

from bot.domain.attachments import FileBounds

CALLS_PER_ANSWER = 100
QUESTIONS_PER_HOUR = 30


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """The number of proposals that one answer may still open, and the refusal of any beyond."""

    left: int
    words: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits on work.

    ``messages`` are those of one person in an hour, ``conversations`` those they start in a day; ``open_…``
    are proposals.

    ``turns_by_person``: in how many conversations the agent works for one person at the same time.

    Generous: only a runaway program reaches them, never a person who types.
    """

    messages: int = 3600
    conversations: int = 1000
    open_by_person: int = 2000
    open_in_conversation: int = 200
    turns_by_person: int = 10
    files: FileBounds = field(default_factory=FileBounds)

    def room(self, waiting_here: int, waiting_of_person: int) -> AnswerRoom:
        """Return the room of the next answer, by what waits in its conversation and for its person."""
        rooms = (
            AnswerRoom(
                self.open_in_conversation - waiting_here,
                f"Too much is waiting: a conversation may have {self.open_in_conversation:,} open proposals. "
                "Tell people to decide some first.",
            ),
            AnswerRoom(
                self.open_by_person - waiting_of_person,
                f"Too much is waiting: a person may have {self.open_by_person:,} open proposals. "
                "Tell them that some must be decided first.",
            ),
        )
        return min(rooms, key=lambda each: each.left)
