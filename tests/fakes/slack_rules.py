"""What Slack refuses, written down manually from its documentation and apart from the product's own table."""

from dataclasses import dataclass, field
from typing import Any


class Refusal(Exception):
    """An answer with ``ok: false``."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


def units(text: str) -> int:
    """UTF-16 units of the text as Slack stores it, with & < > escaped: the widest count."""
    return len(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").encode("utf-16-le")) // 2


@dataclass
class _Check:
    surface: str  # message, modal or home
    total: int = 0
    ids: set[str] = field(default_factory=set)

    def no(self, detail: str) -> Refusal:
        return Refusal("invalid_blocks" if self.surface == "message" else "invalid_arguments", detail)

    def text(self, value: Any, limit: int, *, plain: bool = False, where: str = "") -> None:
        if not isinstance(value, dict) or value.get("type") not in ("plain_text", "mrkdwn"):
            raise self.no(f"{where}: no text object: {value!r}")
        if plain and value["type"] != "plain_text":
            raise self.no(f"{where}: must be plain_text")
        if value["type"] == "mrkdwn" and "emoji" in value:
            raise self.no(f"{where}: emoji is for plain_text")
        content = value.get("text")
        if not isinstance(content, str) or not content.strip():
            raise self.no(f"{where}: empty text")
        width = len(content.encode("utf-16-le")) // 2 if value["type"] == "mrkdwn" else units(content)
        if width > limit:
            raise self.no(f"{where}: {width} of at most {limit}")
        self.total += width

    def string(self, value: Any, limit: int, where: str) -> None:
        if not isinstance(value, str) or not value or units(value) > limit:
            raise self.no(f"{where}: {str(value)[:80]!r} must have 1 to {limit} characters")


def check_blocks(blocks: Any, surface: str = "message") -> None:
    """Raise Refusal for blocks Slack would not take."""
    check = _Check(surface)
    most = 50 if surface == "message" else 100
    if not isinstance(blocks, list) or len(blocks) > most:
        raise check.no(f"more than {most} blocks")
    for block in blocks:
        if not isinstance(block, dict) or block.get("type") not in _BLOCKS:
            raise check.no(f"unknown block {block!r}")
        if block_id := block.get("block_id"):
            check.string(block_id, 255, "block_id")
            if block_id in check.ids:
                raise check.no(f"block_id {block_id} twice")
            check.ids.add(block_id)
        _BLOCKS[block["type"]](check, block)
    if surface == "message" and check.total > 13_200:
        raise Refusal("msg_blocks_too_long", f"{check.total} characters")
    if surface == "message" and sum(len(b["text"]) for b in blocks if b["type"] == "markdown") > 12_000:
        raise Refusal("msg_blocks_too_long", "markdown blocks")


def check_view(view: Any) -> None:
    """Raise Refusal for a view Slack would not open."""
    if not isinstance(view, dict) or view.get("type") not in ("modal", "home"):
        raise Refusal("invalid_arguments", "a view is a modal or a home")
    check = _Check(view["type"])
    if view["type"] == "modal":
        check.text(view.get("title"), 24, plain=True, where="title")
        for part in ("submit", "close"):
            if part in view:
                check.text(view[part], 24, plain=True, where=part)
        if any(b.get("type") == "input" for b in view.get("blocks", [])) and "submit" not in view:
            raise check.no("inputs need a submit")
    if len(view.get("private_metadata", "")) > 3000 or len(view.get("callback_id", "")) > 255:
        raise check.no("private_metadata or callback_id too long")
    check_blocks(view.get("blocks"), view["type"])
    if len(repr(view)) > 250_000:
        raise Refusal("view_too_large")


def _header(check: _Check, block: dict[str, Any]) -> None:
    check.text(block.get("text"), 150, plain=True, where="header")


def _section(check: _Check, block: dict[str, Any]) -> None:
    if "text" in block:
        check.text(block["text"], 3000, where="section")
    elif "fields" not in block:
        raise check.no("a section needs text or fields")
    if len(block.get("fields", [])) > 10:
        raise check.no("section fields")
    for part in block.get("fields", []):
        check.text(part, 2000, where="section field")


def _context(check: _Check, block: dict[str, Any]) -> None:
    elements = block.get("elements")
    if not elements or len(elements) > 10:
        raise check.no("context needs 1 to 10 elements")
    for element in elements:
        check.text(element, 2000, where="context")


def _divider(check: _Check, block: dict[str, Any]) -> None:
    pass


def _markdown(check: _Check, block: dict[str, Any]) -> None:
    content = block.get("text")
    if not isinstance(content, str) or not content or len(content) > 12_000:
        raise check.no("markdown")
    if check.surface != "message":
        raise check.no("markdown blocks are for messages")
    check.total += len(content)


def _rich_text(check: _Check, block: dict[str, Any]) -> None:
    before = check.total
    if not block.get("elements"):
        raise check.no("empty rich text")
    for part in _parts(check, block["elements"]):
        if part.get("type") not in ("rich_text_section", "rich_text_preformatted", "rich_text_quote"):
            raise check.no(f"rich text part {part.get('type')}")
        if not part.get("elements"):
            raise check.no("empty rich text part")
        for leaf in part["elements"]:
            _leaf(check, leaf)
    if check.total - before > 3000:
        raise check.no("rich text too long")


def _parts(check: _Check, elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of a rich text, with the items of a list in its place: sections, ordered or with bullets."""
    found: list[dict[str, Any]] = []
    for part in elements:
        if part.get("type") != "rich_text_list":
            found.append(part)
            continue
        items = part.get("elements") or []
        sections = all(item.get("type") == "rich_text_section" for item in items)
        if part.get("style") not in ("bullet", "ordered") or not items or not sections:
            raise check.no("rich text list")
        found += items
    return found


def _leaf(check: _Check, leaf: dict[str, Any]) -> None:
    if leaf.get("type") == "link":
        check.string(leaf.get("url"), 3000, "link")
        check.total += units(leaf.get("text") or "")
        return
    if leaf.get("type") != "text" or not isinstance(leaf.get("text"), str) or not leaf["text"]:
        raise check.no(f"rich text leaf {leaf!r}")
    if set(leaf.get("style") or {}) - {"bold", "italic", "strike", "code"}:
        raise check.no("rich text style")
    leaf["text"].encode("utf-16-le")
    check.total += units(leaf["text"])


def _actions(check: _Check, block: dict[str, Any]) -> None:
    elements = block.get("elements")
    if not elements or len(elements) > 25:
        raise check.no("actions need 1 to 25 elements")
    ids = [e.get("action_id") for e in elements]
    if len(set(ids)) != len(ids):
        raise check.no("action_id twice in one block")
    for element in elements:
        check.string(element.get("action_id"), 255, "action_id")
        if element.get("type") == "button":
            _button(check, element)
        elif element.get("type") == "overflow":
            options = element.get("options") or []
            if not 1 <= len(options) <= 5:
                raise check.no("overflow needs 1 to 5 options")
            _options(check, options)
        elif element.get("type") == "static_select":
            check.text(element.get("placeholder"), 150, plain=True, where="placeholder")
            _options(check, element.get("options") or [])
        else:
            raise check.no(f"element {element.get('type')}")


def _button(check: _Check, element: dict[str, Any]) -> None:
    check.text(element.get("text"), 75, plain=True, where="button")
    if "url" in element:
        check.string(element["url"], 3000, "button url")
    else:
        check.string(element.get("value"), 2000, "button value")
    if element.get("style", "primary") not in ("primary", "danger"):
        raise check.no("button style")
    if confirm := element.get("confirm"):
        for part, limit in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
            check.text(confirm.get(part), limit, where=f"confirm {part}")


def _options(check: _Check, options: Any) -> None:
    if not 1 <= len(options) <= 100:
        raise check.no("1 to 100 options")
    for option in options:
        check.text(option.get("text"), 75, plain=True, where="option")
        check.string(option.get("value"), 150, "option value")


def _input(check: _Check, block: dict[str, Any]) -> None:
    if check.surface != "modal":
        raise check.no("inputs are for modals")
    check.text(block.get("label"), 2000, plain=True, where="label")
    if "hint" in block:
        check.text(block["hint"], 2000, plain=True, where="hint")
    element = block.get("element") or {}
    check.string(element.get("action_id"), 255, "action_id")
    kind = element.get("type")
    if kind in ("plain_text_input", "number_input"):
        if kind == "number_input" and "is_decimal_allowed" not in element:
            raise check.no("number_input needs is_decimal_allowed")
        if "initial_value" in element:
            check.string(element["initial_value"], 3000, "initial_value")
    elif kind in ("static_select", "multi_static_select", "radio_buttons", "checkboxes"):
        _options(check, element.get("options") or [])
        chosen = element.get("initial_options") or [element.get("initial_option")]
        if any(c is not None and c not in element["options"] for c in chosen):
            raise check.no("initial option is none of the options")
        if kind in ("radio_buttons", "checkboxes") and len(element["options"]) > 10:
            raise check.no(kind)
    elif kind not in ("datepicker", "users_select"):
        raise check.no(f"input {kind}")


def _plan(check: _Check, block: dict[str, Any]) -> None:
    check.string(block.get("title"), 256, "plan title")
    for task in block.get("tasks") or []:
        if task.get("type") != "task_card":
            raise check.no("the tasks of a plan are task cards")
        _task_card(check, task)


def _task_card(check: _Check, block: dict[str, Any]) -> None:
    check.string(block.get("task_id"), 255, "task_id")
    check.string(block.get("title"), 256, "task title")
    if block.get("status") not in ("pending", "in_progress", "complete", "error"):
        raise check.no("task status")
    for part in ("details", "output"):
        if part in block:
            _rich_text(check, block[part])


_BLOCKS = {
    "plan": _plan,
    "task_card": _task_card,
    "header": _header,
    "section": _section,
    "context": _context,
    "divider": _divider,
    "markdown": _markdown,
    "rich_text": _rich_text,
    "actions": _actions,
    "input": _input,
}
