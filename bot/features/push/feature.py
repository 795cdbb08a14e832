"""Web Push: people who may decide a card are notified on their devices.

`PUSH` names the feature's parts. Hooks store which cards each device is to show, and a sweep sends the
messages. The feature is off without the key pair of ``NOD_PUSH_KEY``; then rules can't name devices either.
"""

from collections.abc import Sequence

from bot.domain.hooks import Hooks, Notifier
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.push import routes, rows, status, watcher
from bot.features.push.push_client import make_push_client
from bot.features.push.sender import PUSH_SWEEP_SECONDS, PushSender
from bot.jobs.scheduler import Sweep


def _make_hooks(parts: FeatureParts) -> Hooks:
    if parts.settings.push_key is None:
        off = Notifier(watcher.PUSH_NOTIFIER, watcher.note_card_asks_again, routes.OFF_TEXT)
        return Hooks(notifiers=(off,))
    return Hooks(
        ask_people=(watcher.note_new_round,),
        watch_delivery=(watcher.PushWatcher(),),
        notifiers=(Notifier(watcher.PUSH_NOTIFIER, watcher.note_card_asks_again),),
        list_active=(status.list_all_devices,),
        list_zones=(rows.list_zones,),
    )


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    client = make_push_client(parts.settings)
    if client is None:
        return ()
    sender = PushSender(
        parts.settings, parts.database, parts.policies, parts.clock, client, parts.has_account
    )
    return (Sweep("push", PUSH_SWEEP_SECONDS, sender.run),)


PUSH = Feature(
    name="push",
    api=(routes.router,),
    tags={"push": "Notifications on your devices, through their browsers."},
    is_on=lambda settings: settings.push_key is not None,
    make_hooks=_make_hooks,
    make_sweeps=_make_sweeps,
    examine=status.examine_devices,
)
