"""What Nod is in the middle of asking one person in one chat: to edit, why they decline, what else to allow.

Values and moves only. A dialogue is kept as JSON between two answers, so it survives a restart; what a step
shows is in ``screens.py``; who keeps and sends it is ``asker.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from bot.channels.telegram.form import Field
from bot.domain.cards import Card
from bot.domain.similarity import Rung

_FRESH = timedelta(minutes=30)


class Step(StrEnum):
    PICK = "pick"  # which field to change
    ASK = "ask"  # the new value of ``asked``
    CONFIRM = "confirm"  # old → new is shown; save, change another, or close
    REASON = "reason"  # why the proposal is declined
    CHANGES = "changes"  # what should change in a plan
    RUNG = "rung"  # how far a grant reaches
    LASTING = "lasting"  # how long a grant of ``rung`` holds


@dataclass(frozen=True, slots=True)
class Dialogue:
    """``changes`` are the edited arguments so far; ``prompt`` is the message that asks."""

    proposal_id: str
    round: int
    step: Step
    at: datetime
    asked: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    prompt: int | None = None
    rung: Rung | None = None

    @classmethod
    def edit(cls, card: Card, now: datetime) -> Self:
        return cls(card.proposal_id, card.round, Step.PICK, now)

    @classmethod
    def decline(cls, card: Card, now: datetime) -> Self:
        return cls(card.proposal_id, card.round, Step.REASON, now)

    @classmethod
    def revise(cls, card: Card, now: datetime) -> Self:
        return cls(card.proposal_id, card.round, Step.CHANGES, now)

    @classmethod
    def similar(cls, card: Card, now: datetime) -> Self:
        return cls(card.proposal_id, card.round, Step.RUNG, now)

    def reach(self, rung: Rung, now: datetime) -> Self:
        """Ask for how long a grant of this rung shall hold."""
        return replace(self, step=Step.LASTING, rung=rung, at=now)

    def down(self, now: datetime) -> Self:
        """Back to the choice of a rung."""
        return replace(self, step=Step.RUNG, rung=None, at=now)

    @property
    def climbs(self) -> bool:
        """Whether it is about a grant, not about the proposal's own contents."""
        return self.step in (Step.RUNG, Step.LASTING)

    def pick(self, field: Field, now: datetime) -> Self:
        """Ask for this field next."""
        return replace(self, step=Step.ASK, asked=field.name, at=now, prompt=None)

    def give(self, field: Field, value: Any, now: datetime) -> Self:
        """Take an answer that was checked; the value it had before is no change."""
        changes = {k: v for k, v in self.changes.items() if k != field.name}
        if value != field.value:
            changes[field.name] = value
        step = Step.CONFIRM if changes else Step.PICK
        return replace(self, step=step, asked=None, changes=changes, at=now, prompt=None)

    def again(self, now: datetime) -> Self:
        """Back to the choice of a field, with what was changed so far."""
        return replace(self, step=Step.PICK, asked=None, at=now, prompt=None)

    def prompted(self, message_id: int) -> Self:
        return replace(self, prompt=message_id)

    def listens(self, reply_to: int | None, now: datetime, *, private: bool) -> bool:
        """Whether a text is the answer: it replies to the question, or in private just follows it."""
        if self.step not in (Step.ASK, Step.REASON, Step.CHANGES):
            return False
        if reply_to is not None:
            return reply_to == self.prompt
        return private and now - self.at < _FRESH

    def concerns(self, card: Card) -> bool:
        """Whether the proposal still is what the dialogue began with."""
        return card.pending and card.proposal_id == self.proposal_id and card.round == self.round

    def arguments(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """Give the arguments with the changes in them."""
        return {**current, **self.changes}

    def state(self) -> dict[str, Any]:
        return {
            "proposal_id": self.proposal_id,
            "round": self.round,
            "step": self.step.value,
            "at": self.at.isoformat(),
            "asked": self.asked,
            "changes": dict(self.changes),
            "prompt": self.prompt,
            "rung": self.rung,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(
            proposal_id=state["proposal_id"],
            round=state["round"],
            step=Step(state["step"]),
            at=datetime.fromisoformat(state["at"]),
            asked=state["asked"],
            changes=state["changes"],
            prompt=state["prompt"],
            rung=Rung(state["rung"]) if state.get("rung") else None,
        )
