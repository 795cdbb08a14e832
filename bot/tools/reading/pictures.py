"""Pictures: they are drawn again by Pillow, upright and scaled, so that only what people see stays in them.

The original may hold more: metadata such as the place of a photo, further pages, parts that are cropped.
"""

import math
from io import BytesIO
from typing import Any, NamedTuple

from bot.tools.reading.packed import DAMAGED_TEXT
from bot.tools.reading.report import Report, UnreadableError

_MAX_PIXELS = 40_000_000
_SIDE = 1600  # the longer side of a kept picture, in pixels
_MAX_PARTS = 6  # the number of parts that a long picture is cut into
_LONG = 2.5  # a picture is long from about this ratio of its sides on
_MIN_SCALE_WHOLE = 0.5  # a long picture is cut into parts if it would be scaled down below this
_MIN_SCALE = 0.3  # small print is illegible if a picture is scaled down below this
_QUALITY = 85
_MAX_CHUNK_BYTES = 64_000_000  # a PNG's text, or its colour profile
_BYTE = 255  # the highest level of grey in 8 bits
_TWO_BYTES = 65_535  # the highest level of grey in 16 bits
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "PSD", "ICO", "JPEG2000")


class DrawnPicture(NamedTuple):
    """A picture as it is kept."""

    kind: str
    data: bytes


def draw_picture(data: bytes, kind: str, report: Report) -> DrawnPicture:
    """Return the picture without anything that people don't see. Raises UnreadableError.

    A long picture, such as the screenshot of a page, is cut into parts, which are put next to each other:
    scaled down in one piece, its text could not be read.
    """
    from PIL import Image, ImageOps, PngImagePlugin

    formats: tuple[str, ...] = _FORMATS
    if kind == "image/heic":
        import pi_heif  # type: ignore[import-untyped]

        pi_heif.register_heif_opener()
        formats = (*_FORMATS, "HEIF")
    Image.init()
    Image.MAX_IMAGE_PIXELS = None  # a picture that is too large is refused below, in our own words
    PngImagePlugin.MAX_TEXT_CHUNK = _MAX_CHUNK_BYTES
    PngImagePlugin.MAX_TEXT_MEMORY = _MAX_CHUNK_BYTES
    try:
        with Image.open(BytesIO(data), formats=formats) as picture:
            width, height = picture.size
            is_long = max(width, height) >= min(width, height) * _LONG
            if not is_long:
                picture.draft("RGB", (_SIDE, _SIDE))  # decodes a JPEG smaller, which is faster
            if picture.width * picture.height > _MAX_PIXELS:
                raise UnreadableError(f"it has {width:,} by {height:,} pixels, more than I read")
            frames = getattr(picture, "n_frames", 1)
            if frames > 1 and kind not in ("image/vnd.adobe.photoshop", "image/jpeg", "image/x-icon"):
                report.leave_out("further page" if kind == "image/tiff" else "further picture", frames - 1)
            upright = _reduce_levels(picture)
            if max(upright.size) <= min(upright.size) * _LONG:
                upright.thumbnail((_SIDE, _SIDE))  # a long picture is scaled down by `_arrange`
            upright = ImageOps.exif_transpose(upright)  # turned as the camera was held
            is_transparent = upright.has_transparency_data
            coloured = upright.convert("RGBA" if is_transparent else "RGB")
            drawn = _arrange(coloured, max(width, height), report)
            clean = Image.new(drawn.mode, drawn.size)  # a new picture has no metadata of the old one
            clean.paste(drawn)
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, AttributeError, KeyError):
        raise UnreadableError(DAMAGED_TEXT) from None
    out = BytesIO()
    if is_transparent:
        clean.save(out, "PNG")
        return DrawnPicture("image/png", out.getvalue())
    clean.save(out, "JPEG", quality=_QUALITY)
    return DrawnPicture("image/jpeg", out.getvalue())


def _reduce_levels(picture: Any) -> Any:
    """Return a picture with 256 levels of grey in place of more levels; any other picture as it is.

    Pillow's own conversion would make all levels above 255 white.
    """
    scale_of_16_bits = _BYTE / _TWO_BYTES
    if picture.mode.startswith("I;16"):
        return _move_levels(picture.convert("I"), scale_of_16_bits)
    if picture.mode in ("I", "F"):
        low, high = picture.getextrema()
        if low >= 0 and high > _TWO_BYTES:
            factor = _BYTE / (high - low) if high > low else 0.0  # one level everywhere: nothing to see
            return _move_levels(picture, factor, -low * factor)
        if low >= 0 and high > _BYTE:
            return _move_levels(picture, scale_of_16_bits)
    return picture


def _move_levels(picture: Any, factor: float, offset: float = 0.0) -> Any:
    """Return the picture with each level of grey multiplied and moved, as a picture of 256 levels."""
    # Pillow documents only functions of this form for pictures of these modes
    return picture.point(lambda level: level * factor + offset).convert("L")


def _arrange(picture: Any, original_side: int, report: Report) -> Any:
    """Cut a tall picture into parts and put them next to each other, or a wide picture's below each other.

    ``original_side``: the longer side of the picture in the file, in pixels.
    """
    from PIL import Image

    width, height = picture.size
    is_wide = width > height
    long, short = max(width, height), min(width, height)
    if long <= short * _LONG or long <= _SIDE / _MIN_SCALE_WHOLE:
        return _scale_down(picture, original_side, report)

    # the sheet with the parts is about a square if their number is the square root of the ratio of the sides
    parts = min(_MAX_PARTS, max(2, round((long / short) ** 0.5)))
    part_length = math.ceil(long / parts)
    gap = max(8, short // 50)
    across = short * parts + gap * (parts - 1)
    sheet_size = (part_length, across) if is_wide else (across, part_length)
    sheet = Image.new(picture.mode, sheet_size, "magenta")
    for number in range(parts):
        begin = number * part_length
        end = min(begin + part_length, long)
        offset = number * (short + gap)
        if is_wide:
            sheet.paste(picture.crop((begin, 0, end, height)), (0, offset))
        else:
            sheet.paste(picture.crop((0, begin, width, end)), (offset, 0))
    if is_wide:
        order = "below each other, from top to bottom"
    else:
        order = "next to each other, from left to right"
    report.remark(f"It has {width:,} by {height:,} pixels, so it is shown in {parts} parts {order}.")
    return _scale_down(sheet, max(sheet.size), report)


def _scale_down(picture: Any, original_side: int, report: Report) -> Any:
    """Scale a picture down to `_SIDE`, and report it if small print may be lost."""
    scale = _SIDE / max(original_side, *picture.size)
    if scale < _MIN_SCALE:
        report.remark(f"It is shown at {scale:.0%} of its size, so small print may be lost.")
    picture.thumbnail((_SIDE, _SIDE))
    return picture
