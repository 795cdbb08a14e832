"""Every error that Nod raises on purpose.

A class's docstring is its default message, which people read. Classes with an ``__init__`` of their own write
the message there.

NodError
├── SettingsError        a setting is wrong or missing; the message names it and says how to fix it
├── LostRace             another transaction changed the row first; `Database.write` then repeats its own
├── UnknownCard          no row says that the pressed message is a card of that proposal
├── TakenOver            another process has taken over this turn, so this process must not continue it
├── LeasedElsewhere      another process holds the lease for this work; ``owner`` is its id
├── ToolError            a tool refuses or fails in a way worth telling the model and people
│   ├── BadArguments     the arguments do not fit the tool's schema; ``fields`` says where
│   ├── PermanentRefusal asking again with the same arguments cannot help
│   ├── Disconnected     the account in whose name the call was to run is no longer connected
│   ├── UnknownTool      the model asked for a tool that does not exist
│   ├── CallRefused      the rules let no one decide it, so it cannot be asked for
│   ├── TooManyCalls     this person has asked for more than anyone may
│   ├── KeyTaken         the idempotency key belongs to another request
│   └── ToolTimedOut     the tool did not answer within its limit
├── ModelError           the model's server could not give an answer; the message is for people
│   ├── ModelTooLong     the request was longer than the model takes; a shorter one may be answered
│   ├── ModelTooManySteps      a turn took more calls of the model than it may
│   ├── ModelTooManyQuestions  the model asked people once more after it was told to stop asking
│   ├── ModelOverBudget  a budget of tokens or money is used up; ``choices`` say what people may do
│   ├── ModelCut         the answer was cut off in the middle; asking again may help
│   └── ModelEmpty       the answer held no text and no call; asking again may help
├── SignInError          signing in at an MCP server failed; the message says what to do
├── SecretLost           no key of NOD_SECRET_KEY opens what is stored
└── ChannelError         a platform refused or could not be reached
    ├── NotDeliverable   it will never arrive there (left, blocked, archived)
    └── CopyGone         the posted copy no longer exists or can no longer be edited
"""


class NodError(Exception):
    """Something went wrong in a way Nod can explain."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)

    @property
    def message(self) -> str:
        return str(self.args[0])


class SettingsError(NodError):
    """A setting is wrong or missing."""


class LostRace(NodError):
    """Several people did this at the same moment. Please try again."""


class UnknownCard(NodError):
    """This card does not show that proposal. Nothing was changed."""


class TakenOver(NodError):
    """Another process has taken this over."""


class LeasedElsewhere(NodError):
    """Another process holds the lease to do this; ``owner`` is its id."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"process {owner} does this")
        self.owner = owner


class ToolError(NodError):
    """The tool could not do this."""


class BadArguments(ToolError):
    """The arguments do not fit the tool.

    ``fields`` maps a field's dotted name to what is wrong with it, in words.
    """

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields
        super().__init__(" ".join(f"{name}: {words.removesuffix('.')}." for name, words in fields.items()))


class PermanentRefusal(ToolError):
    """The tool refuses, and would refuse again."""


class UnknownTool(ToolError):
    """There is no tool of that name."""


class Disconnected(ToolError):
    """The account in whose name this was to run is no longer connected."""


class CallRefused(ToolError):
    """The rules do not let this be asked for."""


class TooManyCalls(ToolError):
    """You have asked for a lot in a short time. Try again later."""


class KeyTaken(ToolError):
    """This idempotency key was used for another request; use a new one."""


class ToolTimedOut(ToolError):
    """The tool did not answer in time."""


class ModelError(NodError):
    """The language model could not answer. Send “continue” to try again."""

    window: int | None = None  # the number of tokens that the model takes, if its server said that
    is_transient = False  # True: the same request may be answered later
    # True: the server did not say why it refused the request, so the request may have been too long. One with
    # half of the history may be accepted.
    may_be_too_long = False
    # True: the model's server is down or over its limit, so another model may answer
    other_model_may_answer = False
    choices: tuple[str, ...] = ("Try again",)  # the buttons by which people answer the message


class ModelTooLong(ModelError):
    """This conversation doesn't fit the model. Set NOD_HISTORY_TOKENS lower, or start a new one."""

    choices = ()


class ModelTooManySteps(ModelError):
    """I stopped, as this was taking too many steps. Send “continue”, or break it into smaller requests."""

    choices = ("Continue",)


class ModelTooManyQuestions(ModelError):
    """I've asked as many questions as I may for one request. Write what I should know."""

    choices = ()


class ModelOverBudget(ModelError):
    """A budget is used up."""

    def __init__(self, message: str, choices: tuple[str, ...]) -> None:
        super().__init__(message)
        self.choices = choices


class ModelCut(ModelError):
    """The language model's answer was cut off."""

    is_transient = other_model_may_answer = True
    has_reason = False  # True: the server or the answer says why it was cut off


class ModelEmpty(ModelError):
    """The language model gave an empty answer. Send “continue”, or phrase it differently."""


class SignInError(NodError):
    """Signing in failed. Start it again."""


class SecretLost(NodError):
    """No key of NOD_SECRET_KEY opens this."""


class ChannelError(NodError):
    """The chat platform did not accept this."""

    arrived = 0  # the number of posts of a long text that the platform accepted before this error


class NotDeliverable(ChannelError):
    """This can never arrive there."""


class CopyGone(ChannelError):
    """The posted card no longer exists."""
