"""Pictures: upright, scaled and drawn again, so that nothing but what is seen stays in them."""

from io import BytesIO
from typing import Any, NamedTuple

from bot.tools.reading.packed import DAMAGED_TEXT
from bot.tools.reading.report import Report, UnreadableError

_MAX_PIXELS = 40_000_000
_SIDE = 1600  # pixels of a picture that is kept
_MAX_PARTS = 6  # that a long picture is cut into
_LONG = 2.5  # times as long as it is wide
_MIN_SCALE_WHOLE = 0.5  # at which a long picture is not cut
_MIN_SCALE = 0.3  # of which small print can still be read
_QUALITY = 85
_MAX_CHUNK_BYTES = 64_000_000
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "PSD", "ICO", "JPEG2000")


class DrawnPicture(NamedTuple):
    """The picture as it is kept: its media type and bytes."""

    kind: str
    data: bytes


def draw_picture(data: bytes, kind: str, report: Report) -> DrawnPicture:
    """Return the picture without anything that is not seen.

    A long one is cut into parts that stand next to each other: scaled as one, it could not be read.
    """
    from PIL import Image, ImageOps, PngImagePlugin

    formats: tuple[str, ...] = _FORMATS
    if kind == "image/heic":
        import pi_heif  # type: ignore[import-untyped]

        pi_heif.register_heif_opener()
        formats = (*_FORMATS, "HEIF")
    Image.init()
    Image.MAX_IMAGE_PIXELS = None  # what is too large is refused in words
    PngImagePlugin.MAX_TEXT_CHUNK = _MAX_CHUNK_BYTES
    PngImagePlugin.MAX_TEXT_MEMORY = _MAX_CHUNK_BYTES
    try:
        with Image.open(BytesIO(data), formats=formats) as picture:
            width, height = picture.size
            if min(width, height) * _LONG > max(width, height):
                picture.draft("RGB", (_SIDE, _SIDE))
            if picture.width * picture.height > _MAX_PIXELS:
                raise UnreadableError(f"it has {width:,} by {height:,} pixels, more than I read")
            frames = getattr(picture, "n_frames", 1)
            if frames > 1 and kind not in ("image/vnd.adobe.photoshop", "image/jpeg", "image/x-icon"):
                report.leave_out("further page" if kind == "image/tiff" else "further picture", frames - 1)
            upright = _with_levels(picture)
            if max(upright.size) <= min(upright.size) * _LONG:
                upright.thumbnail((_SIDE, _SIDE))
            upright = ImageOps.exif_transpose(upright)
            seen = upright.has_transparency_data
            drawn = _arrange(upright.convert("RGBA" if seen else "RGB"), max(width, height), report)
            clean = Image.new(drawn.mode, drawn.size)
            clean.paste(drawn)
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, AttributeError, KeyError):
        raise UnreadableError(DAMAGED_TEXT) from None
    out = BytesIO()
    clean.save(out, "PNG" if seen else "JPEG", quality=_QUALITY)
    return DrawnPicture("image/png" if seen else "image/jpeg", out.getvalue())


def _with_levels(picture: Any) -> Any:
    """Scale what has more than 256 levels to 256 of them: a conversion alone would cut the bright ones."""
    if picture.mode.startswith("I;16"):
        levels = picture.convert("I")
        return levels.point(lambda level: level * (1 / 257) + 0).convert("L")
    if picture.mode in ("I", "F"):
        low, high = picture.getextrema()
        top = 255 / (high - low) if high > low else 0
        if low >= 0 and high > 255:  # noqa: PLR2004 - a byte's last level
            scale = 1 / 257 if high <= 65_535 else top  # noqa: PLR2004 - of 16 bits
            return picture.point(lambda level: level * scale + 0).convert("L")
    return picture


def _arrange(picture: Any, drawn: int, report: Report) -> Any:
    """Cut a long picture into parts, next to each other; a wide one below each other."""
    from PIL import Image

    width, height = picture.size
    is_wide = width > height
    long, short = max(width, height), min(width, height)
    if long <= short * _LONG or long <= _SIDE / _MIN_SCALE_WHOLE:
        return _scale(picture, drawn, report)
    parts = min(_MAX_PARTS, max(2, round((long / short) ** 0.5)))
    step = -(-long // parts)
    gap = max(8, short // 50)
    if is_wide:
        size = (step, short * parts + gap * (parts - 1))
    else:
        size = (short * parts + gap * (parts - 1), step)
    sheet = Image.new(picture.mode, size, "magenta")
    for number in range(parts):
        begin, end = number * step, min((number + 1) * step, long)
        box = (begin, 0, end, height) if is_wide else (0, begin, width, end)
        offset = number * (short + gap)
        sheet.paste(picture.crop(box), (0, offset) if is_wide else (offset, 0))
    if is_wide:
        order = "below each other, from top to bottom"
    else:
        order = "next to each other, from left to right"
    report.remark(f"It has {width:,} by {height:,} pixels, so it is shown in {parts} parts {order}.")
    return _scale(sheet, 0, report)


def _scale(picture: Any, drawn: int, report: Report) -> Any:
    """Scale to `_SIDE`; ``drawn`` is how many pixels long it was at first."""
    scale = _SIDE / max(drawn, *picture.size)
    if scale < _MIN_SCALE:
        report.remark(f"It is shown at {scale:.0%} of its size, so small print may be lost.")
    picture.thumbnail((_SIDE, _SIDE))
    return picture
