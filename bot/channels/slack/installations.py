"""The name of an installation: an organisation's id where Nod is installed in all of it, else a workspace's.

Everything that Slack signs and sends names it, each kind of request in its own fields. A person's own
workspace is no name of an installation: in a shared channel it is another company's.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bot.channels.slack.screens import ModalSubject


def list_names(body: Mapping[str, Any]) -> list[str]:
    """List the installations that a signed request may be for, the surest first.

    An event is for those it is authorised for and no other. Of the rest, the workspace comes last: in
    `block_actions` and `view_submission` it may be the one that the person is of.
    """
    granted = _first_mapping(body.get("authorizations"))
    if granted:
        return _distinct(_names_in(granted))
    view = body.get("view")
    return _distinct([*(_read_window(view) if isinstance(view, Mapping) else ()), *_names_in(body)])


def find_bot(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the bot and the account whose message or view was pressed; empty where the request names none.

    Slack gives each installation a bot of its own, and sends the message and the view as it keeps them.
    """
    for part in ("message", "view"):
        shown = body.get(part)
        if isinstance(shown, Mapping) and (shown.get("bot_id") or shown.get("user")):
            return str(shown.get("bot_id") or ""), str(shown.get("user") or "")
    return "", ""


def _read_window(view: Mapping[str, Any]) -> tuple[object, object]:
    """Return the ids in a modal that Slack gives, and those in the data that Nod wrote into it."""
    written = str(view.get("private_metadata") or "")
    try:
        place = ModalSubject.unpack(written).address if written else ""
    except ValueError:
        place = ""
    return view.get("app_installed_team_id"), place.partition("/")[0]


def _first_mapping(value: object) -> Mapping[str, Any]:
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, Mapping):
        return first
    return {}


def _names_in(said: Mapping[str, Any]) -> Iterator[object]:
    """Give the organisation first where Slack says that Nod is installed in all of it."""
    team = said.get("team")
    workspace = _id_of(team) or said.get("team_id")
    organisation = _id_of(said.get("enterprise")) or said.get("enterprise_id")
    if organisation is None and isinstance(team, Mapping):
        organisation = team.get("enterprise_id")
    everywhere = said.get("is_enterprise_install") in (True, "true")
    yield from (organisation, workspace) if everywhere else (workspace, organisation)


def _id_of(value: object) -> object:
    if isinstance(value, Mapping):
        return value.get("id")
    return value


def _distinct(names: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(str(name) for name in names if name))
