"""Bodies about trials: what a call did in a cage, before it was decided."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from pydantic import Field

from bot.domain.cards import Card
from bot.domain.diffs import diff
from bot.domain.preview import PreviewField
from bot.domain.redaction import redact_text
from bot.domain.trials import Trial, TriedFile
from bot.domain.value_text import label_of
from bot.web.schemas import View


class TriedFileView(View):
    """A file that a trial changed."""

    path: str
    change: str = Field(description="added, changed or removed")
    old_size: int | None = Field(description="in bytes; null for a new file")
    new_size: int | None = Field(description="in bytes; null for a removed file")
    code: bool = Field(description="something runs it later")
    diff: str | None = Field(None, description="of a text, by lines")


class TrialView(View):
    """The result of a trial: before it was decided, the call ran in a cage, apart from the real files."""

    tried: bool = Field(description="false if it was not tried")
    applies: bool = Field(description="approving applies what the trial did")
    why: str = Field(description="why it was not tried, or why its changes can't be applied")
    cage: str = Field(description="the name of the cage")
    exit: int | None = Field(description="the exit code, or null")
    output: str = Field(description="the end of what it printed")
    files: list[TriedFileView]

    @classmethod
    def of_trial(cls, trial: Trial, card: Card, secrets: Sequence[str]) -> Self:
        why = redact_text(trial.why, secrets)
        output = redact_text(trial.output, secrets)
        trial_view = cls.model_validate(replace(trial, why=why, output=output))
        changes = {change.field: change for change in card.fields}
        for file_view, file in zip(trial_view.files, trial.files, strict=True):
            file_view.diff = _compare_file(file, changes)
        return trial_view


def _compare_file(file: TriedFile, changes: Mapping[str, PreviewField]) -> str | None:
    """Return the lines that a trial changed in a file; None if no field of the preview shows its text."""
    change = changes.get(label_of(file.field)) if file.field else None
    if change is None:
        return None
    if change.old_value is not None and change.new_value is not None:
        return diff(change.old_value, change.new_value)
    if change.new_value is None:
        mark = "-"
        text = change.old_value
    else:
        mark = "+"
        text = change.new_value
    return "\n".join(f"{mark} {line}" for line in (text or "").splitlines())
