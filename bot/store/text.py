"""Text that both databases can hold."""


def storable(text: str) -> str:
    """The text without NUL characters and lone surrogates, which models and tools do send."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode(errors="replace").decode()


def storable_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)
