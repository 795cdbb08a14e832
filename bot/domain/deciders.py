"""The people who may decide a proposal: the rule that is frozen with it, and its words on a card.

``bot/domain/policy.py`` makes this rule, and tells if a person may decide by it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.domain.people import NO_NAMES, Actor, Names, is_group


@dataclass(frozen=True, slots=True)
class DeciderNames:
    """The people who may decide, as a card names them. It is made of `Deciders`, the rule."""

    members: tuple[Actor | str, ...]  # accounts; roles, groups and chats in words
    except_name: str = ""  # the name of the person who may not decide, although the members include them
    stand_ins: tuple[str, ...] = ()  # people who decide for others, such as ``Ben for Ana``

    @property
    def parts(self) -> list[Actor | str]:
        """The pieces of `text`: accounts, which channels mention, and the texts between them."""
        deciders = [*self.members, *self.stand_ins]
        if not deciders:
            return ["no one"]
        parts: list[Actor | str] = []
        for position, decider in enumerate(deciders, 1):
            if 1 < position == len(deciders):
                parts.append(" or ")
            elif position > 1:
                parts.append(", ")
            parts.append(decider)
        if self.except_name:
            parts.append(f", but not {self.except_name}")
        return parts

    @property
    def text(self) -> str:
        """For example ``Ana, any approver or any admin``."""
        return "".join(part.label if isinstance(part, Actor) else part for part in self.parts)


@dataclass(frozen=True, slots=True)
class Deciders:
    """The rule on who may decide, frozen with the proposal so that its card stays true."""

    requester: bool  # the requester may decide
    roles: tuple[str, ...] = ()  # people with one of these roles may
    people: tuple[str, ...] = ()  # these accounts and user groups may
    members: str | None = None  # the address of a chat, as text, in which anyone may decide
    four_eyes: bool = False  # the requester may not approve it
    # for a plan that the lead agent may decide, too: "lead" or "both", as in `bot.domain.plans.Approver`
    lead: str | None = None
    escalated: str | None = None  # the first of `escalation_chats`
    place: str | None = None  # the place of the request, since some roles count only in some places
    # the other `escalation_chats`; a field apart, since earlier releases read only ``escalated`` from a row
    also_escalated: tuple[str, ...] = ()

    @property
    def escalation_chats(self) -> tuple[str, ...]:
        """The chats, as addresses, in which anyone may decide because no one did in time."""
        first = (self.escalated,) if self.escalated else ()
        return (*first, *self.also_escalated)

    def escalate(self, roles: Iterable[str], targets: Sequence[str]) -> "Deciders":
        """Return the deciders with further roles, and with the people at ``targets``.

        A target is a user group, the address of a chat, or an account, which is kept like a chat.
        """
        groups = [target for target in targets if is_group(target)]
        others = [target for target in targets if target not in groups]
        chats = tuple(dict.fromkeys((*self.escalation_chats, *others)))
        return replace(
            self,
            roles=tuple(dict.fromkeys((*self.roles, *roles))),
            people=tuple(dict.fromkeys((*self.people, *groups))),
            escalated=chats[0] if chats else None,
            also_escalated=chats[1:],
        )

    def list_named(self, requester: Actor) -> tuple[Actor, ...]:
        """Return the accounts that may decide by name, not by a role. Reminders mention them."""
        asker = (requester,) if self.requester and not self.four_eyes else ()
        people = [Actor.parse(name) for name in self.people if _is_account(name)]
        return tuple(dict.fromkeys((*asker, *people)))

    def make_names(
        self, requester: str, *, chat: str = "this chat", names: Names = NO_NAMES
    ) -> "DeciderNames":
        """Return the deciders as people read them.

        ``requester``: the requester's name. ``chat``: the chat of the request, as the reader would call it.
        """
        members: list[Actor | str] = []
        if self.requester and not self.four_eyes:
            members.append(requester)
        members += [f"any {role}" for role in self.roles]
        for name in self.people:
            members.append(Actor.parse(name, names.get(name, "")) if _is_account(name) else name)
        if self.members:
            members.append(f"anyone in {chat}")
        if self.also_escalated:
            members.append("anyone in the chats it was escalated to")
        elif self.escalated:
            members.append("anyone in the chat it was escalated to")
        # the requester is not among named accounts, but may have one of the roles or be a member
        are_all_accounts = all(isinstance(member, Actor) for member in members)
        may_seem_to_decide = self.four_eyes and not are_all_accounts
        return DeciderNames(tuple(members), except_name=requester if may_seem_to_decide else "")

    def describe(self, requester: str, *, elsewhere: bool = False) -> str:
        """Return the deciders in words, for example ``Ana, any approver or any admin``.

        ``elsewhere``: read outside the originating chat.
        """
        chat = "the chat where it was asked" if elsewhere else "this chat"
        return self.make_names(requester, chat=chat).text


def _is_account(name: str) -> bool:
    """Tell if a decider is named by an account, such as ``slack:T1/U1``, and not by another word."""
    return ":" in name.strip(":")
