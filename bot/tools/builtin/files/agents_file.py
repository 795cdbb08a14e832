"""``AGENTS.md`` in the workspace: what its owner says about working there, for the agent's prompt."""

from pathlib import Path

from bot.domain.text import replace_unstorable, shorten
from bot.errors import ToolError
from bot.telemetry.logs import logger
from bot.tools.builtin.files.workspace import ConfinedFolder, decode_text

_NAME = "AGENTS.md"
_MAX_CHARS = 8_000  # the beginning that is read

log = logger(__name__)


class AgentsFile:
    """The file, in the form of https://agents.md: plain Markdown.

    It is data of the workspace, so nothing in it approves anything. It is read for each prompt, and a change
    since the last time is logged.
    """

    def __init__(self, workspace: Path) -> None:
        self._confined = ConfinedFolder(workspace)
        self._logged = ""
        """The text, or the reason for having none, that was logged last."""

    def read(self) -> str:
        """Return the file's text, shortened; empty for none. Blocks, and never raises."""
        text, trouble = self._read_text()
        outcome = trouble or text
        if outcome and outcome != self._logged:
            log.info("AGENTS.md of the workspace", characters=len(text), left_out=trouble)
        self._logged = outcome
        return text

    def _read_text(self) -> tuple[str, str]:
        """Return the text, and why it is missing although there is a file."""
        try:
            if self._confined.find_entry((_NAME,)) is None:
                return "", ""
            content = decode_text(self._confined.read((_NAME,)))
        except ToolError as error:
            return "", error.message
        if not content.is_text:
            return "", "it is not text"
        return shorten(replace_unstorable(content.text).strip(), _MAX_CHARS), ""
