"""Plugins: entry points of installed packages, loaded only where a setting names them.

An entry point is a name that a package gives to an object of its own in its metadata, in a group such as
`TOOLS`. A plugin is trusted: it runs in Nod's process with all that Nod may do. So no plugin is used just
because it is installed, and a plugin that no setting names is listed from the metadata, not imported.
"""

import functools
import importlib
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from bot.errors import SettingsError

ENTRY = "entry:"
"""The beginning of an entry point's name in a setting, as in ``entry:acme``."""
TOOLS = "nod.tools"
"""The group of entry points that bring tools."""
CHANNELS = "nod.channels"
"""The group of entry points that bring channels; Nod's own channels are in it, too."""


@functools.cache
def list_channel_names() -> frozenset[str]:
    """Return the channels that accounts may name: channels of Nod, and of installed packages."""
    return frozenset({"http", "cli", *(point.name for point in entry_points(group=CHANNELS))})


def list_unnamed(group: str, names: Sequence[str]) -> list[EntryPoint]:
    """Return the entry points that installed packages other than Nod offer and a setting does not name.

    ``names``: the value of the setting, in which they would be named as ``entry:…``.
    """
    points = sorted(entry_points(group=group))
    return [point for point in points if not is_own(point) and f"{ENTRY}{point.name}" not in names]


def is_own(point: EntryPoint) -> bool:
    """Return whether an entry point is one of Nod's own."""
    return point.module.partition(".")[0] == "bot"


def describe_package(point: EntryPoint) -> str:
    """Return the package that brings an entry point, with its version."""
    if point.dist:
        return f"{point.dist.name} {point.dist.version}"
    return point.value


def load_entry_point(group: str, setting: str, name: str) -> Any:
    """Import the object of the entry point ``name`` (``entry:…``) of a group.

    Raises SettingsError, in one line that begins with ``setting``, where it is missing, ambiguous or broken.
    """
    point_name = name.removeprefix(ENTRY)
    points = sorted(entry_points(group=group, name=point_name))
    if not points:
        known = ", ".join(sorted({point.name for point in entry_points(group=group)})) or "none"
        raise SettingsError(
            f"{setting}: no installed package has the entry point {point_name!r} of {group} "
            f"(there are: {known}); install the package, or take the name out"
        )
    if len(points) > 1:
        packages = ", ".join(sorted(map(describe_package, points)))
        raise SettingsError(
            f"{setting}: {name} is brought by several packages ({packages}); uninstall all but one"
        )
    [point] = points
    value: Any = import_named(setting, name, point.module)
    attributes = [part for part in (point.attr or "").split(".") if part]  # the path to the object
    for attribute in attributes:
        value = getattr(value, attribute, None)
    if value is None:
        raise SettingsError(
            f"{setting}: {name} leads to {point.value}, which is not there; upgrade the package"
        )
    return value


def import_named(setting: str, name: str, module: str) -> ModuleType:
    """Import the module that ``name`` in a setting stands for. Raises SettingsError with how to fix it."""
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        is_module_itself = missing == module or module.startswith(f"{missing}.")
        if is_module_itself:
            fix = f"there is no module {missing}; install it, or start nod in the folder that has it"
        else:
            fix = f"it needs the module {missing}; install that"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - their code may raise anything
        fix = f"it failed to import ({describe_failure(error)}); fix it"
    raise SettingsError(f"{setting}: {name}: {fix}")


def describe_failure(error: BaseException) -> str:
    """Return the error and its place in the code, on one line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f", {Path(trace.tb_frame.f_code.co_filename).name} line {trace.tb_lineno}" if trace else ""
    message_on_one_line = " ".join(str(error).split())
    return f"{type(error).__name__}: {message_on_one_line}{place}"
