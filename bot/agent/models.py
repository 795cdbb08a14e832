"""The configured models: which one answers where, and which one fails now."""

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
_DEFAULT_HISTORY_TOKENS = 24_000  # where neither a setting nor a window says another
_REST_PERIOD = timedelta(minutes=1)  # of a model that failed, while another answers in its place


class ModelFault(NamedTuple):
    """The last failure of a model: its message, and its time."""

    words: str
    at: datetime
    away: bool  # another model may answer


class Models:
    """The configured models: which one answers, what it can take, and its last failure.

    All of that is known to this process alone. Rows and rules hold what all processes must agree on.
    """

    def __init__(
        self, models: Sequence[Model], named: Sequence[NamedModel], clock: Clock, history: int | None = None
    ) -> None:
        """``models`` begin with the default one. ``history``: the most tokens of it that people want sent."""
        self.default = models[0]
        self.by_name = {model.name: model for model in models}
        self.faults: dict[str, ModelFault] = {}
        self._refused: dict[tuple[str, str], tuple[ToolSpec, str]] = {}  # by model and tool
        self.writers: set[str] = set()  # names of those that write calls as text although told not to
        self._named: Mapping[str, NamedModel] = {settings.name: settings for settings in named}
        self._clock, self._history = clock, history
        self._fits: dict[str, int] = {}  # characters of a request that a model is known to take

    def describe(self, model: Model) -> NamedModel:
        """Return the settings of a model."""
        return self._named.get(model.name) or NamedModel(model.name)

    @property
    def take_pictures(self) -> bool:
        """True if at least one model takes pictures."""
        return any(settings.images for settings in self._named.values())

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
        """Return the model itself, or the one that stands in for it while it has just failed."""
        fault = self.faults.get(model.name)
        if fault is None or not fault.away or self._clock() - fault.at >= _REST_PERIOD:
            return model
        return self.stand_in(model) or model

    def stand_in(self, model: Model) -> Model | None:
        """Return the model that is named to answer when this one can't."""
        return self.by_name.get(self.describe(model).fallback)

    def note(self, model: Model, error: ModelError | None) -> None:
        """Note a model's failure, or with None that it answers. Each new reason is logged, and the end."""
        previous = self.faults.pop(model.name, None)
        if error:
            self.faults[model.name] = ModelFault(error.message, self._clock(), error.away)
        if error and (previous is None or previous.words != error.message):
            log.error("the language model gives no answers", model=model.name, why=error.message)
        elif previous and not error:
            log.info("the language model answers again", model=model.name)

    def note_refused(self, model: Model, tools: Mapping[str, str], specs: Sequence[ToolSpec]) -> None:
        """Note which tools a model's server refuses, and why, until their specifications change."""
        by_name = {spec.name: spec for spec in specs}
        for name, why in tools.items():
            if name in by_name:
                self._refused[model.name, name] = by_name[name], why

    def find_refusals(self, spec: ToolSpec) -> tuple[str, ...]:
        """Return the models whose servers refuse a tool, each with its reason in the server's words."""
        refusals = [
            (model, *spec_and_reason)
            for (model, name), spec_and_reason in self._refused.items()
            if name == spec.name
        ]
        return tuple(f"{model} ({why})" for model, refused, why in refusals if refused == spec)

    def room(self, model: Model, specs_chars: int) -> int:
        """Return the most characters of history for a model whose tools' specifications take ``specs_chars``.

        The lowest limit counts: of the settings, of the model's window, of what it is known to accept.
        """
        window = self.describe(model).window or 0
        limit = (self._history or max(_DEFAULT_HISTORY_TOKENS, window // 4)) * CHARACTERS_PER_TOKEN
        if window:
            limit = min(limit, window * 3 // 4 * _MIN_CHARS_PER_TOKEN - specs_chars)
        if model.name in self._fits:
            limit = min(limit, self._fits[model.name] - specs_chars)
        return limit

    def fits(self, model: Model, characters: int) -> None:
        """Note that a model takes a request of so many characters, tools included."""
        self._fits[model.name] = characters
