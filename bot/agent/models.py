"""The configured models: the choice of the one that answers, and what is known of each while it runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from bot.agent.transcript import CHARACTERS_PER_TOKEN
from bot.domain.chat import Clock
from bot.domain.conversations import Transcript
from bot.domain.model import Model, ToolSpec
from bot.domain.named_models import NamedModel
from bot.domain.rules import Rulebook
from bot.errors import ModelError
from bot.store import people
from bot.telemetry.logs import logger

log = logger(__name__)

_MIN_CHARS_PER_TOKEN = 3  # the cautious estimate for a window that is known in tokens
_DEFAULT_HISTORY_TOKENS = 24_000  # of a model whose window is unknown
_HISTORY_SHARE = 1 / 4  # of the window that the history takes, unless a setting says more
_REQUEST_SHARE = 3 / 4  # of the window that a request may take; the answer needs the rest
_REST_PERIOD = timedelta(minutes=1)  # of a model that failed, while another answers in its place


class ModelFault(NamedTuple):
    """The last failure of a model: its message, and its time."""

    words: str
    at: datetime
    away: bool  # the model can't be reached, so another one may answer


class _Refusal(NamedTuple):
    """The refusal of a tool by a model's server."""

    spec: ToolSpec  # the tool as the server saw it
    why: str  # in the server's words


class Models:
    """The configured models, with what this process has learned about each of them.

    None of it is stored: each process learns it again.
    """

    def __init__(
        self, models: Sequence[Model], named: Sequence[NamedModel], clock: Clock, history: int | None = None
    ) -> None:
        """Take the models, the default one first, and the settings of those that have some.

        ``history``: the most tokens of history to send, as people set it.
        """
        self.default = models[0]
        self.by_name = {model.name: model for model in models}
        self.faults: dict[str, ModelFault] = {}
        self._refusals: dict[tuple[str, str], _Refusal] = {}  # by the names of model and tool
        self.writers: set[str] = set()  # names of those that write calls as text although told not to
        self._settings: Mapping[str, NamedModel] = {settings.name: settings for settings in named}
        self._clock = clock
        self._max_history_tokens = history
        self._accepted_chars: dict[str, int] = {}  # of a request that fitted after a longer one did not

    def describe(self, model: Model) -> NamedModel:
        """Return the settings of a model."""
        return self._settings.get(model.name) or NamedModel(model.name)

    @property
    def take_pictures(self) -> bool:
        """True if at least one model takes pictures."""
        return any(settings.images for settings in self._settings.values())

    def choose(self, session: Session, book: Rulebook, transcript: Transcript) -> Model:
        """Return the model for a conversation and its asker, by the rules.

        Raises ModelError if a rule names one that is not set up.
        """
        accounts = people.person_of(session, transcript.asker).accounts
        rule = book.model(str(transcript.conversation.origin), accounts)
        if rule is None:
            return self.default
        model = self.by_name.get(str(rule.value))
        if model is None:
            raise ModelError(
                f"An admin chose the model {rule.value} here (rule {rule.id}), and it is not set up. "
                f"They can add it to the file of models, or drop the rule."
            )
        return model

    def answering(self, model: Model) -> Model:
        """Return the model itself, or its stand-in if it could not be reached a moment ago."""
        fault = self.faults.get(model.name)
        if fault is None or not fault.away:
            return model
        if self._clock() - fault.at >= _REST_PERIOD:
            return model
        return self.stand_in(model) or model

    def stand_in(self, model: Model) -> Model | None:
        """Return the model that is set to answer when this one can't, or None."""
        return self.by_name.get(self.describe(model).fallback)

    def note(self, model: Model, error: ModelError | None) -> None:
        """Note that a model failed with ``error``, or with None that it answered.

        The log gets a line when the reason changes, and one when the model answers again.
        """
        previous = self.faults.pop(model.name, None)
        if error is None:
            if previous:
                log.info("the language model answers again", model=model.name)
            return
        self.faults[model.name] = ModelFault(error.message, self._clock(), error.away)
        if previous is None or previous.words != error.message:
            log.error("the language model gives no answers", model=model.name, why=error.message)

    def note_refused(self, model: Model, tools: Mapping[str, str], specs: Sequence[ToolSpec]) -> None:
        """Note which tools a model's server refuses. ``tools``: the server's reason by a tool's name."""
        by_name = {spec.name: spec for spec in specs}
        for name, why in tools.items():
            if name in by_name:
                self._refusals[model.name, name] = _Refusal(by_name[name], why)

    def find_refusals(self, spec: ToolSpec) -> tuple[str, ...]:
        """Return the models whose servers refuse a tool, each with its reason in the server's words.

        A refusal of an earlier specification of the tool does not count.
        """
        models = []
        for (model_name, _), refusal in self._refusals.items():
            if refusal.spec == spec:
                models.append(f"{model_name} ({refusal.why})")
        return tuple(models)

    def room(self, model: Model, specs_chars: int) -> int:
        """Return the most characters of history for a model whose tools' specifications take ``specs_chars``.

        The lowest limit counts: of the settings, of the model's window, of what it is known to accept.
        """
        window_tokens = self.describe(model).window or 0
        default_tokens = max(_DEFAULT_HISTORY_TOKENS, int(window_tokens * _HISTORY_SHARE))
        limit = (self._max_history_tokens or default_tokens) * CHARACTERS_PER_TOKEN
        if window_tokens:
            request_tokens = int(window_tokens * _REQUEST_SHARE)
            limit = min(limit, request_tokens * _MIN_CHARS_PER_TOKEN - specs_chars)
        if model.name in self._accepted_chars:
            limit = min(limit, self._accepted_chars[model.name] - specs_chars)
        return limit

    def note_accepted(self, model: Model, request_chars: int) -> None:
        """Note that a model takes a request of this size, after it refused a longer one. Tools count."""
        self._accepted_chars[model.name] = request_chars
