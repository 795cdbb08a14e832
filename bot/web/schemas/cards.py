"""Parts of a card, as bodies: its changes, its buttons, the fields of its edit form, and other lines."""

from typing import Annotated, Any, Self

from pydantic import AliasPath, Field

from bot.domain.cards import Card
from bot.domain.connections import Identity
from bot.domain.diffs import diff
from bot.domain.forms import Shape
from bot.domain.preview import PreviewField
from bot.domain.verbs import Look, Needs, Verb
from bot.web.schemas import OrNull, Time, View


class ChangeBody(View):
    """One value that changes."""

    field: str
    old_value: str | None
    new_value: str | None
    in_title: bool = Field(description="the title quotes all of it")
    diff: str | None = Field(
        description="the difference of two texts of several lines; its lines begin with `-`, `+` or a blank, "
        "and those with `…` count lines that stay the same"
    )

    @classmethod
    def of_change(cls, card: Card, change: PreviewField) -> Self:
        old, new = change.old_value, change.new_value
        return cls(
            field=change.field,
            old_value=old,
            new_value=new,
            in_title=card.quotes(change),
            diff=diff(old, new),
        )


class AnnotationView(View):
    """A line that a part of Nod adds under its own name."""

    name: str
    text: str
    late: bool = Field(validation_alias="is_late", description="it came after the card was posted")


class ConnectionView(View):
    """The account at a server in whose name a call runs."""

    server: str = Field(description="the name of the MCP server")
    identity: Identity = Field(description="whose account it is")
    owner: str = Field(description="the account or the chat here that it belongs to")
    owner_name: Annotated[str, Field(validation_alias="owner_label")]
    name: str = Field(description="what the server calls the account; empty if it does not say")
    subject: str = Field(description="the server's id of the account; empty if it gives none")
    words: str = Field(validation_alias="acts_as", description="the account as a card names it")


class GroupView(View):
    """The single proposals of one answer, which can be decided together."""

    size: int = Field(description="the number of these proposals")
    open: int = Field(validation_alias="open_count", description="the number of those that are open")
    round: int = Field(description="the sum of their rounds; changes with the contents of any")


class BatchPlaceView(View):
    """The place of a row in its batch."""

    id: str
    size: int = Field(description="how many rows the batch has")
    position: int = Field(description="from 1")


class FieldView(View):
    """One argument in the edit form."""

    name: str
    label: str
    shape: Shape = Field(description="the kind of input that the form has for it")
    description: str
    required: bool
    nullable: bool
    value: Any
    default: Any
    options: list[Any]
    multiline: bool
    secret: bool


class SureView(View):
    """A question that is asked before a press counts, and the labels of its two answers."""

    question: str
    yes: str = Field(description="the label that confirms the press")
    no: str = Field(description="the label that cancels the press")
    more: str = Field(
        validation_alias="warning", description="what to know first; before Undo, what it puts back"
    )


class ButtonView(View):
    verb: Verb
    label: str
    doing: str = Field(validation_alias="busy_label", description="the label while it works")
    needs: Needs = Field(description="the input that it asks for first")
    question: str | None = Field(
        None,
        validation_alias=AliasPath("text_question", "question"),
        description="asks for the words that go with the press; null if it needs none",
    )
    hint: str | None = Field(
        None,
        validation_alias=AliasPath("text_question", "hint"),
        description="what becomes of these words",
    )
    look: Look = Field(description="its emphasis")
    sure: SureView | None = Field(
        validation_alias="confirmation",
        description="asked before what can't be undone, before Undo, and before Retry of what may have "
        "happened; else null",
    )
    rare: bool = Field(
        validation_alias="is_in_menu", description="it may be in a menu instead of on the card"
    )


class ResultField(View):
    """One field of a result that is a JSON object, as people read it."""

    label: str
    value: str


class RereadView(View):
    """A field of the changed thing, read again after the run. Long values are cut."""

    field: str
    now: str | None = Field(description="the value that was read")
    approved: str | None = Field(description="the value that was approved")
    agrees: bool = Field(description="it still has the approved value")


class PlanLineView(View):
    """A line of a plan: its summary, a step, a removed part, the risks or the alternatives."""

    text: str
    number: Annotated[int | None, OrNull] = Field(description="the number of a step; else null")
    label: str = Field(description="the label of a line that is no step; the summary has none")
    tools: list[str] = Field(description="the tools of a step that its text does not name")
    mark: str = Field(description="how it differs from the version before")


class StepView(View):
    """A step: one of those who are told, one after another, while no one decides."""

    to: str = Field(validation_alias="target", description="a notifier, a place, an account or a group")
    at: Time = Field(validation_alias="due_at", description="when it is due")
    is_over: bool = Field(description="its time has come")
