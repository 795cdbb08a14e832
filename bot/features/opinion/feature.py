"""Second opinions: another model's few words on a card, which can require one more approval, never fewer.

`OPINION` names the feature's parts: a hook that stores the wish for an opinion with each proposal, a hook
that has an approved proposal wait for its opinion for a short time, and the sweep that asks the models.
"""

from collections.abc import Sequence
from functools import partial

from bot.domain.chat import Address
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.opinion import reviewer, rows, status
from bot.jobs.scheduler import Sweep


def _make_hooks(parts: FeatureParts) -> Hooks:
    wanting = partial(rows.want_opinion, parts.policies)
    listing = partial(status.list_opinions, parts.policies)
    return Hooks(ask_people=(wanting,), hold_claim=(rows.find_wait_end,), list_active=(listing,))


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    asking = reviewer.Reviewer(
        parts.database,
        parts.policies,
        parts.models,
        parts.prices,
        parts.clock,
        parts.wake,
        [Address.parse(chat) for chat in parts.settings.approver_chats],
    )
    return (Sweep("ask_opinions", reviewer.OPINION_SWEEP_SECONDS, asking.run),)


OPINION = Feature(
    name="opinion",
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
    examine=status.examine_opinions,
)
