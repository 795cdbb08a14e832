"""Pictures: they are drawn again by Pillow, upright and scaled, so that only what people see stays in them.

The original may hold more: metadata such as the place of a photo, further pages, parts that are cropped.
"""

import math
from io import BytesIO
from typing import Any, NamedTuple

from bot.tools.reading.report import Report, UnreadableError
from bot.tools.reading.zip_package import DAMAGED_TEXT

_MAX_PIXELS = 40_000_000
_MAX_SIDE_PX = 1600  # the longer side of a kept picture
_MAX_PARTS = 6  # the number of parts that a long picture is cut into
_LONG_RATIO = 2.5  # a picture whose sides have about this ratio, or a larger one, is long
_CUT_BELOW_SCALE = 0.5  # a long picture is cut into parts if it would be scaled down below this
_WARN_BELOW_SCALE = 0.3  # small print may be illegible in a picture that is scaled down below this
_JPEG_QUALITY = 85
_MAX_CHUNK_BYTES = 64_000_000  # a PNG's text, or its colour profile
_MAX_LEVEL_8_BITS = 255  # the highest level of grey
_MAX_LEVEL_16_BITS = 65_535
_GAP_SHARE = 50  # the gap between parts is the shorter side divided by this, and at least `_MIN_GAP_PX`
_MIN_GAP_PX = 8
_GAP_COLOUR = "magenta"  # rare in pictures, so that the parts are told apart
# the further frames of these are layers, previews or other sizes of the same picture
_ONE_PICTURE_KINDS = ("image/vnd.adobe.photoshop", "image/jpeg", "image/x-icon")
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "PSD", "ICO", "JPEG2000")


class DrawnPicture(NamedTuple):
    """A picture as it is kept."""

    kind: str
    data: bytes


def draw_picture(data: bytes, kind: str, report: Report) -> DrawnPicture:
    """Return the picture without anything that people don't see. Raises UnreadableError.

    A long picture, such as the screenshot of a page, is cut into parts, which are put next to or below each
    other. Scaled down in one piece, its text could not be read.
    """
    from PIL import Image, ImageOps

    formats = _set_up_pillow(kind)
    try:
        with Image.open(BytesIO(data), formats=formats) as picture:
            width, height = picture.size
            is_long = max(width, height) >= min(width, height) * _LONG_RATIO
            if not is_long:
                picture.draft("RGB", (_MAX_SIDE_PX, _MAX_SIDE_PX))  # decodes a JPEG smaller, which is faster
            if picture.width * picture.height > _MAX_PIXELS:
                raise UnreadableError(f"it has {width:,} by {height:,} pixels, more than I read")
            _count_further_frames(picture, kind, report)
            upright = _reduce_levels(picture)
            if not _is_longer(upright.size):  # `_arrange` scales a long picture down
                upright.thumbnail((_MAX_SIDE_PX, _MAX_SIDE_PX))
            upright = ImageOps.exif_transpose(upright)  # turned as the camera was held
            is_transparent = upright.has_transparency_data
            coloured = upright.convert("RGBA" if is_transparent else "RGB")
            drawn = _arrange(coloured, max(width, height), report)
            clean = Image.new(drawn.mode, drawn.size)  # a new picture has no metadata of the old one
            clean.paste(drawn)
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, TypeError, AttributeError, KeyError):
        raise UnreadableError(DAMAGED_TEXT) from None
    return _encode(clean, is_transparent=is_transparent)


def _set_up_pillow(kind: str) -> tuple[str, ...]:
    """Set Pillow's limits, and return the formats in which a picture of this media type may be."""
    from PIL import Image, PngImagePlugin

    formats: tuple[str, ...] = _FORMATS
    if kind == "image/heic":
        import pi_heif  # type: ignore[import-untyped]

        pi_heif.register_heif_opener()
        formats = (*_FORMATS, "HEIF")
    Image.init()
    Image.MAX_IMAGE_PIXELS = None  # `draw_picture` refuses a picture that is too large, in our own words
    PngImagePlugin.MAX_TEXT_CHUNK = _MAX_CHUNK_BYTES
    PngImagePlugin.MAX_TEXT_MEMORY = _MAX_CHUNK_BYTES
    return formats


def _count_further_frames(picture: Any, kind: str, report: Report) -> None:
    frames = getattr(picture, "n_frames", 1)
    if frames > 1 and kind not in _ONE_PICTURE_KINDS:
        report.count_left_out("further page" if kind == "image/tiff" else "further picture", frames - 1)


def _encode(picture: Any, *, is_transparent: bool) -> DrawnPicture:
    out = BytesIO()
    if is_transparent:
        picture.save(out, "PNG")
        return DrawnPicture("image/png", out.getvalue())
    picture.save(out, "JPEG", quality=_JPEG_QUALITY)
    return DrawnPicture("image/jpeg", out.getvalue())


def _reduce_levels(picture: Any) -> Any:
    """Return a picture with 256 levels of grey in place of more levels; any other picture as it is.

    Pillow's own conversion would make all levels above 255 white.
    """
    scale_of_16_bits = _MAX_LEVEL_8_BITS / _MAX_LEVEL_16_BITS
    if picture.mode.startswith("I;16"):
        return _move_levels(picture.convert("I"), scale_of_16_bits)
    if picture.mode in ("I", "F"):
        low, high = picture.getextrema()
        if low >= 0 and high > _MAX_LEVEL_16_BITS:
            factor = _MAX_LEVEL_8_BITS / (high - low) if high > low else 0.0  # one level: nothing to see
            return _move_levels(picture, factor, -low * factor)
        if low >= 0 and high > _MAX_LEVEL_8_BITS:
            return _move_levels(picture, scale_of_16_bits)
    return picture


def _move_levels(picture: Any, factor: float, offset: float = 0.0) -> Any:
    """Return the picture with each level of grey multiplied and moved, as a picture of 256 levels."""
    # for the modes I and F, Pillow takes only functions of the form "level * factor + offset"
    return picture.point(lambda level: level * factor + offset).convert("L")


def _arrange(picture: Any, original_side: int, report: Report) -> Any:
    """Cut a tall picture into parts and put them next to each other, or a wide picture's below each other.

    Any other picture is only scaled down. ``original_side``: the longer side of the picture in the file, in
    pixels; it may have been scaled down since.
    """
    from PIL import Image

    width, height = picture.size
    is_wide = width > height
    long, short = max(width, height), min(width, height)
    if not _is_longer(picture.size) or long <= _MAX_SIDE_PX / _CUT_BELOW_SCALE:
        return _scale_down(picture, original_side, report)

    # the sheet with the parts is about a square if their number is the square root of the ratio of the sides
    parts = min(_MAX_PARTS, max(2, round((long / short) ** 0.5)))
    part_length = math.ceil(long / parts)
    gap = max(_MIN_GAP_PX, short // _GAP_SHARE)
    across = short * parts + gap * (parts - 1)
    sheet_size = (part_length, across) if is_wide else (across, part_length)
    sheet = Image.new(picture.mode, sheet_size, _GAP_COLOUR)
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


def _is_longer(size: tuple[int, int]) -> bool:
    """Tell if the ratio of the sides is more than `_LONG_RATIO`."""
    return max(size) > min(size) * _LONG_RATIO


def _scale_down(picture: Any, original_side: int, report: Report) -> Any:
    """Scale a picture down to `_MAX_SIDE_PX`, and report it if small print may be lost."""
    scale = _MAX_SIDE_PX / max(original_side, *picture.size)
    if scale < _WARN_BELOW_SCALE:
        report.remark(f"It is shown at {scale:.0%} of its size, so small print may be lost.")
    picture.thumbnail((_MAX_SIDE_PX, _MAX_SIDE_PX))
    return picture
