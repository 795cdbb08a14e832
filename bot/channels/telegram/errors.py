"""What Telegram refuses, as Nod's own errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, TelegramError

from bot.errors import ChannelError, CopyGone, NotDeliverable

_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "message to delete not found",
    "message to be replied not found",
    "message to reply not found",
)


class Moved(ChannelError):
    """The chat has another id now."""

    def __init__(self, to: int) -> None:
        super().__init__("The group became a supergroup.")
        self.to = to


@contextmanager
def translated() -> Iterator[None]:
    """Raise Telegram's refusals as Nod's own errors; ignore the two that aren't failures."""
    try:
        yield
    except Forbidden as error:
        raise NotDeliverable(f"Telegram: {error.message}") from error
    except BadRequest as error:
        said = error.message.lower()
        if "message is not modified" in said or "query is too old" in said:
            return
        kind = (
            CopyGone if any(w in said for w in _GONE) else NotDeliverable
        )  # the same would be refused again
        raise kind(f"Telegram: {error.message}") from error
    except ChatMigrated as error:
        raise Moved(error.new_chat_id) from error
    except InvalidToken as error:  # its message may hold the token
        raise ChannelError("Telegram does not know this bot token or this method.") from error
    except TelegramError as error:
        raise ChannelError(f"Telegram: {error.message}") from error
