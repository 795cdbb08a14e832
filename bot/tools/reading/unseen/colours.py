"""Colours of text and of what is under it, and whether the one can be seen on the other."""

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""

BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
_MIN_CONTRAST = 1.2  # 1 is the same colour, 21 is black on white
_MAX_LINEAR_SHARE = 0.03928


def is_too_faint(colour: Colour, under: Colour) -> bool:
    """Tell if people can't make out letters in this colour on the other, by their contrast (WCAG 2)."""
    darker, lighter = sorted((_luminance(colour), _luminance(under)))
    return (lighter + 0.05) / (darker + 0.05) < _MIN_CONTRAST


def _luminance(colour: Colour) -> float:
    """Return the relative luminance of a colour, by the formula of WCAG 2."""
    red, green, blue = (_linearise(level / 255) for level in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linearise(share: float) -> float:
    if share <= _MAX_LINEAR_SHARE:
        return share / 12.92
    return float(((share + 0.055) / 1.055) ** 2.4)
