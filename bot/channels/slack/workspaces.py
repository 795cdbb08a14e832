"""The workspaces with Nod: the token and client of each, and what Slack knows of its people and user groups.

An installation of Nod is for one workspace, or for an organisation with all its workspaces; "team" is the id
of either (``T1``, ``E1``). Nod's own installation is that of the bot token in the settings; the others are
rows that the install flow stored (``install.py``). `Workspaces` finds the installation of a request or an
address, and asks Slack about people; answers are cached. `Client` extends the SDK's client. It waits where
Slack limits the rate, and translates the ids of channels that Slack has replaced (``moved_chats.py``).
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import aiohttp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncAuthorize
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.channels.connecting import MAX_CALL_WAIT_SECONDS, PlatformWaits
from bot.channels.slack.errors import (
    DEAD_TOKEN_CODES,
    RATE_LIMITED_CODE,
    code_of,
    is_temporary,
    translate_errors,
)
from bot.channels.slack.installations import find_bot, list_installation_ids
from bot.channels.slack.moved_chats import ChannelMoves
from bot.channels.slack.places import NAME, actor_of
from bot.channels.slack.rows import end_installation, find_team_of_bot, find_workspace
from bot.channels.slack.text import one_line
from bot.domain.chat import Clock
from bot.domain.people import Actor, Membership, UserGroup
from bot.domain.times import find_zone
from bot.errors import ChannelError, NotDeliverable
from bot.settings import Settings
from bot.store.database import Database

_CACHE_LIFETIME = timedelta(hours=1)  # of Slack's answers
_RETRY_AFTER = timedelta(minutes=1)  # the time after which Slack is asked again if it gave no answer
_MAX_GROUP_MEMBERS = 1000  # the members of a user group that decides
_MAX_WORKSPACES = 100  # the workspaces of an organisation that are asked for a user group
_PROFILE_SECONDS = 1.0  # Slack waits 3 s for an acknowledgement
_MAX_CACHED_USERS = 10_000
_MAX_NAME_CHARS = 80
_MAX_RATE_LIMIT_WAITS = 2  # the waits of one call
_UNKNOWN_USER_CODES = frozenset({"user_not_found", "user_not_visible", "users_not_found"})
_UNKNOWN_GROUP_CODES = frozenset({"no_such_subteam", "subteam_not_found"})
_POSTING_METHODS = frozenset(
    {
        "chat.postMessage",
        "chat.postEphemeral",
        "chat.startStream",
        "chat.appendStream",
        "files.completeUploadExternal",
    }
)
"""Methods that post something: called twice they would post it twice."""

sdk_logger = logging.getLogger("bot.slack.sdk")
sdk_logger.setLevel(logging.WARNING)  # an explicit level: the SDK formats its debug lines at NOTSET

_time_budget: ContextVar[float] = ContextVar("time_budget", default=MAX_CALL_WAIT_SECONDS)
"""The seconds for which a call may wait if Slack limits the rate; set by `limit_time`."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace that installed Nod, or an organisation that installed Nod for all its workspaces.

    ``team`` is the installation's id in addresses, accounts and rows: ``T…``; ``E…`` for an organisation.
    """

    team: str
    token: str
    bot_id: str
    bot_user: str
    enterprise: str = ""  # the organisation that installed Nod for all its workspaces; empty for a workspace

    def is_bot(self, bot: str, user: str) -> bool:
        """Tell if this is Nod's bot here, by the bot's id or, where Slack names none, by its account."""
        if bot:
            return bot == self.bot_id
        return user == self.bot_user


@asynccontextmanager
async def limit_time(seconds: float) -> AsyncIterator[None]:
    """Limit the calls to Slack in this context to a time, including the waits that Slack imposes.

    Raises TimeoutError when the time is over. A call that would have to wait longer fails right away.
    """
    token = _time_budget.set(seconds)
    try:
        async with asyncio.timeout(seconds):
            yield
    finally:
        _time_budget.reset(token)


class Client(AsyncWebClient):
    """Slack's client, which waits as long as Slack asks for.

    It waits for at most `MAX_CALL_WAIT_SECONDS`, or for the time of `limit_time`.
    """

    end_if_refused: Callable[[str], Awaitable[bool]] | None = None
    """Called with a code of `DEAD_TOKEN_CODES`; returns True if the token really no longer works."""
    waits = PlatformWaits("slack")  # the waits that Slack imposes, shared by all processes
    team = ""  # the installation that the token belongs to
    moves: ChannelMoves | None = None  # translates the ids of channels

    async def api_call(self, api_method: str, **kwargs: Any) -> AsyncSlackResponse:
        """Call Slack as the SDK does, with the ids of channels that Slack knows today."""
        if self.moves is None:
            return await self._call(api_method, **kwargs)
        for key in ("json", "params"):
            if key in kwargs:
                kwargs[key] = self.moves.to_slack(self.team, kwargs[key])
        answer = await self._call(api_method, **kwargs)
        if isinstance(answer.data, dict):
            answer.data = self.moves.from_slack(self.team, answer.data)
        return answer

    async def _call(self, api_method: str, **kwargs: Any) -> AsyncSlackResponse:
        arguments = kwargs.get("json") or kwargs.get("params") or {}
        # Slack limits calls by workspace, method and channel
        limit_key = f"{self.team} {api_method} {arguments.get('channel', '')}"
        wait_count = 0
        while True:
            seconds_left = self.waits.count_seconds_left(limit_key)
            if seconds_left > _time_budget.get():
                raise _make_limit_error()
            await asyncio.sleep(seconds_left)
            try:
                return await super().api_call(api_method, **kwargs)
            except AttributeError as error:  # raised by the SDK for a 200 that is not JSON
                raise aiohttp.ClientPayloadError("its answer can't be read") from error
            except SlackApiError as error:
                seconds = _find_seconds_to_wait(error)
                if seconds is not None:
                    self.waits.note_wait(limit_key, seconds)
                    if wait_count < _MAX_RATE_LIMIT_WAITS:
                        wait_count += 1
                        continue
                code = code_of(error)
                if (
                    code in DEAD_TOKEN_CODES
                    and self.end_if_refused is not None
                    and await self.end_if_refused(code)
                ):
                    raise NotDeliverable(f"Slack no longer accepts the token ({code})") from error
                raise


def _make_limit_error() -> SlackApiError:
    response = {"ok": False, "error": RATE_LIMITED_CODE}
    return SlackApiError("Slack accepts no more of this for now.", response)  # type: ignore[no-untyped-call]


def _find_seconds_to_wait(error: SlackApiError) -> float | None:
    """Return the seconds until Slack takes the call again; None where it refused for another reason."""
    response = error.response
    if not isinstance(response, AsyncSlackResponse) or response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
        return None
    headers = {name.lower(): value for name, value in response.headers.items()}
    try:
        seconds = float(headers.get("retry-after", 1))
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(seconds) else seconds


class _RetryAfterServerError(AsyncServerErrorRetryHandler):
    """Tries again after a 5xx, unless the call may have posted something before it failed."""

    async def can_retry_async(self, *, request: HttpRequest, **arguments: Any) -> bool:
        return _may_repeat(request) and await super().can_retry_async(request=request, **arguments)


class _RetryAfterLostConnection(AsyncConnectionErrorRetryHandler):
    """Tries again after a lost connection, unless the call may have posted something before."""

    async def can_retry_async(self, *, request: HttpRequest, **arguments: Any) -> bool:
        return _may_repeat(request) and await super().can_retry_async(request=request, **arguments)


def _may_repeat(request: HttpRequest) -> bool:
    """Tell if a request is safe to repeat. Callers of the posting methods retry by themselves."""
    return request.url.rpartition("/")[2] not in _POSTING_METHODS


def make_client(
    settings: Settings, token: str | None, session: aiohttp.ClientSession | None = None
) -> Client:
    """Build a client that repeats calls after a fault of Slack, if they are safe to repeat."""
    root = settings.slack_api_url
    return Client(
        token=token,
        base_url=root if root.endswith("/") else f"{root}/",
        session=session,
        logger=sdk_logger,
        retry_handlers=[
            _RetryAfterLostConnection(),
            _RetryAfterServerError(max_retry_count=2),
        ],
    )


class _CachedProfile(NamedTuple):
    """Slack's record of a user, and the time until which it counts as recent."""

    profile: dict[str, Any]
    until: datetime


class _CachedName(NamedTuple):
    """A name or id that Slack told, and the time until which it holds."""

    name: str
    until: datetime


class _GroupMembers(NamedTuple):
    """The members of a user group, and its workspace, which only an organisation's token needs."""

    users: list[str]
    workspace: str | None  # None: the token is that of a workspace


class Workspaces(AsyncAuthorize):
    """Finds the workspace of a request or an address; bolt uses it for authorization, too."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._settings = settings
        self._database = database
        self._clock = clock
        self.waits = PlatformWaits("slack")
        self.moves = ChannelMoves(database, clock)
        self._own: Workspace | None = None  # the installation of the bot token in the settings
        self._is_own_refused = False  # True once Slack no longer accepts the token of the own installation
        self._clients: dict[str, Client] = {}
        self._session: aiohttp.ClientSession | None = None
        # caches of Slack's answers, some with the time until which they hold
        self._profiles: dict[tuple[str, str], _CachedProfile] = {}  # by team and user
        self._unanswered_at: dict[tuple[str, str], datetime] = {}
        """The time at which Slack last did not give a profile, by team and user."""
        self._profile_requests: dict[tuple[str, str], asyncio.Task[dict[str, Any]]] = {}  # by team and user
        self._handles: dict[tuple[str, str], _CachedName] = {}  # by team and user group
        self._organisations: dict[str, _CachedName] = {}  # by team
        self._group_workspaces: dict[tuple[str, str], str | None] = {}
        """The workspace in which an organisation's user group was last, by organisation and group."""

    async def open(self) -> None:
        """Ask Slack which workspace or organisation the bot token is for.

        Raises NotDeliverable if Slack refuses the token, ChannelError if it gives no answer.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        token = self._settings.slack_bot_token
        if token is None or self._own is not None:
            return
        client = make_client(self._settings, token.get_secret_value(), self._session)
        with translate_errors():
            response = await client.auth_test()
        organisation = organisation_of(response)
        self._own = Workspace(
            organisation or response["team_id"],
            token.get_secret_value(),
            response["bot_id"],
            response["user_id"],
            organisation,
        )

    @property
    def is_connecting(self) -> bool:
        """True if Slack has not yet said which workspace the bot token belongs to."""
        return self._own is None and self._settings.slack_bot_token is not None

    @property
    def is_refused(self) -> bool:
        """True if Slack no longer accepts the bot token of the settings."""
        return self._is_own_refused

    async def close(self) -> None:
        for request in list(self._profile_requests.values()):
            request.cancel()
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._clients.clear()

    async def find(self, team: str | None) -> Workspace | None:
        """Return the installation of a team, or None if Nod is not or no longer installed there."""
        if team is None:
            return None
        if self._own is not None and self._own.team == team:
            return None if self._is_own_refused else self._own
        if self._settings.slack_client_id is None:
            return None
        row = await self._database.read(find_workspace, team)
        if row is None:
            return None
        organisation = team if team.startswith("E") else ""
        return Workspace(row.team, row.token, row.bot_id, row.bot_user, organisation)

    async def find_for_request(self, body: Mapping[str, Any]) -> Workspace | None:
        """Return the installation that a signed request is for, or None without one.

        It is that of the bot that posted the pressed message or view, if the request names the bot. Otherwise
        it is the first installation of a team that the request names. The bot counts more: a team may be the
        person's own workspace, with another installation of Nod.
        """
        candidates = []
        for team in list_installation_ids(body):
            workspace = await self.find(team)
            if workspace is not None:
                candidates.append(workspace)
        # the installation of the bot, among those that the request names and Nod's own
        bot, user = find_bot(body)
        own = await self.find(self._own.team) if self._own is not None else None
        for workspace in (*candidates, own):
            if workspace is not None and workspace.is_bot(bot, user):
                return workspace
        # or any other stored installation of the bot
        if bot and self._settings.slack_client_id is not None:
            workspace = await self.find(await self._database.read(find_team_of_bot, bot))
            if workspace is not None:
                return workspace
        return candidates[0] if candidates else None

    async def bot_user(self, team: str) -> str:
        """Return Nod's own account in a workspace; empty where Nod is not installed."""
        workspace = await self.find(team)
        if workspace:
            return workspace.bot_user
        return ""

    async def client(self, team: str) -> Client:
        """Return the client of a workspace.

        Raises NotDeliverable if Nod is not installed there, ChannelError if Slack has not been reached yet.
        """
        workspace = await self.find(team)
        if workspace is None and self.is_connecting:
            raise ChannelError("Slack has not been reached yet")
        if workspace is None:
            raise NotDeliverable(f"Nod is not installed in the Slack workspace {team}; install it there")
        client = self._clients.get(team)
        if client is None or client.token != workspace.token:
            client = make_client(self._settings, workspace.token, self._session)
            client.end_if_refused = partial(self._end_after_refusal, team)
            client.waits = self.waits
            client.team = team
            client.moves = self.moves
            self._clients[team] = client
        return client

    async def _end_after_refusal(self, team: str, code: str) -> bool:
        return await self.end_if_refused(team, f"Slack answered {code}")

    async def end_if_refused(self, team: str, why: str) -> bool:
        """Ask Slack whether the token of a team still works, and stop using the installation if it doesn't.

        Returns True if the token no longer works. Slack is asked because a refusal may be a mistake, and an
        event about an end may come after a new installation. Without an answer nothing changes. ``why``: the
        refusal or the event, for the log.
        """
        workspace = await self.find(team)
        if workspace is None:
            return True
        try:
            await make_client(self._settings, workspace.token, self._session).auth_test()
        except SlackApiError as error:
            if code_of(error) in DEAD_TOKEN_CODES:
                sdk_logger.error("Slack workspace %s is off (%s). Install the app there again.", team, why)
                await self._mark_off(workspace, why)
                return True
        except (aiohttp.ClientError, OSError) as error:
            sdk_logger.warning("Slack did not say whether a token works: %s", error)
        return False

    async def _mark_off(self, workspace: Workspace, reason: str) -> None:
        """Stop using an installation, unless it has a newer token."""
        if self._own is not None and self._own.team == workspace.team:
            self._is_own_refused = True
        await self._database.write(end_installation, workspace.team, workspace.token, reason, self._clock())
        self._clients.pop(workspace.team, None)

    async def actor(self, team: str, user: str, *named_teams: object, name: str = "") -> Actor:
        """Return a person as an account of their own team, with their membership in ``team``.

        ``named_teams``: the teams that Slack named in the person's event. ``name`` is used if Slack gives
        none. Without a recent profile, Slack's record of the person, a member counts as UNKNOWN.
        """
        (profile, is_fresh), workspace = await asyncio.gather(self._load_profile(team, user), self.find(team))
        organisation = workspace.enterprise if workspace else ""
        membership, account_team = find_membership(profile, named_teams, team, organisation)
        if membership is Membership.MEMBER and not is_fresh:
            membership = Membership.UNKNOWN
        colleague = membership is Membership.OUTSIDER and await self._is_colleague(team, profile, named_teams)
        shown_name = _find_display_name(profile) or name
        return actor_of(account_team, user, shown_name, membership, is_colleague=colleague)

    async def _is_colleague(
        self, team: str, profile: Mapping[str, Any], named_teams: Iterable[object]
    ) -> bool:
        """Tell if an outsider belongs to the organisation of a team. It only affects their shown name."""
        enterprise = (profile.get("enterprise_user") or {}).get("enterprise_id")
        organisations = [name for name in (enterprise, *named_teams) if str(name or "").startswith("E")]
        if profile.get("is_stranger") or not organisations:
            return False
        return await self._load_organisation(team) in organisations

    async def _load_organisation(self, team: str) -> str:
        """Return the organisation of a workspace; empty without one, or if Slack never told.

        The answer is cached for an hour. If Slack can't be reached then, the old answer holds for a minute.
        """
        cached = self._organisations.get(team)
        if cached and cached.until > self._clock():
            return cached.name
        organisation = cached.name if cached else ""
        lifetime = _CACHE_LIFETIME
        try:
            async with limit_time(_PROFILE_SECONDS):
                client = await self.client(team)
                response = await client.auth_test()
            organisation = str(response.get("enterprise_id") or "")
        except (SlackApiError, ChannelError, aiohttp.ClientError, OSError) as error:
            sdk_logger.warning("Slack did not say of which organisation a workspace is: %s", error)
            lifetime = _RETRY_AFTER
        self._organisations[team] = _CachedName(organisation, self._clock() + lifetime)
        return organisation

    async def find_recipient(self, team: str, account_team: str, user: str) -> tuple[str, str]:
        """Return the workspace and the user id by which Slack knows the recipient of a stream.

        Slack takes no organisation's id for a recipient. So a person of an organisation is named by one of
        their workspaces in it.
        """
        workspace = await self.find(team)
        if workspace is None or not workspace.enterprise or account_team != team:
            return account_team, user
        profile, _ = await self._load_profile(team, user)
        enterprise_user = profile.get("enterprise_user") or {}
        for member_team in (profile.get("team_id"), *(enterprise_user.get("teams") or ())):
            if str(member_team).startswith("T"):
                return str(member_team), user
        return account_team, user

    async def time_zone(self, team: str, actor: Actor) -> ZoneInfo | None:
        """Return the time zone of a person's profile; None if Slack gives none.

        The profile is cached. Each step of a turn calls this method, so after a missing answer Slack is not
        asked again for a minute.
        """
        key = team, actor.key.partition("/")[2]
        cached = self._profiles.get(key)
        profile = cached.profile if cached else {}  # an old profile is good enough for a time zone
        unanswered_at = self._unanswered_at.get(key)
        if unanswered_at is None or abs(self._clock() - unanswered_at) >= _RETRY_AFTER:
            profile, _ = await self._load_profile(*key)
        try:
            return find_zone(str(profile.get("tz") or ""))
        except ValueError:
            return None

    async def _load_profile(self, team: str, user: str) -> tuple[dict[str, Any], bool]:
        """Return Slack's record of a user, and True if it is at most an hour old.

        The record is empty if Slack never gave one.
        """
        cached = self._profiles.get((team, user))
        if cached and cached.until > self._clock():
            return cached.profile, True
        request = self._profile_requests.get((team, user))
        if request is None:  # several messages at the same moment share one request
            request = self._profile_requests[team, user] = asyncio.create_task(
                self._fetch_profile(team, user)
            )
            request.add_done_callback(lambda _: self._profile_requests.pop((team, user), None))
        profile = await asyncio.shield(request)
        if profile:
            return profile, True
        old_profile = cached.profile if cached else {}
        return old_profile, False

    async def _fetch_profile(self, team: str, user: str) -> dict[str, Any]:
        """Ask Slack for its record of a user, and cache it. Empty without an answer, which is noted."""
        try:
            async with asyncio.timeout(_PROFILE_SECONDS):
                client = await self.client(team)
                try:
                    response = await client.users_info(user=user)
                except SlackApiError as error:
                    if not is_temporary(code_of(error)):
                        raise
                    response = await client.users_info(user=user)
        except (SlackApiError, aiohttp.ClientError, OSError, ChannelError) as error:
            why = code_of(error) if isinstance(error, SlackApiError) else str(error)
            sdk_logger.warning("Slack does not say who a user is: %s", why)
            if len(self._unanswered_at) > _MAX_CACHED_USERS:
                self._unanswered_at.clear()
            self._unanswered_at[team, user] = self._clock()
            return {}
        profile: dict[str, Any] = response.get("user") or {}
        if len(self._profiles) > _MAX_CACHED_USERS:
            self._profiles.clear()
        self._profiles[team, user] = _CachedProfile(profile, self._clock() + _CACHE_LIFETIME)
        return profile

    async def load_membership(self, team: str, actor: Actor) -> Membership | None:
        """Ask Slack for a person's membership in a team; None for a deactivated account or a bot.

        Raises ChannelError.
        """
        account_team, _, user = actor.key.partition("/")
        workspace = await self.find(team)
        with translate_errors():
            client = await self.client(team)
            try:
                profile: dict[str, Any] = (await client.users_info(user=user)).get("user") or {}
            except SlackApiError as error:
                if code_of(error) not in _UNKNOWN_USER_CODES:
                    raise
                return None
        if profile.get("deleted") or profile.get("is_bot"):
            return None
        organisation = workspace.enterprise if workspace else ""
        membership, _ = find_membership(profile, (account_team,), team, organisation)
        return membership

    async def load_group(self, team: str, group_id: str) -> UserGroup:
        """Return a user group with its members; no members if it is disabled or gone.

        Raises ChannelError, also for a group of more than `_MAX_GROUP_MEMBERS`.
        """
        with translate_errors():
            client = await self.client(team)
            members = await self._load_members(client, team, group_id)
            if members is None:
                return UserGroup(f"{NAME}:{team}/{group_id}", frozenset())
            if len(members.users) > _MAX_GROUP_MEMBERS:
                raise NotDeliverable(
                    f"It has {len(members.users):,} people; at most {_MAX_GROUP_MEMBERS:,} can decide"
                )
            handle = await self._load_handle(client, team, group_id, members.workspace)
        return UserGroup(handle, frozenset(str(actor_of(team, user)) for user in members.users))

    async def _load_members(self, client: Client, team: str, group_id: str) -> _GroupMembers | None:
        """Return the members of a user group; None without such a group. Raises what the client raises."""
        for workspace in await self._list_group_workspaces(client, team, group_id):
            try:
                response = await client.usergroups_users_list(usergroup=group_id, team_id=workspace)
            except SlackApiError as error:
                if code_of(error) not in _UNKNOWN_GROUP_CODES:
                    raise
                continue
            self._group_workspaces[team, group_id] = workspace
            return _GroupMembers([str(user) for user in response.get("users") or ()], workspace)
        return None

    async def _list_group_workspaces(self, client: Client, team: str, group_id: str) -> Sequence[str | None]:
        """Return the workspaces to ask for a user group, beginning with the workspace that had it last.

        For a workspace's own token the only item is None: a call with it names no workspace.
        """
        workspace = await self.find(team)
        if workspace is None or not workspace.enterprise:
            return [None]
        teams = (await client.auth_teams_list(limit=_MAX_WORKSPACES)).get("teams") or ()
        workspaces = [str(found_team["id"]) for found_team in teams if found_team.get("id")]
        last = self._group_workspaces.get((team, group_id))
        if last in workspaces:
            return [last, *(name for name in workspaces if name != last)]
        return workspaces

    async def _load_handle(self, client: Client, team: str, group_id: str, workspace: str | None) -> str:
        """Return the name of a user group, such as @oncall; it is cached for an hour."""
        cached = self._handles.get((team, group_id))
        if cached and cached.until > self._clock():
            return cached.name
        name = group_id
        for group in (await client.usergroups_list(team_id=workspace)).get("usergroups") or ():
            if group.get("id") == group_id:
                name = str(group.get("handle") or group.get("name") or group_id)
                break
        handle = f"@{one_line(name)[:_MAX_NAME_CHARS]}"
        self._handles[team, group_id] = _CachedName(handle, self._clock() + _CACHE_LIFETIME)
        return handle

    async def __call__(
        self, *, enterprise_id: str | None, team_id: str | None, user_id: str | None, **_: Any
    ) -> AuthorizeResult:
        """Let bolt pass a signed request on without a token.

        Bolt gives too little of the request to find the installation; `find_for_request` finds it later.
        """
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, user_id=user_id)


def organisation_of(response: AsyncSlackResponse) -> str:
    """Return the organisation that a token is for, by ``auth.test``; empty for a workspace's token."""
    if response.get("is_enterprise_install"):
        return str(response.get("enterprise_id") or "")
    return ""


def find_membership(
    profile: Mapping[str, Any], named_teams: Iterable[object], team: str, organisation: str
) -> tuple[Membership, str]:
    """Return a person's membership in ``team``, and the team of their account.

    ``profile`` is Slack's record of the person, empty if it gave none. ``named_teams`` are the workspaces and
    organisations that Slack named in their event. ``organisation`` is the one that installed Nod, empty if a
    workspace did. People of the organisation are no outsiders, nor are members of ``team`` whose home is
    another workspace. The first of these lines that applies decides:

    - no profile, but an organisation: UNKNOWN, since a named team may be one of its workspaces
    - a stranger by the profile, or of another team and not of this team or organisation: OUTSIDER
    - no profile: UNKNOWN
    - restricted by the profile: GUEST
    - anyone else: MEMBER
    """
    if organisation and not profile:
        return Membership.UNKNOWN, team
    all_teams = [str(name or "") for name in (profile.get("team_id"), *named_teams)]
    foreign_teams = [name for name in all_teams if name not in {team, organisation, ""}]
    enterprise_user = profile.get("enterprise_user") or {}
    is_in_team = team in (enterprise_user.get("teams") or ())
    is_in_organisation = bool(organisation) and enterprise_user.get("enterprise_id") == organisation
    is_foreign = bool(foreign_teams) and not (is_in_team or is_in_organisation)
    if is_foreign or profile.get("is_stranger"):
        account_team = foreign_teams[0] if foreign_teams else team
        return Membership.OUTSIDER, account_team
    if not profile:
        return Membership.UNKNOWN, team
    if profile.get("is_restricted") or profile.get("is_ultra_restricted"):
        return Membership.GUEST, team
    return Membership.MEMBER, team


def _find_display_name(user: Mapping[str, Any]) -> str:
    profile = user.get("profile") or {}
    name = (
        profile.get("display_name") or profile.get("real_name") or user.get("real_name") or user.get("name")
    )
    return one_line(str(name or ""))[:_MAX_NAME_CHARS]
