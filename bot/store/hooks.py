"""The hooks of features in transactions: every session of a database that was given some carries them."""

from sqlmodel import Session

from bot.domain.hooks import Hooks, Notifier
from bot.store.database import Database

_KEY = "hooks"
_NO_HOOKS = Hooks()


def give_hooks(database: Database, hooks: Hooks) -> None:
    """Have each session of the database carry these hooks from now on."""
    database.info[_KEY] = hooks


def hooks_in(database: Database) -> Hooks:
    """Return the hooks that the sessions of a database carry."""
    hooks: Hooks = database.info.get(_KEY, _NO_HOOKS)
    return hooks


def hooks_of(session: Session) -> Hooks:
    """Return the hooks that this session carries; empty ones in a session of one's own."""
    hooks: Hooks = session.info.get(_KEY, _NO_HOOKS)
    return hooks


def find_notifier(session: Session, name: str) -> Notifier | None:
    """Return the notifier of a feature by the name that rules use; None where no feature brings it."""
    return next((each for each in hooks_of(session).notifiers if each.name == name), None)
