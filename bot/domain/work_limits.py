"""Limits on the work of one answer, one conversation and one person, against programs that run away.

They are generous: a person who types never reaches them. Anything beyond a limit is refused in words.
"""

from dataclasses import dataclass, field

from bot.domain.attachments import FileBounds

CALLS_PER_ANSWER = 100
QUESTIONS_PER_HOUR = 30


@dataclass(frozen=True, slots=True)
class AnswerRoom:
    """The number of proposals that one answer of the agent may still open."""

    proposals_left: int  # 0 or less: none
    refusal: str  # the refusal of any proposal beyond


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits on work."""

    messages: int = 3600  # of one person in an hour
    conversations: int = 1000  # that one person starts in a day
    open_by_person: int = 2000  # open proposals that one person asked for
    open_in_conversation: int = 200  # open proposals
    turns_by_person: int = 10  # conversations in which the agent works for one person at the same time
    files: FileBounds = field(default_factory=FileBounds)

    def find_room(self, waiting_here: int, waiting_of_person: int) -> AnswerRoom:
        """Return the room of the next answer, by the open proposals of its conversation and of its person."""
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
        return min(rooms, key=lambda each: each.proposals_left)
