"""Voice: recordings that people send become text.

`VOICE` names the feature's parts. It is on if the file of models (NOD_MODELS) has a model with ``audio =
true``: the first of these transcribes.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlmodel import Session

from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, ok, warn
from bot.domain.hooks import Hooks
from bot.domain.named_models import NamedModel
from bot.features.feature import Feature, FeatureParts
from bot.settings import Settings

_PART = "Voice"


def _find_model(settings: Settings) -> NamedModel | None:
    """Return the model that transcribes, or None."""
    return next(iter(settings.list_transcription_models()), None)


def _make_hooks(parts: FeatureParts) -> Hooks:
    model = _find_model(parts.settings)
    if model is None:
        return Hooks()
    from bot.features.voice.transcription import RecordingReader  # here, as the SDK is slow to import

    prices = parts.settings.prices(parts.settings.model)
    reader = RecordingReader(parts.database, parts.policies, parts.clock, model, prices)
    return Hooks(read_file=(reader.read_file,), list_active=(partial(_list_model, model),))


def _list_model(model: NamedModel, _: Session, __: datetime) -> Sequence[ActiveLine]:
    return (ActiveLine(_PART, f"{model.name} transcribes recordings, at {model.host}", "NOD_MODELS"),)


async def _examine(parts: FeatureParts) -> Sequence[Finding]:
    """Return a finding on the model that transcribes, with a warning if further models are never asked."""
    models = parts.settings.list_transcription_models()
    if not models:
        return ()
    first, *others = (model.name for model in models)
    if others:
        return (warn("voice", f"{first} transcribes recordings; {', '.join(others)} is never asked"),)
    return (ok("voice", f"{first} transcribes recordings"),)


VOICE = Feature(
    name="voice",
    is_on=lambda settings: bool(settings.list_transcription_models()),
    make_hooks=_make_hooks,
    examine=_examine,
)
