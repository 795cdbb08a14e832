"""Web pages, e-mails and books with text that people who open them don't see."""

from collections.abc import Iterator
from email.message import EmailMessage

from tests.tools.yardstick import Case
from tests.tools.yardstick.word import packed

LEFT_OUT = ("piece of hidden text",)
HIDING_STYLES = (
    "display:none", "DISPLAY : None", "display: none !important", "color:red; display: none", "visibility:hidden",
    "visibility:collapse", "opacity:0", "opacity: 0.01", "opacity:0%", "filter:opacity(0)",
    "filter: alpha(opacity=0)",
    "font-size:0", "font-size:0px", "font-size: 1px", "font-size:.1em", "font-size:0.5pt", "font-size:2%",
    "font:0/0 a", "font: 1px Arial", "font-size:calc(0px)",
    "color:white", "color:#fff", "color:#FFFFFF", "color:#fefefe", "color:rgb(255,255,255)", "color:rgb(255 255 255)",
    "color:rgb(100%, 100%, 100%)", "color:hsl(0, 0%, 100%)", "color:rgba(0,0,0,0)", "color:rgb(0 0 0 / 0%)",
    "color:#00000000", "color:transparent", "color:snow", "background:#000;color:#000", "background-color:black;color:#010101",
    "-webkit-text-fill-color: transparent", "color:rgba(0,0,0,.02)",
    "position:absolute;left:-9999px", "position:fixed; top:-100em", "position:absolute;left:-5000pt",
    "position:relative;left:-1000%", "position:absolute; right:-2000px", "position:absolute;inset:-9999px auto auto -9999px",
    "margin-left:-9999px", "margin:-2000px 0 0 0", "text-indent:-9999px", "text-indent:-100em",
    "transform:translateX(-9999px)", "transform: scale(0)", "transform:translate(-200vw, 0)", "scale:0",
    "position:absolute;clip:rect(0,0,0,0)", "position:absolute; clip: rect(1px 1px 1px 1px)", "clip-path:inset(50%)",
    "clip:rect(auto,auto,auto,auto);clip-path:inset(50%)",
    "clip-path:circle(0)", "height:0;overflow:hidden", "width:1px;height:1px;overflow:hidden",
    "max-height:0;overflow:hidden", "max-height: 0px; overflow-y: hidden", "content-visibility:hidden", "--h:none;display:var(--h)",
)  # fmt: skip
SEEN_STYLES = (
    "display:block", "visibility:visible", "opacity:.8", "font-size:0.9em", "font-size:10px", "color:#333",
    "color:white;background:#036", "background:black;color:white", "margin-left:-10px", "text-indent:-2em",
    "position:absolute;left:20px", "max-height:200px;overflow:hidden", "height:40px;overflow:auto", "color:#767676",
    "background-color:rgba(0,0,0,.9);color:#fff", "color:inherit", "font:bold 14px/20px Arial", "transform:scale(1.1)",
    "left:-9999px", "width:100%;overflow:hidden", "position:relative;top:-1px", "clip:auto", "color:var(--none)",
    "background:url(a.png) #036;color:white", "color:rgb(1.2.3,0,0)", f"color:rgb({'9' * 400},0,0)",
)  # fmt: skip
HIDING_SHEETS = (  # a sheet, and what it hides
    (".x{display:none}", "<p class='a x b'>secret</p>"),
    ("#x{display:none}", "<p id=x>secret</p>"),
    ("aside{visibility:hidden}", "<aside>secret</aside>"),
    ("p.x, q{font-size:0}", "<p class=x>secret</p>"),
    ("div .x{display:none}", "<div><b><i class=x>secret</i></b></div>"),
    ("div > .x{color:#fff}", "<div><i class=x>secret</i></div>"),
    ("h5 + p{display:none}", "<h5>Head</h5><p>secret</p>"),
    ("h5 ~ p{display:none}", "<h5>Head</h5><b>b</b><p>secret</p>"),
    ("[data-x]{display:none}", "<p data-x>secret</p>"),
    ("[data-x='1' i]{display:none}", "<p data-x=1>secret</p>"),
    ("p[class^=pre]{display:none}", "<p class=preheader>secret</p>"),
    ("p:not(.seen){display:none}", "<p class=seen>Seen</p><p>secret</p>"),
    (":is(.a,.x){opacity:0}", "<p class=x>secret</p>"),
    ("div p:first-child{display:none}", "<div><p>secret</p><p>Seen</p></div>"),
    ("p:nth-child(2){display:none}", "<div><p>Seen</p><p>secret</p></div>"),
    ("p:nth-of-type(2n){display:none}", "<div><p>Seen</p><p>secret</p></div>"),
    (".md\\:hidden{display:none}", "<p class='md:hidden'>secret</p>"),
    ("@media screen{.x{display:none}}", "<p class=x>secret</p>"),
    ("@media (min-width: 600px){.x{display:none}}", "<p class=x>secret</p>"),
    ("@media print{p{color:red}} .x{display:none}", "<p class=x>secret</p>"),
    ("@supports (display:grid){@layer a{.x{display:none}}}", "<p class=x>secret</p>"),
    ("@import url(a.css); .x{display:none}", "<p class=x>secret</p>"),
    (".out{color:red; & .x{display:none} p{color:blue}}", "<div class=out><i class=x>secret</i></div>"),
    (".out{.x{display:none}}", "<div class=out><i class=x>secret</i></div>"),
    (".x{display:block} .x{display:none}", "<p class=x>secret</p>"),
    ("nav{text-indent:-9999px} .x{text-indent:inherit}", "<nav><p class=x>secret</p></nav>"),
    (".x{display:block; &{display:none}}", "<p class=x>secret</p>"),
    (".x{&{display:block} display:none}", "<p class=x>secret</p>"),
    (":where(#x){display:block} .x{display:none}", "<p class=x id=x>secret</p>"),
    ("@media (width >= 600px){.x{display:none}}", "<p class=x>secret</p>"),
    (".x{display:none} @media (width < 600px){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @media (1px <= width <= 600px){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @media (600px > width){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @media not screen{.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @media not all{.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @media (grid: 1){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @supports not (display:grid){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @supports (no-such: thing){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @container (width < 1px){.x{display:block}}", "<p class=x>secret</p>"),
    (".x{display:none} @layer a{#y{display:block}}", "<p class=x id=y>secret</p>"),
    (".x{display:none} @layer{#y{display:block}}", "<p class=x id=y>secret</p>"),
    ("@layer b, a; @layer a{.x{display:none}} @layer b{#y{display:block}}", "<p class=x id=y>secret</p>"),
    ("@layer a{.x{display:none!important}} #y{display:block!important}", "<p class=x id=y>secret</p>"),
    (".x{display:none!important} #y{display:block}", "<p class=x id=y>secret</p>"),
    ("/* } */ .x{/* ; */display:/**/none}", "<p class=x>secret</p>"),
    (".y::after{content:'}'} .x{display:none}", "<p class=x>secret</p>"),
    ("input:checked ~ p{display:none}", "<input type=checkbox checked><p>secret</p>"),
    ("details[open] p{display:none}", "<details open><p>secret</p></details>"),
    ("p:not(:hover){display:none}", "<p>secret</p>"),
    (":root{--paper:#fff} .x{color:var(--paper)}", "<p class=x>secret</p>"),
    ("body{background:#111;color:#eee} .x{color:#111}", "<p class=x>secret</p>"),
    ("table{background:#000} td{color:#000}", "<table><tr><td>secret</table>"),
    (".x{color:#fff} .x b{font-weight:bold}", "<p class=x>sec<b>ret</b></p>"),
    (".sr-only{position:absolute;width:1px;height:1px;overflow:hidden;clip:rect(0,0,0,0)}", "<p class=sr-only>secret</p>"),
    ("a.x:link{color:white}", "<a class=x href=/a>secret</a>"),
)  # fmt: skip
SEEN_SHEETS = (
    (".x{display:none} .x.open{display:block}", "<p class='x open'>Shown</p>"),
    (".x{display:none} #y{display:block}", "<p class=x id=y>Shown</p>"),
    (".x{display:none; &{display:block}}", "<p class=x>Shown</p>"),
    ("@media (width < 600px){.x{display:none}}", "<p class=x>Shown</p>"),
    ("@media (2000px < width){.x{display:none}}", "<p class=x>Shown</p>"),
    ("@media not screen{.x{display:none}}", "<p class=x>Shown</p>"),
    ("@media (hover: hover){.x{color:#333}}", "<p class=x>Shown</p>"),
    ("@layer a{#y{display:none}} .x{display:block}", "<p class=x id=y>Shown</p>"),
    ("@layer a, b; @layer b{.x{display:block}} @layer a{#y{display:none}}", "<p class=x id=y>Shown</p>"),
    (".x{display:none} @media screen and (min-width: 30em){.x{display:block}}", "<p class=x>Shown</p>"),
    (".x{display:none} @media not print{.x{display:block}}", "<p class=x>Shown</p>"),
    ("input:checked ~ p{display:none}", "<input type=checkbox><p>Shown</p>"),
    (".x:hover{display:none}", "<p class=x>Shown</p>"),
    (".x::before{display:none}", "<p class=x>Shown</p>"),
    ("@media print{.x{display:none}}", "<p class=x>Shown</p>"),
    ("@media (max-width:600px){.x{display:none}}", "<p class=x>Shown</p>"),
    ("@media (prefers-color-scheme: dark){.x{color:#fff}}", "<p class=x>Shown</p>"),
    (".out .x{display:none}", "<p class=x>Shown</p>"),
    ("div > .x{display:none}", "<div><b><i class=x>Shown</i></b></div>"),
    (".x{visibility:hidden} .y{visibility:visible}", "<p class=x><b class=y>Shown</b></p>"),
    (".x{font-size:0} .y{font-size:14px}", "<p class=x><b class=y>Shown</b></p>"),
    (".x{color:#fff} .y{background:#036}", "<p class=y><b class=x>Shown</b></p>"),
    ("@font-face{font-family:x;src:url(x)} @keyframes f{from{opacity:0}} p{color:#222}", "<p>Shown</p>"),
    (".x{display:none}", "<p class='X'>Shown</p>"),
    ("body{background:#111;color:#eee}", "<p>Shown</p>"),
)  # fmt: skip
HIDDEN_ELEMENTS = (
    "<p hidden>secret</p>", "<p popover>secret</p>", "<p hidden=until-found>secret</p>", "<dialog>secret</dialog>",
    "<noscript>secret</noscript>", "<template><p>secret</p></template>", "<video><p>secret</p></video>",
    "<font color=white>secret</font>", "<font color='#FFFFFF'>secret</font>",
    "<table bgcolor=black><tr><td><font color=black>secret</font></table>",
    "<div style='display:none'><p style='display:block;visibility:visible'>secret</p></div>",
    "<div style='opacity:.2'><p style='opacity:.2'>secret</p></div>", "<span style='display:none'><input value=secret></span>",
    "<div style='opacity:0'><img alt=secret src=a.png></div>", "<p hidden><a href=https://evil.example/x>secret</a></p>",
    "<svg style='display:none'></svg><p style='display:none'>secret</p>",
    "<details style='display:none'><summary>secret</summary></details>",
    "<style media='screen, print'>.x{display:none}</style><p class=x>secret</p>",
    "<style>.x{display:none}</style><style media='(width < 1px)'>.x{display:block}</style><p class=x>secret</p>",
)  # fmt: skip


def cases() -> Iterator[Case]:
    for style in HIDING_STYLES:
        page = f'<p style="{style}">secret</p>'
        yield Case(f"page hides by {style}", _page(page), ("Seen", "End"), LEFT_OUT, never=("secret",))
    for style in SEEN_STYLES:
        page = f'<p style="{style}">Shown</p>'
        yield Case(f"page shows with {style}", _page(page), ("Shown",), never=("hidden",))
    for sheet, page in HIDING_SHEETS:
        yield Case(
            f"sheet hides by {sheet}", _page(page, sheet), ("Seen", "End"), LEFT_OUT, never=("secret",)
        )
    for sheet, page in SEEN_SHEETS:
        yield Case(f"sheet shows with {sheet}", _page(page, sheet), ("Shown",), never=("hidden",))
    for page in HIDDEN_ELEMENTS:
        yield Case(f"page hides in {page}", _page(page), ("Seen", "End"), LEFT_OUT, never=("secret", "evil"))
    yield from _other_pages()
    yield from _mails()
    yield _book()


def _other_pages() -> Iterator[Case]:
    yield Case(
        "page with words for screen readers to pass over",
        _page("<p aria-hidden=true>Shown</p>"),
        ("Shown",),
        ("Hidden in the file, but read: 1 piece of text hidden from screen readers",),
    )
    yield Case(
        "page with a sheet at another address",
        _page("<link rel=stylesheet href=a.css><p class=x>Shown</p>"),
        ("Shown",),
        ("style sheets at other addresses weren't read",),
    )
    yield Case(
        "page with a selector of a kind that is not known",
        _page("<p class=x>Shown</p>", ".x:unheard-of(1){display:none}"),
        ("Shown",),
        ("in a way that I can't follow",),
    )
    yield Case(
        "page with two hidden passages",
        _page("<div hidden><p>secret</p><p>secret</p></div><p hidden>secret</p>"),
        ("Seen",),
        ("Left out: 2 pieces of hidden text",),
        never=("secret",),
    )
    yield Case(
        "page with an empty hidden part",
        _page("<p hidden> \n</p><p hidden><br></p>"),
        ("Seen",),
        never=("hidden",),
    )
    yield Case(
        "page that hides by faulty markup",
        _page("<p>a<b style='font-size:0'>secret</p><p>after</p>"),
        ("Seen",),
        (*LEFT_OUT, "Its markup has faults"),
        never=("secret",),
    )
    yield Case(
        "page that is nested without an end",
        lambda: b"<html><body>Seen" + b"<div>" * 5_000 + b"deep",
        ("Seen",),
        ("too much markup",),
    )
    yield Case(
        "page with a closed part", _page("<details><summary>More</summary>Shown</details>"), ("More", "Shown")
    )


def _mails() -> Iterator[Case]:
    hidden = "<div style='display:none;max-height:0'>secret</div>"
    yield Case(
        "e-mail with a hidden preview",
        lambda: _mail(None, f"{hidden}<p>Pay 100</p>"),
        ("Pay 100",),
        LEFT_OUT,
        never=("secret",),
    )
    yield Case(
        "e-mail with white words",
        lambda: _mail(None, "<body bgcolor='#ffffff'><p>Pay 100</p><font color='#ffffff'>secret</font>"),
        ("Pay 100",),
        LEFT_OUT,
        never=("secret",),
    )
    yield Case(
        "e-mail whose plain version says what its page hides",
        lambda: _mail("Pay 100\nsecret\n", f"{hidden}<p>Pay 100</p>"),
        ("Pay 100",),
        (*LEFT_OUT, "1 plain version with other words"),
        never=("secret",),
    )
    yield Case(
        "e-mail whose plain version says more than its page",
        lambda: _mail("Pay 100\nsecret\n", "<p>Pay 100</p>"),
        ("Pay 100",),
        ("1 plain version with other words",),
        never=("secret",),
    )
    yield Case(
        "e-mail whose plain version has addresses",
        lambda: _mail(
            "Pay 100 <https://pay.example/1>\n", "<p>Pay <a href=https://pay.example/1>100</a></p>"
        ),
        ("Pay 100 <https://pay.example/1>",),
        never=("other words",),
    )


def _book() -> Case:
    page = (
        "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>t</title>"
        "<link rel='stylesheet' type='text/css' href='../style%20sheets/a.css'/></head>"
        "<body><p>Seen</p><p class='x'>secret</p></body></html>"
    )
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="b/c.opf"/></rootfiles></container>',
        "b/c.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="text/a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>',
        "b/text/a.xhtml": page,
        "b/style sheets/a.css": ".x{display:none}",
    }
    return Case(
        "book that hides a passage", lambda: packed(files), ("Seen",), LEFT_OUT, never=("secret", "addresses")
    )


def _page(inside: str, sheet: str = "") -> object:
    style = f"<style>{sheet}</style>" if sheet else ""
    return lambda: (
        f"<!doctype html><html><head>{style}</head><body><div>Seen</div>{inside}<div>End</div></body></html>".encode()
    )


def _mail(plain: str | None, page: str) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ana@example.com", "ben@example.com", "Invoice"
    if plain is None:
        message.set_content(page, subtype="html")
    else:
        message.set_content(plain)
        message.add_alternative(page, subtype="html")
    return message.as_bytes()
