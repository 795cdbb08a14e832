"""Pictures: upright, scaled and drawn again, so that nothing but what is seen stays in them."""

import math
from io import BytesIO
from typing import Any, NamedTuple

from bot.tools.reading.packed import DAMAGED_TEXT
from bot.tools.reading.report import Report, UnreadableError

_MAX_PIXELS = 40_000_000
_SIDE = 1600  # pixels of the longer side of a picture that is kept
_MAX_PARTS = 6  # that a long picture is cut into
_LONG = 2.5  # times as long as it is wide: a long picture
_MIN_SCALE_WHOLE = 0.5  # at which a long picture need not be cut
_MIN_SCALE = 0.3  # at which small print can still be read
_QUALITY = 85
_MAX_CHUNK_BYTES = 64_000_000  # of a PNG's text and colour profile
_BYTE = 255
_TWO_BYTES = 65_535
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "PSD", "ICO", "JPEG2000")


class DrawnPicture(NamedTuple):
    """A picture as it is kept."""

    kind: str
    data: bytes


def draw_picture(data: bytes, kind: str, report: Report) -> DrawnPicture:
    """Return the picture without anything that is not seen. Raises UnreadableError.

    A long one is cut into parts, which are put next to each other: scaled down as one, it could not be read.
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
                picture.draft("RGB", (_SIDE, _SIDE))  # decodes a JPEG smaller, which is faster
            if picture.width * picture.height > _MAX_PIXELS:
                raise UnreadableError(f"it has {width:,} by {height:,} pixels, more than I read")
            frames = getattr(picture, "n_frames", 1)
            if frames > 1 and kind not in ("image/vnd.adobe.photoshop", "image/jpeg", "image/x-icon"):
                report.leave_out("further page" if kind == "image/tiff" else "further picture", frames - 1)
            upright = _reduce_levels(picture)
            if max(upright.size) <= min(upright.size) * _LONG:
                upright.thumbnail((_SIDE, _SIDE))
            upright = ImageOps.exif_transpose(upright)
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
    """Scale a picture of more than 256 levels of grey to 256 of them.

    Pillow's own conversion would make all levels above 255 white.
    """
    scale_of_16_bits = _BYTE / _TWO_BYTES
    if picture.mode.startswith("I;16"):
        return _multiply(picture.convert("I"), scale_of_16_bits)
    if picture.mode in ("I", "F"):
        low, high = picture.getextrema()
        if low >= 0 and high > _TWO_BYTES:
            return _multiply(picture, _BYTE / (high - low) if high > low else 0)
        if low >= 0 and high > _BYTE:
            return _multiply(picture, scale_of_16_bits)
    return picture


def _multiply(picture: Any, factor: float) -> Any:
    return picture.point(lambda level: level * factor + 0).convert("L")


def _arrange(picture: Any, original_side: int, report: Report) -> Any:
    """Cut a long picture into parts and put them next to each other; those of a wide one below each other.

    ``original_side``: the pixels of its longer side in the file.
    """
    from PIL import Image

    width, height = picture.size
    is_wide = width > height
    long, short = max(width, height), min(width, height)
    if long <= short * _LONG or long <= _SIDE / _MIN_SCALE_WHOLE:
        return _scale_down(picture, original_side, report)

    # with the square root of the ratio as the number of parts, the sheet is about a square
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
    return _scale_down(sheet, 0, report)


def _scale_down(picture: Any, original_side: int, report: Report) -> Any:
    """Scale a picture to `_SIDE`, and say so if small print is lost."""
    scale = _SIDE / max(original_side, *picture.size)
    if scale < _MIN_SCALE:
        report.remark(f"It is shown at {scale:.0%} of its size, so small print may be lost.")
    picture.thumbnail((_SIDE, _SIDE))
    return picture
