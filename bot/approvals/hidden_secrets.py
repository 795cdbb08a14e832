"""Secrets in edited arguments: people edit the arguments with dots in place of secrets (`HIDDEN`)."""

from collections.abc import Mapping
from typing import Any

from bot.domain.digests import to_canonical_json
from bot.domain.redaction import HIDDEN
from bot.errors import BadArguments


def restore_secrets(
    edited: Mapping[str, Any], before: Mapping[str, Any], shown: Mapping[str, Any]
) -> dict[str, Any]:
    """Put hidden secrets back into edited arguments.

    ``before`` are the arguments before the edit, ``shown`` are the same arguments as people saw them. An
    object that was hidden as a whole is a text in ``shown``. Raises BadArguments for a secret that was
    changed only in part.
    """
    complete: dict[str, Any] = {}
    for key, value in edited.items():
        if key in before and value == shown[key]:
            complete[key] = before[key]
        elif isinstance(value, Mapping) and isinstance(shown.get(key), Mapping):
            complete[key] = restore_secrets(value, before[key], shown[key])
        elif HIDDEN in to_canonical_json(value):
            raise BadArguments({key: "a part of this is hidden; write all of it, or leave it as it was"})
        else:
            complete[key] = value
    return complete
