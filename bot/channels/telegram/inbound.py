"""Incoming messages of Telegram: the messages for Nod are found and handed to the core.

`Inbound.handle` takes each message. In private every message is for Nod, in a group a mention, a reply or a
command (``reading.py``). Messages between people in a group are stored, and given to the model with the next
message for Nod (``group_history.py``). People who are not admitted are turned away (``admission.py``).

A message for Nod is one of four:

- a command
- a reply in a dialogue, in which Nod asks one person for an edit or a reason (``forms.py``)
- the answer to a question of the agent
- a request: any other text or file
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from telegram import Message, Update, User
from telegram.constants import ChatType

from bot.channels.base import Lookup
from bot.channels.telegram import commands
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.buttons import make_link_keyboard
from bot.channels.telegram.chat_cards import ShownCards
from bot.channels.telegram.commands import TypedCommand
from bot.channels.telegram.dialogue import Participant
from bot.channels.telegram.forms import DialogueRunner
from bot.channels.telegram.group_history import Overheard
from bot.channels.telegram.markdown import from_markdown
from bot.channels.telegram.places import NAME, TelegramPlace
from bot.channels.telegram.reading import (
    actor_of,
    describe_attachment,
    files_of,
    find_ephemeral_target,
    format_for_model,
    has_content,
    is_meant_for,
    is_private_chat,
    place_of,
    read_words,
)
from bot.channels.telegram.stream import find_begin_time
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport, reference_of
from bot.domain import chat
from bot.domain.attachments import MAX_EARLIER_FILES, Upload
from bot.domain.cards import Card
from bot.domain.chat import Answer, Inbox, Reply
from bot.domain.events import STOPPED
from bot.domain.people import Actor
from bot.domain.text import format_group
from bot.domain.verbs import Verb
from bot.errors import NotDeliverable

STOPPED_DRAFT = "stopped_message_generation"
"""The kind of update that tells of a stopped draft (an unfinished answer), from Bot API 10.3 on."""
_UNREADABLE_TEXT = "I can't read that. Please say it in words."
_NOT_SEEN_TEXT = "I can't see {}. I'll go by your words."
_NO_EDITS_TEXT = "I don't read edited messages. Send the change as a new message."
_ANONYMOUS_TEXT = (
    "I can't tell who you are while you write as a chat. Write as yourself. "
    "Pick your own name next to the message field. "
    "An anonymous admin turns off Remain anonymous in their admin rights."
)
_WORDS_NEEDED_TEXT = "I can't take {} as an answer. Please answer in words. The question still waits."
_ASK_IN_PRIVATE_TEXT = (
    "The answer is for you alone, and I may not write to you yet. Open a chat with me and ask there."
)
_ONLY_ANSWERS_TEXT = "Only you and I see this. Reply to my question here, or write to me in the group."
_FILES_LEFT_TEXT = f"I read the newest {MAX_EARLIER_FILES} of the files here. Reply to what else matters."
_NO_COMMAND_TEXT = "I don't know this command. /help lists the ones I know."


@dataclass(frozen=True, slots=True)
class StoppedDraft:
    """The draft of an answer that a person stopped by Telegram's own button, in their private chat."""

    user_id: int
    name: str
    place: TelegramPlace
    begun_before: datetime  # a time shortly after the answer began, see `find_begin_time`

    @classmethod
    def read(cls, update: Update) -> "StoppedDraft | None":
        """Read an update of Bot API 10.3, which the library passes on as it came.

        None if its fields are not as documented at
        https://core.telegram.org/bots/api#messagegenerationstopped
        """
        stopped = _as_mapping(update.api_kwargs.get(STOPPED_DRAFT))
        chat_record = _as_mapping(stopped.get("chat"))
        chat_id, draft_id = chat_record.get("id"), stopped.get("draft_id")
        if not isinstance(chat_id, int) or not isinstance(draft_id, int):
            return None
        if chat_record.get("type") != ChatType.PRIVATE:
            return None
        begun_before = find_begin_time(draft_id)
        if begun_before is None:
            return None
        thread_id = stopped.get("message_thread_id")
        place = TelegramPlace(chat_id, thread_id if isinstance(thread_id, int) else None)
        names = (chat_record.get("first_name"), chat_record.get("last_name"))
        return cls(chat_id, " ".join(str(name) for name in names if name), place, begun_before)


@dataclass(frozen=True, slots=True)
class Inbound:
    """The handler of messages and commands, which also posts the core's replies to them.

    ``me`` is Nod's own account.
    """

    transport: Transport
    admission: Admission
    dialogue_runner: DialogueRunner
    inbox: Inbox
    lookup: Lookup
    shown_cards: ShownCards
    me: User
    is_written_in: Callable[[TelegramPlace], bool]  # True while Nod writes an answer there
    overheard: Overheard = field(default_factory=Overheard)

    async def handle(
        self, message: Message, event_id: str, album: Sequence[Message] = (), *, edited: bool = False
    ) -> None:
        """Handle a message or command. ``album``: all messages of its album, empty without one."""
        moves = self.transport.moves
        # a group that becomes a supergroup gets a new id, and tells it in both chats
        if message.migrate_to_chat_id is not None:
            await moves.remember_move(message.chat.id, message.migrate_to_chat_id)
            return
        if message.migrate_from_chat_id is not None:
            await moves.remember_move(message.migrate_from_chat_id, message.chat.id)
            return
        place = place_of(message, moves)
        user = message.from_user
        if place is None or user is None or not has_content(message):
            return
        if not any(is_meant_for(part, self.me) for part in album or (message,)):
            self.overheard.remember_message(place, message, self.me, album, edited=edited)
            return
        if message.sender_chat is not None:
            await self._reply(place, _ANONYMOUS_TEXT, message)
            return
        who = Participant(user, actor_of(user), place, ephemeral=find_ephemeral_target(message))
        if not await self.admission.admits(user.id, message.chat.id):
            may_be_from_decider = not edited and not message.forward_origin
            if not (may_be_from_decider and await self._take_from_decider(who, message)):
                await self.admission.turn_away(user, place)
        elif edited:
            if message.text or message.caption:  # a live location is edited all the time
                await self._reply(place, _NO_EDITS_TEXT, message)
        elif not user.is_bot:  # another bot gets no answer
            command = None
            if not message.forward_origin:  # a forwarded message is no command
                command = commands.read_command(read_words(message, self.me))
            if command is not None:
                await self._take_command(who, command, message)
            else:
                await self._take_message(who, message, event_id, album)

    async def _take_from_decider(self, participant: Participant, message: Message) -> bool:
        """Handle a message about a proposal by someone who is not admitted, but may decide that proposal.

        Such a message is a reply in a dialogue, ``/show ID`` or ``/cancel``. Returns False for any other
        message, and for any other person.
        """
        words = read_words(message, self.me)
        command = commands.read_command(words)
        proposal_id = ""
        if command is None or command.name == "cancel":  # about the person's open dialogue
            dialogue = await self.dialogue_runner.dialogues.load(participant)
            if dialogue and words:
                proposal_id = dialogue.proposal_id
        elif command.name == "show":
            proposal_id = command.arguments
        if not proposal_id or not await self.lookup.decides(proposal_id, participant.actor):
            return False
        if command is None:
            return await self.dialogue_runner.take_reply(
                participant, words, message.reply_to_message, message.message_id
            )
        await self._take_command(participant, command, message)
        return True

    async def _take_message(
        self, participant: Participant, message: Message, event_id: str, album: Sequence[Message]
    ) -> None:
        """Take a message as a reply in a dialogue, as the answer to a question, or as a request."""
        parts = album or [message]
        words = "\n".join(filter(None, (read_words(part, self.me) for part in parts)))
        replied = message.reply_to_message
        if not words and replied and await self._is_asked_for_words(participant, replied):
            await self._reply(
                participant.place, _WORDS_NEEDED_TEXT.format(describe_attachment(message)), message
            )
            return

        # first the files of the message to which it replies: a recording there is not this person's words
        files: list[Upload] = []
        if replied and replied.from_user != self.me:
            files += [file._replace(spoken=False) for file in files_of(replied)]
        for part in parts:
            files += files_of(part)
        attachment = describe_attachment(message)
        if not files and attachment:
            note = _NOT_SEEN_TEXT.format(attachment) if message.caption else _UNREADABLE_TEXT
            await self._reply(participant.place, note, message)
        if not words and not files:
            return
        may_be_answer = words and not message.forward_origin
        if may_be_answer and await self._take_answer(participant, words, message, files):
            return
        # only this person sees the message, and all would see the answer
        if participant.ephemeral is not None:
            await self._reply(participant.place, _ONLY_ANSWERS_TEXT, message)
            return
        await self._take_request(participant, words, message, event_id, files)

    async def _take_answer(
        self, participant: Participant, text: str, message: Message, files: Sequence[Upload]
    ) -> bool:
        """Take a message as a reply in a dialogue, or as the answer to a question; False if it is neither."""
        replied = message.reply_to_message
        if await self.dialogue_runner.take_reply(participant, text, replied, message.message_id):
            return True
        if files:  # the answer to a question is a text alone
            return False
        question = await self._find_question(participant, replied)
        if question is None:
            return False
        press = participant.make_press(Verb.ANSWER, question.proposal_id, question.round, reason=text)
        reply = await self.inbox(press)
        if reply.text:
            await self._reply(participant.place, reply.text, message)
        return True

    async def _take_request(
        self, participant: Participant, text: str, message: Message, event_id: str, files: Sequence[Upload]
    ) -> None:
        """Hand a message to the core, with the messages between people in the group before it."""
        known_refs = {file.ref for file in files}
        earlier_files = [
            file for file in self.overheard.choose_files(participant.place) if file.ref not in known_refs
        ]
        has_unread_files = self.overheard.has_unread_files(participant.place)
        request = chat.Message(
            participant.place.address,
            participant.actor,
            format_group(
                self.overheard.list_messages(participant.place), format_for_model(message, text, self.me)
            ),
            event_id,
            private=is_private_chat(message.chat),
            names=participant.place.make_names(message.chat.title),
            files=(*files, *earlier_files),
        )
        reply = await self.inbox(request)
        if has_unread_files and reply.answer is Answer.ACCEPTED:
            await self._reply(participant.place, _FILES_LEFT_TEXT, message)
        if reply.answer in (Answer.ACCEPTED, Answer.DUPLICATE):
            self.overheard.forget(participant.place)
        elif reply.text:
            await self._reply(participant.place, reply.text, message)

    async def _is_asked_for_words(self, participant: Participant, replied: Message) -> bool:
        """Tell if a message asks this person for text: in a dialogue, or as the card of an open question."""
        if replied.from_user != self.me:
            return False
        if await self.dialogue_runner.waits_for_reply(participant, replied):
            return True
        return await self._find_question(participant, replied) is not None

    async def _find_question(self, participant: Participant, replied: Message | None) -> Card | None:
        """Return the open question whose card a person replied to, if they may answer it."""
        if replied is None or replied.from_user != self.me:
            return None
        proposal_id = await self.shown_cards.find_proposal_id(reference_of(replied))
        if not proposal_id:
            return None
        card = await self.lookup.card(proposal_id, participant.actor, participant.place.address)
        if card is None or not (card.pending and card.kind.is_answer):
            return None
        if not await self.lookup.may_press(
            card.proposal_id, participant.actor, participant.place.address, Verb.ANSWER
        ):
            return None
        return card

    async def stop(self, update: Update) -> None:
        """Stop the answer whose draft a person stopped, as ``/stop`` does, and no later one."""
        stopped = StoppedDraft.read(update)
        if stopped is None:
            return
        if not await self.admission.admits(stopped.user_id, stopped.place.chat_id):
            return
        actor = Actor(NAME, str(stopped.user_id), stopped.name)
        command = chat.Command(actor, "stop", "", stopped.place.address, begun_by=stopped.begun_before)
        reply = await self.inbox(command)
        if reply.text and reply.text != STOPPED:  # the answer itself shows that it was stopped
            await self.transport.send(stopped.place, from_markdown(reply.text))

    async def _take_command(self, participant: Participant, typed: TypedCommand, message: Message) -> None:
        """Carry out a command, and post its reply: in the person's private chat if it is confidential."""
        is_bare_cancel = typed.name == "cancel" and not typed.arguments
        if is_bare_cancel and await self.dialogue_runner.cancel(participant):
            return
        if not typed.is_known:
            await self._reply(participant.place, _NO_COMMAND_TEXT, message)
            return
        if typed.name in ("start", "help"):
            allow_list = self.admission.allow_list
            is_admin = participant.user.id in allow_list.admins
            is_decider = is_admin or participant.user.id in allow_list.approvers
            text = commands.write_introduction(
                typed, is_admin=is_admin, is_decider=is_decider, notice=self.lookup.notice
            )
            await self.transport.send(participant.place, plain(text), ephemeral=participant.ephemeral)
            return
        if typed.name == "new":
            self.overheard.forget(participant.place)
        mentioned = [entity.user for entity in message.entities if entity.user]
        names_of_people = {str(actor_of(user)): user.full_name for user in mentioned}
        names = {**participant.place.make_names(message.chat.title), **names_of_people}
        is_private = is_private_chat(message.chat)
        command = typed.make_command(
            participant.actor, participant.place.address, private=is_private, names=names
        )
        was_writing = self.is_written_in(participant.place)
        reply = await self.inbox(command)
        if was_writing and reply.text == STOPPED:
            return  # the answer itself shows that it was stopped
        if reply.answer is Answer.INVALID:  # the text says how to write the command
            reply = replace(reply, text=typed.rewrite_usage(reply.text))
        if participant.place.is_private or not (typed.is_confidential or reply.is_private):
            await self._post_reply(participant, reply, participant.place, message.message_id)
            return
        try:
            await self._post_reply(participant, reply, TelegramPlace(participant.user.id))
        except NotDeliverable:
            await self._reply(participant.place, _ASK_IN_PRIVATE_TEXT, message)

    async def _post_reply(
        self, participant: Participant, reply: Reply, place: TelegramPlace, reply_to: int | None = None
    ) -> None:
        """Post the reply, then copies of the cards that it names."""
        if reply.text:
            ephemeral = participant.ephemeral if place == participant.place else None
            text, link = reply.split_link()
            await self.transport.send(
                place,
                from_markdown(text),
                make_link_keyboard(link),
                reply_to=reply_to,
                ephemeral=ephemeral,
            )
        for proposal in reply.proposals:
            card = await self.lookup.card(proposal.id, participant.actor, together=True)
            if card is not None:
                await self.shown_cards.post_copy(card, place, self.lookup, participant.actor)

    async def _reply(self, place: TelegramPlace, text: str, message: Message) -> None:
        ephemeral = find_ephemeral_target(message)
        await self.transport.send(place, plain(text), reply_to=message.message_id, ephemeral=ephemeral)


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
