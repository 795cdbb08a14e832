"""An Enterprise Grid organisation: whose Nod is, in which fields Slack says so, and who its people are.

Written down from Slack's documentation (developing for Enterprise orgs) and the payloads in bolt's tests.
"""

from dataclasses import dataclass, field
from typing import Any

ORG = "E1"
HOME, SISTER = "T1", "T2"  # workspaces of the organisation
PEOPLE = {"W7": "Ana", "W8": "Ben", "W9": "Cleo", "U99": "Eve"}


@dataclass
class Grid:
    """The workspaces of organisations, and as what Nod is installed: a workspace, or an organisation."""

    installed: str = HOME
    org_of: dict[str, str] = field(default_factory=dict)
    bots: dict[str, tuple[str, str]] = field(default_factory=dict)  # user and bot id by installation

    @property
    def wide(self) -> bool:
        return is_org(self.installed)

    def authorized(self, installed: str, bot_user: str) -> dict[str, Any]:
        """What stands in the ``authorizations`` of an event."""
        wide = is_org(installed)
        return {
            "enterprise_id": installed if wide else self.org_of.get(installed),
            "team_id": None if wide else installed,
            "user_id": bot_user,
            "is_bot": True,
            "is_enterprise_install": wide,
        }

    def envelope(self, installed: str, where: str) -> dict[str, Any]:
        """Where an event happened, apart from whose it is."""
        happened = where if is_org(installed) else installed
        org = self.org_of.get(happened)
        return {"team_id": happened} | ({"enterprise_id": org} if org else {})

    def pressed(self, home: str) -> dict[str, Any]:
        """What a press says of tenants: no workspace in an organisation's, else the one the person is of."""
        if self.wide:
            named = {"id": self.installed, "name": "Acme Group"}
            return {"team": None, "enterprise": named, "is_enterprise_install": True}
        org = self.org_of.get(home)
        team = {"id": home, "domain": home.lower()}
        if org is None:
            return {"team": team, "enterprise": None, "is_enterprise_install": False}
        team |= {"enterprise_id": org, "enterprise_name": "Acme Group"}
        return {"team": team, "enterprise": {"id": org, "name": "Acme Group"}, "is_enterprise_install": False}

    def commanded(self, home: str) -> dict[str, Any]:
        """The same of a slash command, which is a form: all of it is text."""
        org = self.org_of.get(home)
        said = {"team_id": home, "is_enterprise_install": "true" if self.wide else "false"}
        return said | ({"enterprise_id": org, "enterprise_name": "Acme Group"} if org else {})


def is_org(installed: str) -> bool:
    return installed.startswith("E")


def person_of(home: str, *teams: str, org: str = ORG) -> dict[str, Any]:
    """What users.info says of a person of an organisation."""
    belongs = {"id": "", "enterprise_id": org, "enterprise_name": "Acme Group", "teams": [home, *teams]}
    return {"team_id": home, "enterprise_user": belongs}


RECORDS = {
    "W7": person_of(HOME),
    "W8": person_of(HOME, SISTER),
    "W9": person_of(SISTER),
    "U99": {"team_id": "T9"},
}
"""Ana and Ben are of the first workspace, Cleo of the other one alone, Eve of another company."""
