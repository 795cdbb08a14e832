"""What the fake Slack remembers, and how a person finds their way around it."""

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.slack_rules import Refusal


@dataclass(eq=False)
class Posted:
    """A message as its channel now shows it."""

    channel: str
    ts: str
    thread: str | None
    user: str
    text: str = ""
    markdown: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    stream: str | None = None  # open, closed, dead or stopped
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    edits: int = 0
    only_for: str | None = None
    deleted: bool = False
    status: str | None = None
    unfurls: bool = True
    file: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # what else stands in the event of it
    installation: str = "T1"  # whose bot wrote it
    remembered: dict[str, dict[str, Any]] = field(default_factory=dict)  # buttons a slow person still sees

    @property
    def buttons(self) -> dict[str, dict[str, Any]]:
        return buttons_in(self.blocks)

    @property
    def words(self) -> str:
        """Everything a person reads."""
        return self.markdown or "\n".join([*shown_text(self.blocks), ""]) or self.text


def buttons_in(blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Buttons and menu entries by what stands on them, as the action each would send."""
    found: dict[str, dict[str, Any]] = {}
    for index, block in enumerate(blocks):
        elements = (
            block["elements"] if block["type"] == "actions" else [*filter(None, [block.get("accessory")])]
        )
        block_id = block.get("block_id") or f"b{index}"
        for element in elements:
            base = {"type": element["type"], "action_id": element["action_id"], "block_id": block_id}
            if element["type"] == "button":
                found[element["text"]["text"]] = base | {
                    "text": element["text"],
                    "value": element.get("value", ""),
                }
            else:
                for option in element["options"]:
                    found[option["text"]["text"]] = base | {"selected_option": option}
    return found


def shown_text(value: Any) -> list[str]:
    """Every text in blocks, in order, without the buttons."""
    if isinstance(value, list):
        return [text for item in value for text in shown_text(item)]
    if not isinstance(value, dict) or value.get("type") == "actions":
        return []
    if value.get("type") == "rich_text_section":
        return ["".join(e.get("text", "") for e in value["elements"])]
    texts = [value["text"]] if isinstance(value.get("text"), str) else []
    texts += [value["title"]] if isinstance(value.get("title"), str) else []
    for key in ("text", "elements", "fields", "label", "hint", "tasks", "details", "output"):
        if not isinstance(value.get(key), str):
            texts += shown_text(value.get(key))
    return texts


@dataclass
class Channel:
    name: str
    private: bool = False
    bot_is_member: bool = True
    archived: bool = False
    shared: bool = False  # with another company

    def check(self) -> None:
        if self.archived:
            raise Refusal("is_archived")
        if not self.bot_is_member:
            raise Refusal("not_in_channel")


@dataclass
class Modal:
    """A view on someone's screen."""

    user: str
    view: dict[str, Any]
    open: bool = True
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return "\n".join(shown_text(self.view["blocks"]))

    @property
    def title(self) -> str:
        return str(self.view["title"]["text"])

    @property
    def choices(self) -> list[str]:
        """What stands on its radio buttons and menus."""
        elements = [block["element"] for block in self.view["blocks"] if block["type"] == "input"]
        return [option["text"]["text"] for element in elements for option in element.get("options", ())]

    def block_of(self, label: str) -> dict[str, Any]:
        for block in self.view["blocks"]:
            if block["type"] == "input" and block["label"]["text"] == label:
                return dict(block)
        raise LookupError(f"no input {label!r} in {self.title!r}")

    def error_at(self, label: str) -> str | None:
        return self.errors.get(self.block_of(label)["block_id"])

    def state(self, filled: dict[str, Any]) -> dict[str, Any]:
        """The values as Slack would send them: what stood there, and what the person changed, by label."""
        unknown = set(filled)
        values = {}
        for block in self.view["blocks"]:
            if block["type"] != "input":
                continue
            label = block["label"]["text"]
            entry = _entry(block["element"], filled[label]) if label in filled else _initial(block["element"])
            unknown.discard(label)
            if not block.get("optional") and not any(v for k, v in entry.items() if k != "type"):
                raise AssertionError(f"Slack itself asks for {label!r}")
            values[block["block_id"]] = {block["element"]["action_id"]: entry}
        if unknown:
            raise LookupError(f"no inputs {unknown}")
        return {"values": values}


_KEYS = {
    "plain_text_input": ("value", "initial_value"),
    "number_input": ("value", "initial_value"),
    "static_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "multi_static_select": ("selected_options", "initial_options"),
    "checkboxes": ("selected_options", "initial_options"),
    "datepicker": ("selected_date", "initial_date"),
    "users_select": ("selected_user", "initial_user"),
}


def _initial(element: dict[str, Any]) -> dict[str, Any]:
    key, initial = _KEYS[element["type"]]
    nothing: Any = [] if key == "selected_options" else None
    return {"type": element["type"], key: element.get(initial, nothing)}


def _entry(element: dict[str, Any], wanted: Any) -> dict[str, Any]:
    key, _ = _KEYS[element["type"]]
    if key == "selected_option":
        wanted = _option(element, wanted) if wanted is not None else None
    elif key == "selected_options":
        wanted = [_option(element, w) for w in wanted]
    elif key == "value":
        wanted = wanted or None
    return {"type": element["type"], key: wanted}


def _option(element: dict[str, Any], label: str) -> dict[str, Any]:
    for option in element["options"]:
        if option["text"]["text"] == label:
            return dict(option)
    raise LookupError(f"no option {label!r}")
