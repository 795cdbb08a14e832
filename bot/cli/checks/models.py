"""The check of the models that answer or transcribe, each at its own server, and of their prices."""

import asyncio
import difflib
from collections.abc import Iterator

from bot.cli.checks.database import load_rulebook
from bot.cli.checks.environment import make_fault
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.domain.named_models import NamedModel
from bot.domain.rule_values import Subject
from bot.errors import SettingsError
from bot.settings import ONLY_TRANSCRIPTION_NOTICE, Settings

_MODEL_SECONDS = 10.0


def check_prices(settings: Settings) -> Iterator[Finding]:
    try:
        settings.prices(settings.model)
    except SettingsError as error:
        yield make_fault(error.message)


async def check_models(settings: Settings) -> list[Finding]:
    """Check the models that answer or transcribe, and the rules that name a missing one."""
    try:
        answering = settings.list_answering_models()
        transcribing = settings.list_transcription_models()
    except SettingsError as error:
        return [make_fault(error.message)]
    if not answering and transcribing:
        return [warn("model", ONLY_TRANSCRIPTION_NOTICE)]
    if not answering:
        return [warn("model", "the scripted demo model answers; set OPENAI_API_KEY or OPENAI_BASE_URL")]
    names = {model.name for model in answering}
    findings = list(await asyncio.gather(*map(_check_model, [*answering, *transcribing])))
    for rule in load_rulebook(settings).list_about(Subject.MODEL):
        if rule.value not in names:
            words = f"no model is called {rule.value}. Nod can't answer there"
            findings.append(fail(f"rule {rule.id}", words))
    return findings


async def _check_model(named: NamedModel) -> Finding:
    import openai  # only here: it takes a fifth of a second

    client = openai.AsyncOpenAI(
        api_key=named.secret or "none", base_url=named.base_url, max_retries=0, timeout=_MODEL_SECONDS
    )
    label = named.name
    if named.model != named.name:  # the name at its server differs from the name in the file of NOD_MODELS
        label = f"{named.name} ({named.model})"
    name = f"model {label} at {client.base_url}"
    address = "OPENAI_BASE_URL" if named.setting_to_correct == "NOD_MODEL" else "base_url"
    async with client:
        try:
            offered = [model.id async for model in client.models.list()]
        except openai.AuthenticationError:
            return fail(name, f"{named.key}: the server does not accept this key")
        except openai.NotFoundError:
            return ok(name, "it answers, but lists no models")
        except openai.APIConnectionError as error:
            why = f"cannot be reached ({type(error.__cause__ or error).__name__})"
            return fail(name, f"{address}: {why}; check the address and the network")
        except openai.APIStatusError as error:
            return fail(name, f"the server answers with HTTP {error.status_code}")
        except openai.OpenAIError as error:
            return fail(name, f"{address}: this is not an OpenAI-compatible server ({error})")
    if offered and named.model not in offered:
        examples = difflib.get_close_matches(named.model, offered, 5) or offered[:5]
        listed = ", ".join(sorted(examples))
        return fail(name, f"{named.setting_to_correct}: the server does not offer it; it offers {listed}")
    return ok(name)
