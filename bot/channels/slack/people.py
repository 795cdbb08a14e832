"""Slack's records of people, which are cached: their names, memberships and time zones.

A record is what `users.info` returns of a user.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import aiohttp
from slack_sdk.errors import SlackApiError

from bot.channels.slack.client import limit_time, sdk_logger
from bot.channels.slack.errors import code_of, is_temporary, translate_errors
from bot.channels.slack.places import actor_of
from bot.channels.slack.text import one_line
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import Clock
from bot.domain.people import Actor, Membership
from bot.domain.times import find_zone
from bot.errors import ChannelError

_CACHE_LIFETIME = timedelta(hours=1)  # of Slack's answers
_RETRY_AFTER = timedelta(minutes=1)  # the time after which Slack is asked again if it gave no answer
_CALL_SECONDS = 1.0  # Slack waits 3 s for an acknowledgement
_MAX_CACHED_USERS = 10_000
_MAX_NAME_CHARS = 80
_MAX_NAMED_PEOPLE = 10  # people in one text whose names are looked up
_UNKNOWN_USER_CODES = frozenset({"user_not_found", "user_not_visible", "users_not_found"})


class _CachedRecord(NamedTuple):
    """Slack's record of a user, and the time until which it counts as recent."""

    record: dict[str, Any]
    until: datetime


class _LoadedRecord(NamedTuple):
    """Slack's record of a user, empty if Slack never gave one."""

    record: dict[str, Any]
    is_recent: bool  # it is at most an hour old


class _CachedOrganisation(NamedTuple):
    """The id of a workspace's organisation, and the time until which it holds."""

    id: str
    until: datetime


class SlackPeople:
    """Finds the people of workspaces. It asks Slack, and caches the answers."""

    def __init__(self, workspaces: Workspaces, clock: Clock) -> None:
        self._workspaces = workspaces
        self._clock = clock
        self._records: dict[tuple[str, str], _CachedRecord] = {}  # by team and user
        self._unanswered_at: dict[tuple[str, str], datetime] = {}
        """The time at which Slack last did not give a record, by team and user."""
        self._record_requests: dict[tuple[str, str], asyncio.Task[dict[str, Any]]] = {}  # by team and user
        self._organisations: dict[str, _CachedOrganisation] = {}  # by team

    async def close(self) -> None:
        for request in list(self._record_requests.values()):
            request.cancel()

    async def load_actor(self, team: str, user: str, *named_teams: object, name: str = "") -> Actor:
        """Return a person as an account of their own team, with their membership in ``team``.

        ``named_teams``: the teams that Slack named in the person's event. ``name`` is used if Slack gives
        none. Without a recent record of the person, a member counts as UNKNOWN.
        """
        (record, is_recent), workspace = await asyncio.gather(
            self._load_record(team, user), self._workspaces.find(team)
        )
        organisation = workspace.enterprise if workspace else ""
        membership, account_team = find_membership(record, named_teams, team, organisation)
        if membership is Membership.MEMBER and not is_recent:
            membership = Membership.UNKNOWN
        colleague = membership is Membership.OUTSIDER and await self._is_colleague(team, record, named_teams)
        shown_name = _find_display_name(record) or name
        return actor_of(account_team, user, shown_name, membership, is_colleague=colleague)

    async def load_people(self, team: str, users: Iterable[str]) -> dict[str, Actor]:
        """Return the people behind users' ids; only the first `_MAX_NAMED_PEOPLE` are looked up."""
        first_users = list(users)[:_MAX_NAMED_PEOPLE]
        actors = await asyncio.gather(*(self.load_actor(team, user) for user in first_users))
        return dict(zip(first_users, actors, strict=True))

    async def _is_colleague(
        self, team: str, record: Mapping[str, Any], named_teams: Iterable[object]
    ) -> bool:
        """Tell if an outsider belongs to the organisation of a team. It only affects their shown name."""
        enterprise = (record.get("enterprise_user") or {}).get("enterprise_id")
        organisations = [name for name in (enterprise, *named_teams) if str(name or "").startswith("E")]
        if record.get("is_stranger") or not organisations:
            return False
        return await self._load_organisation(team) in organisations

    async def _load_organisation(self, team: str) -> str:
        """Return the organisation of a workspace; empty without one, or if Slack never told.

        The answer is cached for an hour. If Slack can't be reached then, the old answer holds for a minute.
        """
        cached = self._organisations.get(team)
        if cached and cached.until > self._clock():
            return cached.id
        organisation = cached.id if cached else ""
        lifetime = _CACHE_LIFETIME
        try:
            async with limit_time(_CALL_SECONDS):
                client = await self._workspaces.get_client(team)
                response = await client.auth_test()
            organisation = str(response.get("enterprise_id") or "")
        except (SlackApiError, ChannelError, aiohttp.ClientError, OSError) as error:
            sdk_logger.warning("Slack did not say of which organisation a workspace is: %s", error)
            lifetime = _RETRY_AFTER
        self._organisations[team] = _CachedOrganisation(organisation, self._clock() + lifetime)
        return organisation

    async def find_recipient(self, team: str, account_team: str, user: str) -> tuple[str, str]:
        """Return the workspace and the user id by which Slack knows the recipient of a stream.

        Slack takes no organisation's id for a recipient. So a person of an organisation is named by one of
        their workspaces in it.
        """
        workspace = await self._workspaces.find(team)
        if workspace is None or not workspace.enterprise or account_team != team:
            return account_team, user
        record, _ = await self._load_record(team, user)
        enterprise_user = record.get("enterprise_user") or {}
        for member_team in (record.get("team_id"), *(enterprise_user.get("teams") or ())):
            if str(member_team).startswith("T"):
                return str(member_team), user
        return account_team, user

    async def load_time_zone(self, team: str, actor: Actor) -> ZoneInfo | None:
        """Return the time zone that a person set in Slack; None if Slack gives none.

        Their record is cached. Each step of a turn calls this method, so after a missing answer Slack is not
        asked again for a minute.
        """
        key = team, actor.key.partition("/")[2]
        cached = self._records.get(key)
        record = cached.record if cached else {}  # an old record is good enough for a time zone
        unanswered_at = self._unanswered_at.get(key)
        if unanswered_at is None or abs(self._clock() - unanswered_at) >= _RETRY_AFTER:
            record, _ = await self._load_record(*key)
        try:
            return find_zone(str(record.get("tz") or ""))
        except ValueError:
            return None

    async def _load_record(self, team: str, user: str) -> _LoadedRecord:
        """Return Slack's record of a user: the cached one while it is recent, else as Slack gives it now."""
        cached = self._records.get((team, user))
        if cached and cached.until > self._clock():
            return _LoadedRecord(cached.record, is_recent=True)
        request = self._record_requests.get((team, user))
        if request is None:  # several messages at the same moment share one request
            request = self._record_requests[team, user] = asyncio.create_task(self._fetch_record(team, user))
            request.add_done_callback(lambda _: self._record_requests.pop((team, user), None))
        record = await asyncio.shield(request)
        if record:
            return _LoadedRecord(record, is_recent=True)
        return _LoadedRecord(cached.record if cached else {}, is_recent=False)

    async def _fetch_record(self, team: str, user: str) -> dict[str, Any]:
        """Ask Slack for its record of a user, and cache it. Empty without an answer, which is noted."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                client = await self._workspaces.get_client(team)
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
        record: dict[str, Any] = response.get("user") or {}
        if len(self._records) > _MAX_CACHED_USERS:
            self._records.clear()
        self._records[team, user] = _CachedRecord(record, self._clock() + _CACHE_LIFETIME)
        return record

    async def load_membership(self, team: str, actor: Actor) -> Membership | None:
        """Ask Slack for a person's membership in a team; None for a deactivated account or a bot.

        Raises ChannelError.
        """
        account_team, _, user = actor.key.partition("/")
        workspace = await self._workspaces.find(team)
        with translate_errors():
            client = await self._workspaces.get_client(team)
            try:
                record: dict[str, Any] = (await client.users_info(user=user)).get("user") or {}
            except SlackApiError as error:
                if code_of(error) not in _UNKNOWN_USER_CODES:
                    raise
                return None
        if record.get("deleted") or record.get("is_bot"):
            return None
        organisation = workspace.enterprise if workspace else ""
        membership, _ = find_membership(record, (account_team,), team, organisation)
        return membership


def find_membership(
    record: Mapping[str, Any], named_teams: Iterable[object], team: str, organisation: str
) -> tuple[Membership, str]:
    """Return a person's membership in ``team``, and the team of their account.

    ``record`` is Slack's record of the person, empty if it gave none. ``named_teams`` are the workspaces and
    organisations that Slack named in their event. ``organisation`` is the one that installed Nod, empty if a
    workspace did. People of the organisation are no outsiders, nor are members of ``team`` whose home is
    another workspace. The first of these lines that applies decides:

    - no record, but an organisation: UNKNOWN, since a named team may be one of its workspaces
    - a stranger by the record, or of another team and not of this team or organisation: OUTSIDER
    - no record: UNKNOWN
    - restricted by the record: GUEST
    - anyone else: MEMBER
    """
    if organisation and not record:
        return Membership.UNKNOWN, team
    all_teams = [str(name or "") for name in (record.get("team_id"), *named_teams)]
    foreign_teams = [name for name in all_teams if name not in {team, organisation, ""}]
    enterprise_user = record.get("enterprise_user") or {}
    is_in_team = team in (enterprise_user.get("teams") or ())
    is_in_organisation = bool(organisation) and enterprise_user.get("enterprise_id") == organisation
    is_foreign = bool(foreign_teams) and not (is_in_team or is_in_organisation)
    if is_foreign or record.get("is_stranger"):
        account_team = foreign_teams[0] if foreign_teams else team
        return Membership.OUTSIDER, account_team
    if not record:
        return Membership.UNKNOWN, team
    if record.get("is_restricted") or record.get("is_ultra_restricted"):
        return Membership.GUEST, team
    return Membership.MEMBER, team


def _find_display_name(record: Mapping[str, Any]) -> str:
    profile = record.get("profile") or {}  # the part of the record that the person fills in
    chosen_name = profile.get("display_name") or profile.get("real_name")
    name = chosen_name or record.get("real_name") or record.get("name")
    return one_line(str(name or ""))[:_MAX_NAME_CHARS]
