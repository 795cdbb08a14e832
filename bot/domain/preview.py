"""The preview of a change: its fields, each with its old and its new value.

The same fields say what an edit changed (`Edit`), what an undo puts back (`Inverse`), and what the thing
looks like when it is read again after the run (`CheckedField`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.digests import to_canonical_json
from bot.domain.text import shorten

_MAX_VALUE_CHARS = 120  # the length of a value in a sentence about that value alone
_MAX_INLINE_CHARS = 60  # the length of a value in a sentence about several values
REMOVED = "removed"
"""The word in place of a field's new value, if the field has no value afterwards."""


@dataclass(frozen=True, slots=True)
class PreviewField:
    """One thing that will change, with its values as text for people."""

    field: str  # the name of what changes
    old_value: str | None  # None: the field has no value yet
    new_value: str | None  # None: the field will have no value
    titled: bool = False  # the tool's own summary quotes the new value in the title


def hash_old_values(preview: Sequence[PreviewField]) -> str:
    """Return the SHA-256, in hex, of the old values in a preview."""
    return hashlib.sha256(to_canonical_json(old_values(preview)).encode(errors="surrogatepass")).hexdigest()


def old_values(preview: Sequence[PreviewField]) -> list[tuple[str, str | None]]:
    """Return the name and the old value of each field of a preview.

    If an old value changes before the run, people are asked again.
    """
    return [(field.field, field.old_value) for field in preview]


@dataclass(frozen=True, slots=True)
class CheckedField:
    """One field of a preview as it was read again after the run, in brief."""

    field: str
    now: str | None  # the value that was read
    approved: str | None  # the approved value
    agrees: bool  # the field has the approved value

    @property
    def description(self) -> str:
        """For example ``priority is high``, or ``priority is low, not high``."""
        values = (self.now or "", self.approved or "")
        is_long = any(len(value) > _MAX_INLINE_CHARS or "\n" in value.strip() for value in values)
        now, approved = _quote_value(self.now), _quote_value(self.approved)
        if self.agrees:
            return f"{self.field} is {'as approved' if is_long else now}"
        if is_long:
            now = "something else" if self.now else now
            approved = "what was approved"
        return f"{self.field} is {now}, not {approved}"


@dataclass(frozen=True, slots=True)
class Inverse:
    """The call that undoes what ran, or the reason why no call does.

    The arguments of the call are stored apart.
    """

    reason: str = ""  # the reason why no call undoes it; empty if a call does
    tool_name: str = ""
    digest: str = ""  # the digest of the call that undoes
    # a hash of the values that the run left behind: `hash_old_values` of the undo's preview, right after the
    # run. If it differs when Undo is pressed, someone has changed the values since
    left: str = ""
    title: str = ""  # the effect of the undo, in brief and without secrets, like the fields
    fields: tuple[PreviewField, ...] = ()

    @property
    def description(self) -> str:
        """For example ``Change priority of issue #3 (Priority: high → normal)``."""
        short_fields = [field for field in self.fields if _is_short(field)]
        changes = ", ".join(f"{field.field}: {_format_change(field)}" for field in short_fields)
        return f"{self.title} ({changes})" if changes else self.title


def _quote_value(value: str | None) -> str:
    if value is None:
        return "none"
    return value or "empty"


def _is_short(field: PreviewField) -> bool:
    values = (field.old_value or "", field.new_value or "")
    return all(len(value) <= _MAX_INLINE_CHARS and "\n" not in value for value in values)


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of a proposal's arguments: the fields that it changed, without secrets."""

    round: int  # the round that began with the edit
    editor_name: str  # the name of the person
    fields: tuple[PreviewField, ...]

    @property
    def description(self) -> str:
        """The edit on a card, for example ``Ben changed color: red → blue``.

        Of a nested value only the field's name.
        """
        changes = []
        for change in self.fields:
            if _is_nested(change):
                changes.append(change.field)
            else:
                changes.append(f"{change.field}: {_format_change(change)}")
        return f"{self.editor_name} changed {', '.join(changes)}"

    @property
    def description_for_model(self) -> str:
        """The edit for the model: ``Ben changed color from red to blue``."""
        changes = []
        for change in self.fields:
            old, new = _shorten_value(change.old_value), _shorten_value(change.new_value)
            changes.append(f"{change.field} from {old} to {new}")
        return f"{self.editor_name} changed {', '.join(changes)}"


def _is_nested(field: PreviewField) -> bool:
    """Tell if one of the values is an object or a list of objects, which the card shows as an outline."""
    values = (field.old_value or "", field.new_value or "")
    return any(value.startswith(("{", "[{", "[[")) for value in values)


def _format_change(field: PreviewField) -> str:
    new = f"({REMOVED})" if field.new_value is None else shorten(field.new_value, _MAX_VALUE_CHARS)
    if field.old_value is None:
        return new
    return f"{shorten(field.old_value, _MAX_VALUE_CHARS)} → {new}"


def _shorten_value(text: str | None) -> str:
    if text is None:
        return "nothing"
    return shorten(text, _MAX_VALUE_CHARS)
