# the types of what __init__.py looks up when it is used

from bot.domain.files import File as File
from bot.domain.proposals import PreviewField as PreviewField
from bot.domain.risk import Level as Level
from bot.domain.risk import Risk as Risk
from bot.errors import ToolError as ToolError
from bot.tools.tool import CallContext as CallContext
from bot.tools.tool import ToolOutput as ToolOutput
from bot.tools.tool import tool as tool

__version__: str
