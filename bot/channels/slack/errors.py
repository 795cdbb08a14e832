"""Slack's refusals as Nod's errors, with sets of the codes that callers handle in a way of their own.

The code of a refusal is a word of Slack's, such as ``not_in_channel``; for a response without one it is
``http_`` and the status, such as ``http_503``.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.errors import ChannelError, CopyGone, NotDeliverable

RATE_LIMITED_CODE = "ratelimited"  # Slack limits the rate of such calls; the code of the Web API
_TEMPORARY_CODES = frozenset(
    {
        RATE_LIMITED_CODE,
        "external_channel_migrating",
        "fatal_error",
        "internal_error",
        "rate_limited",
        "request_timeout",
        "service_unavailable",
        "streaming_state_conflict",
        "team_added_to_org",
    }
)
"""Answers after which the same call may work later. The same holds for HTTP errors on Slack's side."""

_GONE_CODES = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""Refusals of an edit of a message that no longer exists, or can't be edited any longer."""

NO_REPLY_CODES = frozenset(
    {
        "cannot_reply_to_message",
        "restricted_action_non_threadable_channel",
        "restricted_action_thread_locked",
        "thread_not_found",
    }
)
"""Refusals of a reply in a thread; the channel itself may take it."""

CONTENT_CODES = frozenset(
    {
        "invalid_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_chunks",
        "invalid_markdown",
        "invalid_metadata_format",
        "markdown_text_conflict",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
    }
)
"""Refusals of a message's contents; the same place may take it in another form."""

DEAD_TOKEN_CODES = frozenset(
    {"account_inactive", "app_uninstalled", "invalid_auth", "not_authed", "token_expired", "token_revoked"}
)
"""Answers that mean: this workspace's token no longer works.

A single answer may be Slack's mistake, so `Workspaces` asks again before it stops using the workspace.
"""

_TOO_LATE_CODES = frozenset(
    {
        "expired_trigger_id",
        "exchanged_trigger_id",
        "invalid_trigger_id",
        "trigger_expired",
        "trigger_exchanged",
    }
)
"""Answers to a window that was opened more than three seconds after the press."""

_REASON_TEXTS = {  # the reason of a refusal, for people
    "channel_not_found": "the channel does not exist or Nod cannot see it; invite Nod there",
    "is_archived": "the channel is archived",
    "not_in_channel": "Nod is not in the channel; invite it there",
    "missing_scope": "the Slack app lacks a scope; `nod doctor` says which",
    "invalid_auth": "the Slack token is not valid; set SLACK_BOT_TOKEN to the one of your app",
    "token_revoked": "the Slack token was revoked; install the app again",
    "account_inactive": "the Slack app was removed from the workspace; install it again",
    "restricted_action": "a setting of the workspace does not let Nod write there",
    "restricted_action_read_only_channel": "only some people may write in the channel",
    "restricted_action_thread_locked": "the thread is locked",
    "thread_not_found": "the thread was deleted",
    "user_disabled": "the account was deactivated",
    "user_not_in_channel": "they are not in the channel",
    "messages_tab_disabled": "the app's Messages tab is off; turn it on under App Home",
    "file_not_found": "the file was deleted, or Nod can't see it",
    "file_deleted": "the file was deleted",
    RATE_LIMITED_CODE: "Slack asks us to slow down",
}


def is_temporary(code: str) -> bool:
    """Tell if a refusal is temporary, so that the same call may succeed later."""
    if code in _TEMPORARY_CODES or code in ("http_408", "http_429"):  # a timeout, too many requests
        return True
    # a fault of Slack's server, or an answer that is not JSON
    return code.startswith("http_") and not code.startswith("http_4")


def may_have_succeeded(error: Exception) -> bool:
    """Tell if Slack may have carried out the call for which the client raised this error."""
    if not isinstance(error, SlackApiError):
        return True  # no answer arrived
    code = code_of(error)
    return is_temporary(code) and code != RATE_LIMITED_CODE


def code_of(error: SlackApiError) -> str:
    """Return Slack's code of a refusal, such as ``not_in_channel``; otherwise the HTTP status."""
    try:
        answer = error.response.get("error")
    except (AttributeError, ValueError):  # a body that was no JSON
        answer = None
    return str(answer or f"http_{getattr(error.response, 'status_code', 0)}")


def code_behind(error: ChannelError) -> str | None:
    """Return Slack's code of the refusal behind ``error``; None when Slack did not answer."""
    cause = error.__cause__
    if isinstance(cause, SlackApiError):
        return code_of(cause)
    return None


def describe_for_presser(error: ChannelError) -> str:
    """Return the words for a person whose press did nothing, because Slack refused the answer to it."""
    if code_behind(error) in _TOO_LATE_CODES:
        return "That took too long. Press again."
    return "Slack did not accept my answer. Nothing was decided. Press again."


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn the client's errors into ChannelError, NotDeliverable or CopyGone."""
    try:
        yield
    except SlackApiError as error:
        code = code_of(error)
        words = f"Slack refused ({code})"
        if code in _REASON_TEXTS:
            words = f"{words}: {_REASON_TEXTS[code]}"
        if code in _GONE_CODES:
            raise CopyGone(words) from error
        kind = ChannelError if is_temporary(code) or code in DEAD_TOKEN_CODES else NotDeliverable
        raise kind(words) from error
    except (SlackClientError, aiohttp.ClientError, OSError) as error:
        raise ChannelError(f"Slack could not be reached: {str(error) or type(error).__name__}") from error
