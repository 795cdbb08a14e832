"""The configured models: the choice of the model that answers, and each model's faults and limits.

A rule may name a model for a place or a person; otherwise the first model answers. A model may have a
stand-in, another model that answers while the first can't be reached. `Models` also keeps what this process
has learned from the answers: the last failure of each model, the tools that its server refuses, and how much
history it takes. The agent loop asks it before and after each request.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from bot.agent.history import CHARACTERS_PER_TOKEN
from bot.domain.chat import Clock
from bot.domain.conversations import Transcript
from bot.domain.model import Model, ToolSpec
from bot.domain.named_models import NamedModel
from bot.domain.rulebook import Rulebook
from bot.errors import ModelError
from bot.store import people
from bot.telemetry.logs import logger

log = logger(__name__)

MIN_CHARS_PER_TOKEN = 3  # the cautious estimate for a window that is known in tokens
_DEFAULT_HISTORY_TOKENS = 24_000  # if no setting says otherwise, and the share below is not more
_HISTORY_SHARE = 1 / 4  # the history's share of the window, if that is more than the default
_REQUEST_SHARE = 3 / 4  # the request's share of the window; the answer needs the rest
_REST_PERIOD = timedelta(minutes=1)  # the time for which another model answers after a failure


class ModelFault(NamedTuple):
    """The last failure of a model."""

    message: str  # the message of the failure
    at: datetime
    other_model_may_answer: bool  # since this one can't be reached, or its account is used up


class _Refusal(NamedTuple):
    """The refusal of a tool by a model's server."""

    spec: ToolSpec  # the tool as the server saw it
    why: str  # in the server's words


class Models:
    """The configured models, with the faults, refusals and limits of each model, which are not stored."""

    def __init__(
        self,
        models: Sequence[Model],
        settings: Sequence[NamedModel],
        clock: Clock,
        max_history_tokens: int | None = None,
    ) -> None:
        """Take the models, the default model first, and the settings of models that have any.

        ``max_history_tokens``: the setting for the most tokens of history to send, if there is one.
        """
        self.default = models[0]
        self.by_name = {model.name: model for model in models}
        self.faults: dict[str, ModelFault] = {}
        self._refusals: dict[tuple[str, str], _Refusal] = {}  # by the names of model and tool
        self.text_callers: set[str] = set()  # names of models that write calls as text, even if asked not to
        self._settings: Mapping[str, NamedModel] = {
            model_settings.name: model_settings for model_settings in settings
        }
        self._clock = clock
        self._max_history_tokens = max_history_tokens
        self._accepted_chars: dict[str, int] = {}  # the size of an accepted request, by model

    def settings_of(self, model: Model) -> NamedModel:
        """Return the settings of a model."""
        return self._settings.get(model.name) or NamedModel(model.name)

    @property
    def any_takes_pictures(self) -> bool:
        """True if at least one model takes pictures."""
        return any(settings.images for settings in self._settings.values())

    def choose(self, session: Session, rulebook: Rulebook, transcript: Transcript) -> Model:
        """Return the model for a conversation and its asker, by the rules.

        Raises ModelError if a rule names a model that is not set up.
        """
        accounts = people.load_person(session, transcript.asker).accounts
        rule = rulebook.model(str(transcript.conversation.origin), accounts)
        if rule is None:
            return self.default
        model = self.by_name.get(str(rule.value))
        if model is None:
            raise ModelError(
                f"An admin chose the model {rule.value} here (rule {rule.id}), and it is not set up. "
                f"They can add it to the file of models, or drop the rule."
            )
        return model

    def choose_reachable(self, model: Model) -> Model:
        """Return the model itself, or its stand-in if it could not be reached in the last minute."""
        fault = self.faults.get(model.name)
        if fault is None or not fault.other_model_may_answer:
            return model
        if self._clock() - fault.at >= _REST_PERIOD:
            return model
        return self.stand_in(model) or model

    def stand_in(self, model: Model) -> Model | None:
        """Return the model that the settings name to answer in place of this model, or None."""
        return self.by_name.get(self.settings_of(model).fallback)

    def note_answer(self, model: Model) -> None:
        """Note that a model answered. This is logged if the model had failed before."""
        if self.faults.pop(model.name, None):
            log.info("the language model answers again", model=model.name)

    def note_fault(self, model: Model, error: ModelError) -> None:
        """Note that a model failed. This is logged if the reason is new."""
        previous = self.faults.pop(model.name, None)  # removed first, so that the newest fault comes last
        self.faults[model.name] = ModelFault(error.message, self._clock(), error.other_model_may_answer)
        if previous is None or previous.message != error.message:
            log.error("the language model gives no answers", model=model.name, why=error.message)

    def note_refused(self, model: Model, tools: Mapping[str, str], specs: Sequence[ToolSpec]) -> None:
        """Note the tools that a model's server refuses. ``tools``: the server's reasons, by tool."""
        by_name = {spec.name: spec for spec in specs}
        for name, why in tools.items():
            if name in by_name:
                self._refusals[model.name, name] = _Refusal(by_name[name], why)

    def describe_refusals(self, spec: ToolSpec) -> tuple[str, ...]:
        """Return the models whose servers refuse a tool, each as "name (the server's reason)".

        A refusal of an earlier specification of the tool does not count.
        """
        descriptions = []
        for (model_name, _), refusal in self._refusals.items():
            if refusal.spec == spec:
                descriptions.append(f"{model_name} ({refusal.why})")
        return tuple(descriptions)

    def max_history_chars(self, model: Model, specs_chars: int) -> int:
        """Return the most characters of history for a model whose tools' specifications take ``specs_chars``.

        The lowest of three limits counts:

        - the setting; without it 24,000 tokens, or a quarter of the model's window if that is more.
        - three quarters of the window if it is known, less the specifications.
        - the size of a request that the model accepted after it had refused a longer one, less the
          specifications.
        """
        window_tokens = self.settings_of(model).window or 0
        default_tokens = max(_DEFAULT_HISTORY_TOKENS, int(window_tokens * _HISTORY_SHARE))
        limit = (self._max_history_tokens or default_tokens) * CHARACTERS_PER_TOKEN
        if window_tokens:
            request_tokens = int(window_tokens * _REQUEST_SHARE)
            limit = min(limit, request_tokens * MIN_CHARS_PER_TOKEN - specs_chars)
        if model.name in self._accepted_chars:
            limit = min(limit, self._accepted_chars[model.name] - specs_chars)
        return limit

    def note_accepted(self, model: Model, request_chars: int) -> None:
        """Note that a model took a request of this size, tools included, after refusing a longer request."""
        self._accepted_chars[model.name] = request_chars
