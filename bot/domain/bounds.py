"""How much one answer, one conversation and one person may ask for. Anything beyond is refused in words."""

from dataclasses import dataclass, field

from bot.domain.attachments import FileBounds

CALLS_PER_ANSWER = 100
QUESTIONS_PER_HOUR = 30


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """How many more proposals one answer may open, and what is said to the model about those beyond."""

    left: int
    words: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """``messages`` of one person in an hour, ``conversations`` they start in a day; ``open_…``: proposals.

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
        """For the next answer, by what waits in its conversation and what its person asked for anywhere."""
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
