"""The errors of a call of an MCP server: what each says about whether the call was carried out."""

from mcp import MCPError, types

from bot.errors import ToolError, ToolTimedOut
from bot.telemetry.logs import logger
from bot.tools.mcp.address import NO_ANSWER_CODE, NOT_TAKEN_CODE, SESSION_REFUSED_CODE, SIGN_IN_REFUSED_CODE
from bot.tools.mcp.answers import UNREADABLE_CODE
from bot.tools.mcp.catalogue import describe_error, is_connection_closed
from bot.tools.mcp.config import ServerConfig
from bot.tools.mcp.line import ServerLine

log = logger(__name__)

# servers use these codes for errors before a call and after it, so it may have been carried out
_MAYBE_DONE_CODES = frozenset({
    types.CONNECTION_CLOSED,  # many SDKs send it for any error of a server
    types.REQUEST_TIMEOUT,
    types.INTERNAL_ERROR,
    types.PARSE_ERROR,
    types.INVALID_REQUEST,
})  # fmt: skip
# after an error with one of these codes it is certain that nothing was done
_NOT_DONE_CODES = frozenset({SIGN_IN_REFUSED_CODE, SESSION_REFUSED_CODE, NOT_TAKEN_CODE})


class SessionLostError(Exception):
    """The server refused the session of a call, so nothing was done. The call is sent in a new session."""


class SessionMayBeLostError(SessionLostError):
    """The server may have refused the session of a call that only reads, so the call is sent again, too.

    ``text``: the server's error, for people.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def explain_error(config: ServerConfig, error: MCPError, line: ServerLine, *, writes: bool) -> Exception:
    """Return the error to raise for a call that the server answered with an error."""
    name = config.name
    words = describe_error(config, error)

    # errors after which it is certain that nothing was done, or that may be repeated
    if error.code == SESSION_REFUSED_CODE:
        return SessionLostError()
    if not writes and line.has_lost_session:
        return SessionMayBeLostError(f"{name} says: {words}")
    if error.code in _NOT_DONE_CODES:
        return make_unavailable(config, words)

    # no answer: a write may have been carried out
    if error.code == NO_ANSWER_CODE or is_connection_closed(error):
        log.warning("an mcp server gave no answer", server=name, why=words, code=error.code)
        if writes:
            return ToolTimedOut(f"{name} ended before it answered ({words}).")
        return make_unavailable(config, words)
    if error.code == UNREADABLE_CODE:
        return explain_unreadable(config, words, writes=writes)

    # the server's own error, by which a tool usually says that it failed
    if not writes or error.code not in _MAYBE_DONE_CODES:
        return ToolError(f"{name} says: {words}")
    log.warning("an mcp server does not say what was done", server=name, why=words, code=error.code)
    return ToolTimedOut(f"{name} says: {words}. It does not say what was done.")


def explain_unreadable(config: ServerConfig, words: str, *, writes: bool) -> ToolError:
    """Return the error for an unreadable answer; a write may have been carried out."""
    log.warning("an mcp server answered badly", server=config.name, why=words)
    message = f"{config.name} gave an answer that can't be read ({words})."
    if writes:
        return ToolTimedOut(message)
    return ToolError(message)


def make_unavailable(config: ServerConfig, why: str) -> ToolError:
    """Return the error for a call that did nothing, because the server is unavailable."""
    return ToolError(f"{config.name} is unavailable right now ({why}). Nothing was done; try later.")
