"""Slack's user groups, whose members may decide."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from slack_sdk.errors import SlackApiError

from bot.channels.slack.client import Client
from bot.channels.slack.errors import code_of, translate_errors
from bot.channels.slack.places import NAME, actor_of
from bot.channels.slack.text import one_line
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import Clock
from bot.domain.people import UserGroup
from bot.errors import NotDeliverable

_CACHE_LIFETIME = timedelta(hours=1)  # of Slack's answers
_MAX_GROUP_MEMBERS = 1000  # the members of a user group that decides
_MAX_WORKSPACES = 100  # the workspaces of an organisation that are asked for a user group
_MAX_HANDLE_CHARS = 80
_UNKNOWN_GROUP_CODES = frozenset({"no_such_subteam", "subteam_not_found"})


class _CachedHandle(NamedTuple):
    """The name of a user group, such as @oncall, and the time until which it holds."""

    name: str
    until: datetime


class _GroupMembers(NamedTuple):
    """The members of a user group, and its workspace, which only an organisation's token needs."""

    users: list[str]
    workspace: str | None  # None: the token is that of a workspace


class UserGroups:
    """Finds the user groups of workspaces. It asks Slack for the members each time, and caches the names."""

    def __init__(self, workspaces: Workspaces, clock: Clock) -> None:
        self._workspaces = workspaces
        self._clock = clock
        self._handles: dict[tuple[str, str], _CachedHandle] = {}  # by team and user group
        self._group_workspaces: dict[tuple[str, str], str | None] = {}
        """The workspace in which an organisation's user group was last, by organisation and group."""

    async def load_group(self, team: str, group_id: str) -> UserGroup:
        """Return a user group with its members; no members if it is disabled or gone.

        Raises ChannelError, also for a group of more than `_MAX_GROUP_MEMBERS`.
        """
        with translate_errors():
            client = await self._workspaces.get_client(team)
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
        workspace = await self._workspaces.find(team)
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
        handle = f"@{one_line(name)[:_MAX_HANDLE_CHARS]}"
        self._handles[team, group_id] = _CachedHandle(handle, self._clock() + _CACHE_LIFETIME)
        return handle
