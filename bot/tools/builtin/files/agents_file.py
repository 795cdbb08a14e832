"""``AGENTS.md`` in the workspace: what its owner says about working there, for the agent's prompt.

Its form is that of https://agents.md: plain Markdown. It is data of the workspace, so nothing in it approves
anything.
"""

from pathlib import Path

from bot.domain.text import shortened, storable
from bot.errors import ToolError
from bot.telemetry.logs import logger
from bot.tools.builtin.files.workspace import ConfinedFolder, as_text

log = logger(__name__)

NAME = "AGENTS.md"
LONGEST = 8_000
"""Characters of it that are read."""


class AgentsFile:
    """Reads it, again each time; the log has what is new of it."""

    def __init__(self, workspace: Path) -> None:
        self._confined = ConfinedFolder(workspace)
        self._said = ""

    def read(self) -> str:
        """What it says, cut where it is too long; empty for none. Blocks, and never raises."""
        try:
            there = self._confined.look((NAME,)) is not None
            found = as_text(self._confined.read((NAME,))) if there else None
            text = shortened(storable(found.text).strip(), LONGEST) if found and found.whole else ""
            why = "it is not text" if found and not found.whole else ""
        except ToolError as error:
            text, why = "", error.message
        if (said := why or text) and said != self._said:
            log.info("AGENTS.md of the workspace", characters=len(text), left_out=why)
        self._said = said
        return text
