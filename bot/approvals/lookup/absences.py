"""The list of absences as text. While someone is absent, a stand-in may decide in their place."""

from sqlmodel import Session

from bot.domain.people import Actor, Role
from bot.store import people
from bot.store.rules import Policies


def format_absences(session: Session, policies: Policies, actor: Actor) -> str:
    """Return the absences that concern a person as text, a line for each; for an admin all absences."""
    policy, person = policies.load_with_person(session, actor)
    is_admin = Role.ADMIN in policy.roles_of(person)
    lines = []
    for absence in policy.absences:
        concerned = {str(absence.absent), str(absence.stand_in)}
        if is_admin or not person.accounts.isdisjoint(concerned):
            until = absence.format_end(policy.rulebook.zone)
            stand_in = absence.stand_in.label
            lines.append(
                f"- {absence.absent.label} is away until {until}: {stand_in} may decide what they may"
            )
    return people.put_names_in(session, "\n".join(lines))
