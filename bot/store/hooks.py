"""The hooks of features, as transactions find them.

``bot/domain/hooks.py`` describes the hooks. A database is given them once at the start, and every session of
it carries them in its ``info``, so that a store function can call them.
"""

from sqlmodel import Session

from bot.domain.hooks import Hooks, Notifier
from bot.store.database import Database

_KEY = "hooks"  # the key of the hooks in the ``info`` of a session
_NO_HOOKS = Hooks()


def give_hooks(database: Database, hooks: Hooks) -> None:
    """Have each session of the database carry these hooks from now on."""
    database.info[_KEY] = hooks


def hooks_in(database: Database) -> Hooks:
    """Return the hooks that the sessions of a database carry."""
    hooks: Hooks = database.info.get(_KEY, _NO_HOOKS)
    return hooks


def hooks_of(session: Session) -> Hooks:
    """Return the hooks that a session carries; none for a session that its user made without a `Database`."""
    hooks: Hooks = session.info.get(_KEY, _NO_HOOKS)
    return hooks


def find_notifier(session: Session, name: str) -> Notifier | None:
    """Return the notifier of a feature by the name that rules use; None where no feature brings it."""
    return next((each for each in hooks_of(session).notifiers if each.name == name), None)
