"""Assembly of the core: all parts that know no platform."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from bot.agent.attachments import AttachmentReader
from bot.agent.loop import Loop, TurnLimits
from bot.agent.models import Models
from bot.agent.prompt import Briefing
from bot.approvals.commands.words import CommandParts, CommandSet
from bot.approvals.execute import Execution
from bot.approvals.gate import Gate
from bot.approvals.presses import Presses
from bot.channels.base import Channel, fetch_file, look_up, time_zone
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import Notices
from bot.channels.delivery.team_status import TeamStatusDelivery
from bot.channels.delivery.turns import Turns
from bot.channels.lookup import CoreLookup
from bot.domain.bounds import Bounds
from bot.domain.chat import Address, Clock
from bot.domain.hooks import Hooks
from bot.domain.jobs import Dispatcher, OwnWork, Process
from bot.domain.model import Model
from bot.domain.named_models import NamedModel
from bot.domain.plans import Approver
from bot.domain.policy import Policy
from bot.domain.prices import Prices
from bot.domain.rules import Mode, Rulebook
from bot.domain.times import now
from bot.inbox import Assistant
from bot.jobs.recovery import Recovery
from bot.jobs.reminders import Reminders
from bot.settings import Settings
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.store.hooks import give_hooks
from bot.store.processes import Leases
from bot.store.rules import Policies
from bot.tools.registry import Registry


@dataclass(frozen=True)
class Ports:
    """The dependencies of the core: database, tools, models, delivery. Channels may be added later.

    ``model`` is the default one, ``others`` are those that rules may name. ``alone``: no other process works
    on these rows.
    """

    database: Database
    dispatcher: Dispatcher
    registry: Registry
    model: Model
    channels: dict[str, Channel]
    clock: Clock = now
    process: Process = field(default_factory=Process.this)
    notifier: ChangeNotifier = field(default_factory=ChangeNotifier)
    alone: bool = True
    others: Sequence[Model] = ()


@dataclass(frozen=True)
class Core:
    """The parts that know no platform, assembled."""

    gate: Gate
    execution: Execution
    loop: Loop
    cards: Cards
    turns: Turns
    assistant: Assistant
    lookup: CoreLookup
    recovery: Recovery
    reminders: Reminders


def core(
    ports: Ports,
    policies: Policies,
    *,
    bounds: Bounds | None = None,
    limits: TurnLimits | None = None,
    briefing: Briefing | None = None,
    prices: Prices | None = None,
    named: Sequence[NamedModel] = (),
    routes: Sequence[Address] = (),
    retention: timedelta = timedelta(days=30),
    notice: str = "",
    site_url: Callable[[], str] = str,
    hooks: Hooks | None = None,
    commands: Sequence[Callable[[CommandParts], CommandSet]] = (),
) -> Core:
    """Assemble the core; nothing runs yet. ``routes``: chats that get every card; ``notice``: for all.

    ``named``: what is known of the models. ``site_url``: where people find the console. ``hooks`` and
    ``commands`` are those of features.
    """
    database, clock, bounds = ports.database, ports.clock, bounds or Bounds()
    give_hooks(database, hooks := hooks or Hooks())
    channels, dispatcher, notifier = ports.channels, ports.dispatcher, ports.notifier
    notices = Notices(channels, database, policies, clock, routes)
    leases = Leases(database, ports.process.id)
    cards = Cards(channels, ports.registry, database, policies, clock, notifier, notices, leases, routes)
    turns = Turns(channels, database, cards, clock, notices, leases, routes, hooks.watch_delivery)
    own = OwnWork(ports.process.id if ports.alone else "", bounds.turns_by_person)
    asking = partial(look_up, channels), partial(time_zone, channels)
    gate = Gate(ports.registry, policies, database, clock, ports.process.id, bounds, *asking)
    execution = Execution(ports.registry, policies, database, clock, ports.process.id, own)
    presses = Presses(database, gate, clock, execution, takes_work=lambda: dispatcher.takes_work)
    limits = limits or TurnLimits()
    models = Models([ports.model, *ports.others], named, clock, limits.history_tokens)
    attachments = AttachmentReader(database, clock, partial(fetch_file, channels), bounds.files, hooks)
    briefing, prices = briefing or Briefing(), prices or Prices()
    loop = Loop(models, gate, database, clock, limits, briefing, attachments, prices, hooks)
    boards = TeamStatusDelivery(channels, database, clock, leases)
    assistant = Assistant(
        database,
        gate,
        presses,
        execution,
        loop,
        turns,
        cards,
        boards,
        dispatcher,
        clock,
        ports.process.id,
        bounds,
        own,
        site_url,
        commands,
    )
    return Core(
        gate,
        execution,
        loop,
        cards,
        turns,
        assistant,
        CoreLookup(database, cards, presses, policies, notice),
        Recovery(database, gate, execution, turns, dispatcher, ports.process.id, retention),
        Reminders(database, policies, cards, notices, gate.groups),
    )


def policies_of(settings: Settings, clock: Clock = now) -> Policies:
    """Return the current policy: the rules over the settings' defaults."""
    return Policies(
        Policy(
            mode=Mode(settings.approval_policy),
            ttl=settings.proposal_ttl,
            admins=frozenset(settings.admins),
            approvers=frozenset(settings.approvers),
            plans=Approver(settings.plan_approval),
            book=Rulebook(zone=settings.timezone),
        ),
        clock,
    )
