"""Finds the installation of Nod that a Slack request is for.

An installation has the id of a workspace (``T1``), or of an organisation (``E1``) if Nod is installed in all
of it. Each kind of request that Slack sends has that id in other fields. The person's workspace must not be
used: in a shared channel it may be another company's. `Workspaces.find_for_request` tries the candidates.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bot.channels.slack.screens import ModalSubject


def list_installation_ids(body: Mapping[str, Any]) -> list[str]:
    """List the ids of the installations that a signed request may be for, the most reliable first.

    For an event these are only the ids in ``authorizations``. For other requests the ids in the view (a modal
    or App Home) come first. The ids at the top level come last: for a press or a submitted modal they may be
    those of the person's own workspace.
    """
    authorization = _first_mapping(body.get("authorizations"))
    if authorization:
        return _distinct(_list_ids_in(authorization))
    view = body.get("view")
    ids_in_view = _list_ids_in_view(view) if isinstance(view, Mapping) else ()
    return _distinct([*ids_in_view, *_list_ids_in(body)])


def find_bot(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ids of the bot, and of its user account, that wrote the pressed message or view.

    Both are empty where the request names none. Slack gives each installation a bot of its own, and sends the
    message or the view from its own records, so both can be trusted.
    """
    for part in ("message", "view"):
        shown = body.get(part)
        if isinstance(shown, Mapping) and (shown.get("bot_id") or shown.get("user")):
            return str(shown.get("bot_id") or ""), str(shown.get("user") or "")
    return "", ""


def _list_ids_in_view(view: Mapping[str, Any]) -> tuple[object, object]:
    """Return the id that Slack gives with a modal, and the id in the metadata that Nod wrote into it.

    Both are unchecked JSON, and may be missing or empty; `_distinct` drops those.
    """
    metadata = str(view.get("private_metadata") or "")
    try:
        address_key = ModalSubject.unpack(metadata).address if metadata else ""
    except ValueError:
        address_key = ""
    team, _, _ = address_key.partition("/")
    return view.get("app_installed_team_id"), team


def _first_mapping(value: object) -> Mapping[str, Any]:
    """Return the first item of a list if it is a mapping, else an empty mapping."""
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, Mapping):
        return first
    return {}


def _list_ids_in(part: Mapping[str, Any]) -> Iterator[object]:
    """Yield workspace and organisation; the organisation first if Slack says that Nod is installed in it."""
    team = part.get("team")
    workspace = _id_of(team) or part.get("team_id")
    organisation = _id_of(part.get("enterprise")) or part.get("enterprise_id")
    if organisation is None and isinstance(team, Mapping):
        organisation = team.get("enterprise_id")
    if part.get("is_enterprise_install") in (True, "true"):
        yield organisation
        yield workspace
    else:
        yield workspace
        yield organisation


def _id_of(value: object) -> object:
    if isinstance(value, Mapping):
        return value.get("id")
    return value


def _distinct(ids: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(str(ident) for ident in ids if ident))
