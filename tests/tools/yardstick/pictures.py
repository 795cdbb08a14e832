"""Pictures of phones, scanners, screens and programs that draw."""

import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from PIL import Image, PngImagePlugin

from tests.kit import files
from tests.tools.yardstick import Case


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def plain(
    kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30), **options: Any
) -> Callable[[], bytes]:
    return lambda: saved(Image.new(mode, size, 0 if mode in ("1", "L", "P") else "teal"), kind, **options)


def deep(kind: str) -> bytes:
    """Sixteen bits of grey, from dark to bright."""
    image = Image.new("I;16", (256, 1))
    image.putdata([level * 257 for level in range(256)])
    return saved(image.resize((256, 40)), kind)


def _heic() -> bytes:
    import pillow_heif  # type: ignore[import-untyped]

    made = pillow_heif.from_pillow(Image.new("RGB", (64, 48), "teal"))
    out = BytesIO()
    made.save(out)
    return out.getvalue()


def _turned() -> bytes:
    image = Image.new("RGB", (40, 30), "teal")
    exif = image.getexif()
    exif[0x0112] = 6
    return saved(image, "JPEG", exif=exif)


def _chunk() -> bytes:
    info = PngImagePlugin.PngInfo()
    info.add_text("raw", "x" * 3_000_000, zip=True)
    return saved(Image.new("RGB", (40, 30), "teal"), "PNG", pnginfo=info)


def _moving(kind: str) -> bytes:
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("teal", "red", "blue")]
    return saved(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)


def _psd() -> bytes:
    head = (
        b"8BPS\0\1"
        + bytes(6)
        + (3).to_bytes(2, "big")
        + (30).to_bytes(4, "big")
        + (40).to_bytes(4, "big")
        + b"\0\x08\0\3"
    )
    return head + bytes(12) + b"\0\0" + bytes([0, 128, 128]) * 0 + bytes(1200) + bytes([128]) * 2400


def cases() -> Iterator[Case]:
    for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "JPEG2000", "ICO"):
        yield Case(f"picture of {kind}", plain(kind, size=(32, 32)), size=(32, 32))
    yield Case("picture of HEIC", _heic, size=(64, 48))
    yield Case("picture of PSD", _psd, size=(40, 30))
    yield Case("picture of a black and white scan", plain("TIFF", "1", compression="group4"), size=(40, 30))
    yield Case("picture in grey", plain("PNG", "L"), size=(40, 30))
    yield Case("picture of CMYK", plain("JPEG", "CMYK"), size=(40, 30))
    yield Case("picture of a palette", plain("PNG", "P"), size=(40, 30))
    yield Case(
        "picture that is transparent",
        lambda: saved(Image.new("RGBA", (40, 30), (0, 0, 0, 0)), "PNG"),
        size=(40, 30),
    )
    yield Case("picture in 16 bits of grey", lambda: deep("PNG"), size=(256, 40))
    yield Case("scan in 16 bits of grey", lambda: deep("TIFF"), size=(256, 40))
    yield Case("picture that is turned", _turned, size=(30, 40))
    yield Case("picture with a long text", _chunk, size=(40, 30))
    yield Case("picture that moves", lambda: _moving("GIF"), notes=("2 further pictures",), size=(40, 30))
    yield Case(
        "picture that moves, of WEBP", lambda: _moving("WEBP"), notes=("2 further pictures",), size=(40, 30)
    )
    yield Case(
        "picture that moves, of PNG", lambda: _moving("PNG"), notes=("2 further pictures",), size=(40, 30)
    )
    yield Case("scan of three pages", lambda: _moving("TIFF"), notes=("2 further pages",), size=(40, 30))
    yield Case(
        "long screenshot",
        plain("PNG", size=(1080, 12_000)),
        notes=("1,080 by 12,000", "3 parts"),
        size=(1313, 1600),
    )
    yield Case(
        "wide panorama",
        plain("JPEG", size=(8_000, 1_000)),
        notes=("8,000 by 1,000", "3 parts"),
        size=(1404, 1600),
    )
    yield Case(
        "large photograph", plain("JPEG", size=(6_000, 4_000)), notes=("27% of its size",), size=(1600, 1067)
    )
    yield Case(
        "picture that is too large", lambda: files.huge_picture(30_000), fault="30,000 by 30,000 pixels"
    )
    yield Case("picture that is cut", lambda: files.picture("PNG", (400, 300))[:200], fault="damaged")
    yield Case("picture that is none", lambda: b"\x89PNG\r\n\x1a\nnot at all", fault="damaged")
    yield Case(
        "picture that unpacks to much",
        lambda: b"\x89PNG\r\n\x1a\n" + zlib.compress(bytes(1_000_000)),
        fault="damaged",
    )
