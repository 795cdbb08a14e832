# the types of what __init__.py looks up when it is used

from bot.channels.card_text import card_text as card_text
from bot.channels.card_text import team_text as team_text
from bot.channels.kinds import ChannelKind as ChannelKind
from bot.channels.kinds import Platform as Platform
from bot.channels.streamed_message import StreamedMessage as StreamedMessage
from bot.domain.chat import Address as Address
from bot.domain.chat import Command as Command
from bot.domain.chat import Message as Message
from bot.domain.chat import Press as Press
from bot.domain.files import File as File
from bot.domain.people import Actor as Actor
from bot.domain.preview import PreviewField as PreviewField
from bot.domain.risks import Level as Level
from bot.domain.risks import Risk as Risk
from bot.domain.similarity import GrantDuration as GrantDuration
from bot.domain.similarity import GrantScope as GrantScope
from bot.domain.verbs import Verb as Verb
from bot.errors import ChannelError as ChannelError
from bot.errors import CopyGone as CopyGone
from bot.errors import NotDeliverable as NotDeliverable
from bot.errors import ToolError as ToolError
from bot.tools.call import CallContext as CallContext
from bot.tools.call import InverseCall as InverseCall
from bot.tools.call import Ran as Ran
from bot.tools.call import ToolOutput as ToolOutput
from bot.tools.decorator import tool as tool
from bot.tools.trial import TrialOutput as TrialOutput

__version__: str
