"""A person's conversations, for channels that list and show them: what was said, by whom, and what runs.

The console and the API are such channels; a chat platform shows its conversations itself. In these channels
the address of a conversation is made of the person's account, so `ConversationLookup.find_own` checks by the
address that a conversation is the person's. The other methods don't check that.
"""

from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import forgetting
from bot.approvals.lookup.proposals import ProposalLookup, VisibleProposal
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Conversation, Transcript, TurnEnd
from bot.domain.files import File
from bot.domain.people import Actor
from bot.domain.proposal_lists import PageCursor
from bot.domain.teams import TeamStatus
from bot.store import conversations, messages, outputs, proposals, teams, transcripts, turns
from bot.store.database import Database
from bot.store.outputs import ListedFile
from bot.tools.registry import Registry


class ListedConversation(NamedTuple):
    """A conversation in a list."""

    conversation: Conversation
    waiting: int  # the number of open proposals


class ConversationLookup:
    """Queries about conversations, and the two changes that people make to them."""

    def __init__(
        self, database: Database, registry: Registry, proposal_lookup: ProposalLookup, clock: Clock
    ) -> None:
        self._database = database
        self._registry = registry
        self._proposal_lookup = proposal_lookup
        self._clock = clock

    async def find_own(self, conversation_id: str, address: Address) -> Conversation | None:
        """Return the conversation if it is at this address and not deleted, else None."""
        conversation = await self._database.read(conversations.get_conversation, conversation_id)
        if conversation and not conversation.deleted and conversation.address == address:
            return conversation
        return None

    async def is_deleted(self, conversation_id: str) -> bool:
        conversation = await self._database.read(conversations.get_conversation, conversation_id)
        return conversation is not None and conversation.deleted

    async def page(
        self, channel: str, actor: Actor, limit: int, before: PageCursor | None, text: str = ""
    ) -> tuple[list[ListedConversation], PageCursor | None]:
        """Return a page of a person's conversations in a channel, newest first, and its end.

        ``before``: the end of the page before, None for the first page. ``text`` filters by title and
        messages. The end is None on the last page.
        """

        def read_page(session: Session) -> tuple[list[ListedConversation], PageCursor | None]:
            # one more than the page needs tells if there is a next page
            found = conversations.list_conversations_of(session, channel, str(actor), limit + 1, before, text)
            page = found[:limit]
            page_end = None
            if len(found) > limit:
                page_end = PageCursor(page[-1].created_at, page[-1].id)
            counts = conversations.count_waiting_proposals(
                session, [conversation.id for conversation in page]
            )
            listed = [
                ListedConversation(conversation, counts.get(conversation.id, 0)) for conversation in page
            ]
            return listed, page_end

        return await self._database.read(read_page)

    async def rename(self, conversation_id: str, title: str) -> None:
        await self._database.write(conversations.rename_conversation, conversation_id, title)

    async def forget_conversation(self, conversation_id: str) -> int:
        """Delete the messages in a conversation and its teammates', unless proposals are open.

        Returns the number of open proposals: 0 if the messages were deleted.
        """
        return await self._database.write(forgetting.forget_conversation, conversation_id, self._clock())

    async def transcript(self, conversation_id: str) -> Transcript | None:
        """Return the last lines of a conversation in reading order."""
        return await self._database.read(transcripts.read_transcript, conversation_id, messages.SHOWN_LINES)

    async def read_in_full(
        self, conversation_id: str, actor: Actor
    ) -> tuple[Transcript | None, list[VisibleProposal]]:
        """Return all lines of a conversation and its proposals that this person may see, in one read."""
        available = await self._registry.load_tools()

        def read_all(session: Session) -> tuple[Transcript | None, list[VisibleProposal]]:
            all_proposals = proposals.list_of_conversation(session, conversation_id)
            transcript = transcripts.read_transcript(session, conversation_id, limit=None)
            visible = self._proposal_lookup.filter_visible(session, all_proposals, actor, available)
            return transcript, visible

        return await self._database.read(read_all)

    async def files(self, conversation_id: str) -> list[tuple[str, str]]:
        """Return the handle and name of each stored output of its tools, newest first."""
        return await self._database.read(outputs.list_handles, conversation_id)

    async def files_of(self, channel: str, actor: Actor, limit: int) -> list[ListedFile]:
        """Return the newest files of the conversations that one account began in a channel."""
        return await self._database.read(outputs.list_of_owner, channel, str(actor), limit)

    async def file(self, conversation_id: str, handle: str) -> File | None:
        """Return a stored output by its handle; None if the conversation has no such output."""
        return await self._database.read(outputs.load_file, conversation_id, handle)

    async def team(self, conversation_id: str) -> TeamStatus:
        """Return the state of the teammates that a conversation's agent started."""
        return await self._database.read(teams.load_status, conversation_id)

    async def find_by_event(self, channel: str, event_id: str) -> str | None:
        """Return the id of the conversation in which an event was stored, or None."""
        return await self._database.read(messages.find_conversation_of_event, channel, event_id)

    async def last_answer(self, conversation_id: str) -> int | None:
        """Return the id of the agent's last line in a conversation, or None."""
        return await self._database.read(messages.find_last_answer, conversation_id)

    async def has_open_turn(self, conversation_id: str) -> bool:
        """Tell if a turn of the agent is requested or under way in a conversation."""
        return await self._database.read(turns.load_turn, conversation_id) is not None

    async def newest_end(self, conversation_id: str) -> TurnEnd | None:
        """Return the end of the turn that ended last; None if no turn has ended."""
        return await self._database.read(turns.find_newest_end, conversation_id)

    async def is_at_rest(self, conversation_id: str) -> bool:
        """Tell if no turn of the agent or its teammates is under way, and no approved call still runs."""

        def read_rest(session: Session) -> bool:
            teammates = teams.list_of_lead(session, conversation_id)
            ids = (conversation_id, *(teammate.id for teammate in teammates))
            return not turns.is_under_way(session, ids)

        return await self._database.read(read_rest)
