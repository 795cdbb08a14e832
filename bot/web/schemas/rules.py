"""Bodies about rules.

A rule can be tried on earlier changes (`TriedBody`). A *spared* change is one about which people would not
have been asked under the rule. The *price* of a rule is the list of the spared changes that people in fact
declined, edited or undid (`PricedView`).
"""

from typing import Annotated

from pydantic import BeforeValidator, Field

from bot.approvals.lookup.rule_simulation import Effect
from bot.web.body import format_cursor
from bot.web.schemas import DoneBody, Time, View
from bot.web.schemas.grants import GrantView


class RuleView(View):
    id: int
    words: str
    set_by: str
    set_at: Time
    until: Time | None = Field(description="when it ends by itself")
    trouble: str | None = Field(description="why its condition no longer fits a tool, in words")


class Rules(DoneBody):
    everything: bool = Field(description="false: only the rules and roles that concern you are listed")
    policy: str
    ttl_seconds: float
    paused: bool
    roles: dict[str, list[str]] = Field(description="accounts by role")
    rules: list[RuleView]
    grants: list[GrantView]


class RuleSet(DoneBody):
    id: int | None
    text: str


class PricedView(View):
    """A call that a rule would have spared people, although they declined, edited or undid it."""

    id: str
    tool_name: str
    title: str
    at: Time
    price: str = Field(description="declined, edited or undone")
    by: str | None = Field(description="who declined, edited or undid it")
    reason: str | None


class TriedBody(DoneBody):
    """The effect that a rule would have had on earlier changes.

    - `spared`: people would not have been asked
    - `asked`: people would have been asked in addition
    - `refused`: it could not have been proposed
    - `otherwise`: other people, or another number, would have been asked, or it would have run instead of
      being refused
    """

    rule: str
    looked: int = Field(description="the number of changes that were looked at")
    back_to: Time | None = Field(description="when the oldest of the changes looked at was proposed")
    effects: dict[Effect, int] = Field(description="the number of changes by effect")
    priced: int = Field(description="the number of spared changes that were declined, edited or undone")
    price: list[PricedView] = Field(description="the newest of the changes that `priced` counts")
    next: Annotated[str | None, BeforeValidator(format_cursor)] = Field(
        validation_alias="before", description="the `before` of the next page; null on the last"
    )
    text: str = Field(description="the effect of the rule in words")
