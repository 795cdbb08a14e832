"""Assembly of the core: the parts that know no platform, made over the ports that the platforms fill.

``bot/app/assembly.py`` makes the ports, calls `make_core`, and adds channels, web and features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from bot.agent.attachments import AttachmentReader
from bot.agent.loop import Loop, TurnLimits
from bot.agent.models import Models
from bot.agent.prompt import Briefing
from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.approvals.execute import Execution
from bot.approvals.gate import Gate
from bot.approvals.presses import Presses
from bot.channels.base import Channel, fetch_file, look_up, time_zone
from bot.channels.delivery.cards import Cards
from bot.channels.delivery.notices import Notices
from bot.channels.delivery.team_status import TeamStatusDelivery
from bot.channels.delivery.turns import Turns
from bot.channels.lookup import CoreLookup
from bot.domain.chat import Address, Clock
from bot.domain.hooks import Hooks
from bot.domain.jobs import Dispatcher, Process, WorkCache
from bot.domain.model import Model
from bot.domain.named_models import NamedModel
from bot.domain.plans import Approver
from bot.domain.policy import Policy
from bot.domain.prices import Prices
from bot.domain.rule_values import Mode
from bot.domain.rulebook import Rulebook
from bot.domain.times import now
from bot.domain.work_limits import Bounds
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
    """The dependencies of the core on the world around it."""

    database: Database
    dispatcher: Dispatcher
    registry: Registry  # the tools
    model: Model  # the default model
    channels: dict[str, Channel]  # by name; may be filled later
    clock: Clock = now
    process: Process = field(default_factory=Process.this)
    notifier: ChangeNotifier = field(default_factory=ChangeNotifier)  # wakes what waits for changed rows
    is_only_process: bool = True  # no other process works on the same database
    other_models: Sequence[Model] = ()  # the models that rules may name


@dataclass(frozen=True)
class Core:
    """The parts that know no platform, assembled."""

    gate: Gate
    execution: Execution
    loop: Loop
    cards: Cards
    turns: Turns  # the delivery of turns to people
    assistant: Assistant
    lookup: CoreLookup  # what channels may look up
    recovery: Recovery
    reminders: Reminders


def make_core(
    ports: Ports,
    policies: Policies,
    *,
    bounds: Bounds | None = None,
    limits: TurnLimits | None = None,
    briefing: Briefing | None = None,
    prices: Prices | None = None,
    named_models: Sequence[NamedModel] = (),
    routes: Sequence[Address] = (),
    retention: timedelta = timedelta(days=30),
    notice: str = "",
    site_url: Callable[[], str] = lambda: "",
    hooks: Hooks | None = None,
    commands: Sequence[Callable[[CommandParts], CommandSet]] = (),
) -> Core:
    """Assemble the core; nothing runs yet.

    - ``policies``: the rules of approval
    - ``limits``: the limits of one turn of the agent
    - ``briefing``: what the prompt tells the model about the team
    - ``prices``: the prices of models
    - ``named_models``: the settings of those models in ``ports`` that have any
    - ``routes``: the chats that get a copy of every card
    - ``retention``: how long output is kept
    - ``notice``: a remark for everyone, such as that a demo model answers
    - ``site_url``: returns the address of the console; empty without a console
    - ``hooks`` and ``commands`` come from features
    """
    database = ports.database
    clock = ports.clock
    process = ports.process.id
    channels = ports.channels
    dispatcher = ports.dispatcher
    registry = ports.registry
    bounds = bounds or Bounds()
    limits = limits or TurnLimits()
    hooks = hooks or Hooks()
    give_hooks(database, hooks)
    notices = Notices(channels, database, policies, clock, routes)
    leases = Leases(database, process)
    cards = Cards(
        channels=channels,
        registry=registry,
        database=database,
        policies=policies,
        clock=clock,
        notifier=ports.notifier,
        notices=notices,
        leases=leases,
        routes=routes,
    )
    turns = Turns(
        channels=channels,
        database=database,
        cards=cards,
        clock=clock,
        notices=notices,
        leases=leases,
        routes=routes,
        watchers=hooks.watch_delivery,
    )
    # an empty id: another process may do the work that this one makes, so most of it is not cached
    own_work = WorkCache(process if ports.is_only_process else "", bounds.turns_by_person)
    gate = Gate(
        registry=registry,
        policies=policies,
        database=database,
        clock=clock,
        process=process,
        bounds=bounds,
        look_up=partial(look_up, channels),
        zone_of=partial(time_zone, channels),
    )
    execution = Execution(registry, policies, database, clock, process, own_work)
    presses = Presses(database, gate, clock, execution, takes_work=lambda: dispatcher.takes_work)
    loop = Loop(
        models=Models([ports.model, *ports.other_models], named_models, clock, limits.history_tokens),
        gate=gate,
        database=database,
        clock=clock,
        limits=limits,
        briefing=briefing or Briefing(),
        attachments=AttachmentReader(database, clock, partial(fetch_file, channels), bounds.files, hooks),
        prices=prices or Prices(),
        hooks=hooks,
    )
    assistant = Assistant(
        database=database,
        gate=gate,
        presses=presses,
        execution=execution,
        loop=loop,
        delivery=turns,
        cards=cards,
        team_status=TeamStatusDelivery(channels, database, clock, leases),
        dispatcher=dispatcher,
        clock=clock,
        process=process,
        bounds=bounds,
        own_work=own_work,
        site_url=site_url,
        commands=commands,
    )
    return Core(
        gate=gate,
        execution=execution,
        loop=loop,
        cards=cards,
        turns=turns,
        assistant=assistant,
        lookup=CoreLookup(database, cards, presses, policies, notice),
        recovery=Recovery(database, gate, execution, turns, dispatcher, process, retention),
        reminders=Reminders(database, policies, cards, notices, gate.groups),
    )


def policies_of(settings: Settings, clock: Clock = now) -> Policies:
    """Return the policies: the rules that people set, over the defaults of the settings."""
    return Policies(
        Policy(
            mode=Mode(settings.approval_policy),
            ttl=settings.proposal_ttl,
            admins=frozenset(settings.admins),
            approvers=frozenset(settings.approvers),
            plan_approver=Approver(settings.plan_approval),
            rulebook=Rulebook(zone=settings.timezone),
        ),
        clock,
    )
