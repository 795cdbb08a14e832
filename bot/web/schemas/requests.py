"""Bodies about the requests of scripts: proposals whose outcome a program reads."""

from typing import Annotated, Any, Self

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from bot.approvals.lookup.proposals import VisibleRequest
from bot.domain.outcomes import name_outcome
from bot.domain.people import AGENTS, Actor
from bot.web.schemas import DoneBody, OrNull, Time, View, is_none
from bot.web.schemas.proposals import ProposalView


class CallbackView(View):
    """The webhook of a request."""

    url: str
    attempts: int = Field(description="how often Nod tried to send it the outcome")
    told_at: Time | None = Field(description="when it got the outcome")
    given_up: bool = Field(description="Nod no longer tries")
    error: Annotated[str | None, OrNull, Field(validation_alias="fault")]


class RequestView(ProposalView):
    """A script's request: a proposal with more fields."""

    end: str = Field(
        description="`waiting`, `approved`, `declined`, `expired`, `cancelled`, `undeliverable`, `failed` or "
        "`outcome_unknown`"
    )
    callback: CallbackView | None = Field(description="its webhook, or null")
    arguments: dict[str, Any] | SkipJsonSchema[None] = Field(
        None,
        exclude_if=is_none,
        description="only for the account or the program that asked, which acts on them: "
        "edits included, secrets not hidden",
    )

    @classmethod
    def of_request(cls, found: VisibleRequest, actor: Actor) -> Self:
        """Return the view for ``actor``; only the account or the program that asked gets the arguments."""
        proposal = found.view.proposal
        is_asking_agent = proposal.agent is not None and str(actor) == f"{AGENTS}:{proposal.agent}"
        more: dict[str, Any] = {}
        if is_asking_agent or actor == proposal.requester:
            more["arguments"] = proposal.arguments
        if found.webhook:
            callback = CallbackView.model_validate(found.webhook)
        else:
            callback = None
        return cls.of_found(found.view, end=name_outcome(proposal), callback=callback, **more)


class OneRequest(DoneBody):
    proposal: RequestView
