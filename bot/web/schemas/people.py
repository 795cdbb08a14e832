"""Bodies about people: their accounts, their roles and their absences."""

from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from bot.domain.people import Role
from bot.web.schemas import DoneBody, Time, View


class RoleView(View):
    role: Role
    since: Time | None = Field(description="null for a role that the settings give")


class AccountView(View):
    account: str
    name: str
    linked_at: Time | None = Field(description="null for an account that is linked with no other")
    roles: list[RoleView]


class AwayView(View):
    """Someone who is away, and who may decide in their place."""

    account: Annotated[str, BeforeValidator(str)] = Field(
        validation_alias="absent", description="the account that is away"
    )
    until: Time
    stand_in: Annotated[str, BeforeValidator(str)] = Field(description="the account that may decide")
    name: str = Field(validation_alias=AliasPath("stand_in", "label"), description="the stand-in's name")


class PersonView(View):
    """One person: all their accounts together have one vote, and the roles of each."""

    id: str
    you: bool
    accounts: list[AccountView]
    away: AwayView | None = Field(description="null while they are not away")


class People(DoneBody):
    everyone: bool
    people: list[PersonView]
