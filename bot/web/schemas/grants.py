"""Bodies about grants, which let similar calls run without a decision, and the choices for a new one."""

from typing import Annotated

from pydantic import AliasPath, Field

from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.web.schemas import DoneBody, Time, View


class RungView(View):
    """A scope that a grant may have: which calls it lets run."""

    rung: GrantScope
    words: str


class ReachView(View):
    """An audience that a grant may have: whose calls it lets run, and where."""

    reach: GrantAudience
    words: str


class LadderBody(DoneBody):
    """The choices for a grant, a permission for similar calls."""

    ladder: list[RungView]
    reaches: list[ReachView]
    lasting: list[GrantDuration] = Field(description="how long it may hold")


class GrantView(View):
    """A grant: a permission for similar calls, given with the approval of a proposal."""

    label: Annotated[str, Field(validation_alias=AliasPath("grant", "label"))]
    tool_name: Annotated[str, Field(validation_alias=AliasPath("grant", "scope", "tool_name"))]
    words: Annotated[str, Field(validation_alias="description")]
    given_by: Annotated[str, Field(validation_alias=AliasPath("grant", "person_name"))]
    given_at: Annotated[Time, Field(validation_alias=AliasPath("grant", "created_at"))]
    expires_at: Annotated[Time | None, Field(validation_alias=AliasPath("grant", "expires_at"))]
    uses: Annotated[int, Field(validation_alias=AliasPath("grant", "uses"))]
    proposal_id: str = Field(
        validation_alias=AliasPath("grant", "proposal_id"),
        description="the id of the proposal with whose approval it was given",
    )


class Grants(DoneBody):
    grants: list[GrantView]
