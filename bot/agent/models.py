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

_LEAST_PER_TOKEN = 3  # characters, for a window that is known in tokens
_HISTORY = 24_000  # tokens, where neither a setting nor a window says another
_LEFT_ALONE = timedelta(minutes=1)  # a model that failed, where another answers in its place


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
        self, there: Sequence[Model], named: Sequence[NamedModel], clock: Clock, history: int | None = None
    ) -> None:
        """``there`` begins with the default one. ``history``: the most tokens of it that people want sent."""
        self.default = there[0]
        self.by_name = {each.name: each for each in there}
        self.faults: dict[str, ModelFault] = {}
        self._refused: dict[tuple[str, str], tuple[ToolSpec, str]] = {}  # by model and tool
        self.writers: set[str] = set()  # those that write their calls as text though they were told not to
        self._named: Mapping[str, NamedModel] = {each.name: each for each in named}
        self._clock, self._history = clock, history
        self._fits: dict[str, int] = {}  # characters of a request that a model is known to take

    def describe(self, model: Model) -> NamedModel:
        """Return the settings of a model."""
        return self._named.get(model.name) or NamedModel(model.name)

    @property
    def take_pictures(self) -> bool:
        """True if one of them does."""
        return any(each.images for each in self._named.values())

    def choose(self, session: Session, book: Rulebook, transcript: Transcript) -> Model:
        """Return the model for who asks there, by the rules; raises ModelError for one that is gone."""
        accounts = people.person_of(session, transcript.asker).accounts
        rule = book.model(str(transcript.conversation.origin), accounts)
        if rule is None:
            return self.default
        found = self.by_name.get(str(rule.value))
        if found is None:
            raise ModelError(
                f"An admin chose the model {rule.value} here (rule {rule.id}), and it is not set up. "
                f"They can add it to the file of models, or drop the rule."
            )
        return found

    def answering(self, model: Model) -> Model:
        """Return the model itself, or the one that stands in for it while it has just failed."""
        fault = self.faults.get(model.name)
        just = fault is not None and fault.away and self._clock() - fault.at < _LEFT_ALONE
        if just:
            return self.stand_in(model) or model
        return model

    def stand_in(self, model: Model) -> Model | None:
        """Return the model that is named to answer when this one can't."""
        return self.by_name.get(self.describe(model).fallback)

    def note(self, model: Model, error: ModelError | None) -> None:
        """Keep whether a model answers; the log has each new reason that it does not, and the end."""
        before = self.faults.pop(model.name, None)
        if error:
            self.faults[model.name] = ModelFault(error.message, self._clock(), error.away)
        if error and (before is None or before.words != error.message):
            log.error("the language model gives no answers", model=model.name, why=error.message)
        elif before and not error:
            log.info("the language model answers again", model=model.name)

    def note_refused(self, model: Model, tools: Mapping[str, str], specs: Sequence[ToolSpec]) -> None:
        """Keep which tools a model's server refuses, and why, as long as they are what they are now."""
        by_name = {spec.name: spec for spec in specs}
        for name, why in tools.items():
            if name in by_name:
                self._refused[model.name, name] = by_name[name], why

    def find_refusals(self, spec: ToolSpec) -> tuple[str, ...]:
        """Return the models whose servers refuse a tool, each with its reason in the server's words."""
        found = [(model, *kept) for (model, name), kept in self._refused.items() if name == spec.name]
        return tuple(f"{model} ({why})" for model, refused, why in found if refused == spec)

    def room(self, model: Model, offered: int) -> int:
        """Return the characters of history that a model gets, where its tools take ``offered``.

        The limit is the settings', the model's window, or what it is known to have accepted.
        """
        window = self.describe(model).window or 0
        most = (self._history or max(_HISTORY, window // 4)) * CHARACTERS_PER_TOKEN
        takes = [window * 3 // 4 * _LEAST_PER_TOKEN] if window else []
        takes += [self._fits[model.name]] if model.name in self._fits else []
        return min([most, *(each - offered for each in takes)])

    def fits(self, model: Model, characters: int) -> None:
        """Note that a model takes a request of so many characters, tools included."""
        self._fits[model.name] = characters
