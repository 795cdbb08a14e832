"""Colours of text and of what is under it, and whether the one can be seen on the other."""

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""

BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
_MIN_CONTRAST = 1.2  # 1 is the same colour, 21 is black on white
_MAX_LINEAR_SHARE = 0.03928


def is_too_faint(colour: Colour, under: Colour) -> bool:
    """Tell whether people can't make out letters in this colour on the other."""
    lights = sorted((_luminance(colour), _luminance(under)))
    return (lights[1] + 0.05) / (lights[0] + 0.05) < _MIN_CONTRAST


def _luminance(colour: Colour) -> float:
    """The light of a colour, as WCAG measures it."""
    red, green, blue = (_linearise(level / 255) for level in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linearise(share: float) -> float:
    return share / 12.92 if share <= _MAX_LINEAR_SHARE else ((share + 0.055) / 1.055) ** 2.4
