"""Who did something: an `Actor` as a channel knows them, and the `Person` behind one or more Actors."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self


@dataclass(frozen=True, slots=True)
class Actor:
    """An account in a channel, written ``slack:T1/U7``, ``telegram:991``, ``http:ci``; equal by that."""

    channel: str
    key: str
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.channel}:{self.key}"

    @property
    def label(self) -> str:
        """The name people know, or the account where none is known."""
        return self.name or str(self)

    @classmethod
    def parse(cls, text: str, name: str = "") -> Self:
        """Read ``channel:key``; raises ValueError when there is no colon or an empty half."""
        channel, colon, key = text.strip().partition(":")
        if not (colon and channel and key):
            raise ValueError(f"{text!r} is not of the form channel:account")
        return cls(channel, key, name)


@dataclass(frozen=True, slots=True)
class Person:
    """One human; votes and self-approval are counted by ``id``, whatever account was used."""

    id: str
    name: str = field(default="", compare=False)
    accounts: frozenset[str] = field(default=frozenset(), compare=False)  # Actors, as text


LOCAL = Actor("http", "local", "you")
"""Whoever sits at this machine, where no token is configured."""


class Role(StrEnum):
    """What a Person may be beyond the requester of something."""

    ADMIN = "admin"  # may decide anything and change the rules
    APPROVER = "approver"  # may decide what others asked for
