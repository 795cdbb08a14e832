"""The sweep that sends notifications to devices, each device by one process and one task at a time.

A service that hangs can't hold up other work: each run of the sweep is short, and the tasks that have not
ended continue during the next runs. After a fault, nothing is sent to the device for a while, which is longer
after each further fault.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from bot.domain.chat import Clock
from bot.domain.people import LOCAL, Actor
from bot.errors import SecretLost
from bot.features.push import notifications, rows, watcher
from bot.features.push.push_client import Outcome, PushClient, open_subscription
from bot.features.push.push_message import EndedDevice, Letter, PostponedLetter, write_letter
from bot.features.push.tables import DeviceRow, NotificationRow
from bot.settings import Settings
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger
from bot.web.sign_in.accounts import is_allowed

log = logger(__name__)

PUSH_SWEEP_SECONDS = 1
"""The time between two runs of the sweep."""
PAUSES = tuple(timedelta(seconds=s) for s in (10, 30, 120, 600, 3600, 6 * 3600))
"""The pause of a device after each fault in a row; the last pause is repeated."""
AT_A_TIME = 50
"""The most devices to which one process sends at the same time."""
_MAX_RUN_SECONDS = 2.0  # the longest run of the sweep: a service that hangs keeps no other device waiting
_DELETION_PAUSE = timedelta(minutes=1)  # between two deletions of ended devices


@dataclass(eq=False)
class PushSender:
    """The sweep that sends due notifications.

    ``has_account`` tells if an account still exists. It is asked only about the account of a console that
    needs no sign-in.
    """

    settings: Settings
    database: Database
    policies: Policies
    clock: Clock
    push_client: PushClient
    has_account: Callable[[Actor], Awaitable[bool]]
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _devices_deleted_at: datetime | None = None

    async def run(self, now: datetime) -> None:
        """Send the due notifications. Tasks that take longer continue during the next sweeps."""
        await self._delete_ended_devices(now)
        max_devices = AT_A_TIME - len(self._tasks)
        busy = frozenset(self._tasks)
        due = await self.database.read(notifications.find_due_work, now, max_devices, busy)
        if due.has_asked_again:
            await self.database.write(watcher.request_noted_cards, self.policies, now)
        if due.has_changed:
            await self.database.write(watcher.check_changed_cards, self.policies, now)
        if due.has_asked_again or due.has_changed:  # that may have made further messages due
            due = await self.database.read(notifications.find_due_work, now, max_devices, busy)
        for device_id in due.devices:
            task = asyncio.create_task(self._send_due(device_id), name=f"push to {device_id}")
            self._tasks[device_id] = task
            task.add_done_callback(partial(self._remove_task, device_id))
        if not self._tasks:
            return
        try:
            await asyncio.wait(self._tasks.values(), timeout=_MAX_RUN_SECONDS)
        except asyncio.CancelledError:  # Nod ends; the rows still have what was not sent
            for task in self._tasks.values():
                task.cancel()
            raise

    def _remove_task(self, device_id: str, _: "asyncio.Task[None]") -> None:
        self._tasks.pop(device_id, None)

    async def _delete_ended_devices(self, now: datetime) -> None:
        """Delete devices that have ended, once a minute: nothing is sent to them in any case."""
        # a time in the future is from before the clock was set back: it does not count
        if (
            self._devices_deleted_at is not None
            and timedelta() <= now - self._devices_deleted_at < _DELETION_PAUSE
        ):
            return
        self._devices_deleted_at = now
        ended = await self.database.write(rows.delete_dead_devices, self.push_client.key.fingerprint, now)
        if ended:
            log.info("devices are no longer notified: their sessions or their key ended", many=ended)

    async def _send_due(self, device_id: str) -> None:
        """Send the due notifications of a device. An error is logged; another try follows after the lease."""
        try:
            device = await self.database.write(notifications.claim_device, device_id, self.clock())
            if device is None:
                return
            if await self._has_lost_access(device):
                await self.database.write(rows.end_devices, [device_id])
                return
            for row in await self.database.read(notifications.list_due, device_id, self.clock()):
                if not await self._send_row(device, row):
                    return  # the device has ended, or was released after a fault (`release_failed_device`)
            await self.database.write(notifications.release_device, device_id, self.clock())
        except Exception as error:
            log.error("notifications of a device failed", device=device_id, exc_info=error)

    async def _has_lost_access(self, device: DeviceRow) -> bool:
        """Return whether the person of a device may no longer sign in."""
        actor = Actor.parse(device.account, device.account_name)
        if actor == LOCAL:
            return not await self.has_account(actor)
        if device.session is None:  # a proxy signed the person in, by a header, if one still does
            return not self.settings.user_header
        return not is_allowed(self.settings.oidc_allowed, actor)

    async def _send_row(self, device: DeviceRow, row: NotificationRow) -> bool:
        """Send one notification. Return whether more can be sent to the device now."""
        now = self.clock()
        letter = await self.database.read(write_letter, self.policies, device, row, now)
        match letter:  # these three cases send nothing; a `Letter` is sent below
            case EndedDevice():
                await self.database.write(rows.end_devices, [device.id])
                return False
            case PostponedLetter():
                await self.database.write(notifications.postpone, row, letter.until)
                return True
            case None:
                await self.database.write(partial(notifications.mark_sent, is_shown=False), row, 0)
                return True
        try:
            subscription = await self.database.read(open_subscription, device)
        except SecretLost:
            log.warning("a device ended, since no key of NOD_SECRET_KEY opens it", device=device.id)
            await self.database.write(rows.end_devices, [device.id])
            return False
        outcome = await self.push_client.send(subscription, letter, now)
        return await self._store_outcome(device, row, letter, outcome)

    async def _store_outcome(
        self, device: DeviceRow, row: NotificationRow, letter: Letter, outcome: Outcome
    ) -> bool:
        """Store the outcome of one notification. Return whether more can be sent to the device now."""
        now = self.clock()
        write = self.database.write
        if outcome.is_gone:
            log.info("a subscription has ended, so its device is gone", device=device.id, host=device.host)
            await write(rows.end_devices, [device.id])
            return False
        if not outcome.fault:
            await write(partial(notifications.mark_sent, is_shown=letter.shows_card), row, letter.version)
            await write(notifications.mark_device_sent, device.id, now)
            if letter.is_crowd:
                await write(notifications.mark_crowded, device.id, now)
                device.crowded_at = now
            return True
        log.warning("notification not delivered", device=device.id, host=device.host, why=outcome.fault)
        if outcome.is_final or row.tries + 1 >= notifications.MAX_TRIES:
            await write(partial(notifications.mark_sent, is_shown=False), row, letter.version)
        else:
            await write(notifications.count_try, row)
        pause = PAUSES[min(device.failures, len(PAUSES) - 1)]
        until = now + max(pause, outcome.pause or timedelta())
        await write(notifications.release_failed_device, device.id, until, outcome.fault)
        return False
