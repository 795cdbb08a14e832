"""The models that the settings name."""

from collections.abc import Sequence

from bot.agent.demo.model import DemoModel
from bot.agent.text_calls import TextCalls
from bot.domain.model import Model
from bot.domain.named_models import NamedModel, ToolCalls
from bot.telemetry.tracing import TracedModel


def add_tracing(models: Sequence[Model], named_models: Sequence[NamedModel]) -> list[Model]:
    """Wrap each model in one that traces its calls. ``named_models``: those that run on another server."""
    hosts = {settings.name: settings.host for settings in named_models}
    traced_models: list[Model] = []
    for model in models:
        if model.name in hosts:
            traced_models.append(TracedModel(model, provider="openai", server=hosts[model.name]))
        else:  # it runs in Nod itself, such as that of the demo
            traced_models.append(TracedModel(model, provider="nod"))
    return traced_models


def make_models(named_models: Sequence[NamedModel]) -> list[Model]:
    """Return the models of the settings, the default first; without any, the demo model."""
    if not named_models:
        return [DemoModel()]
    from bot.agent.openai.model import OpenAIModel  # its SDK takes a fifth of a start

    models: list[Model] = []
    for model_settings in named_models:
        model: Model = OpenAIModel(model_settings)
        if model_settings.tools is ToolCalls.TEXT:  # its server has no calls of tools
            model = TextCalls(model)
        models.append(model)
    return models
