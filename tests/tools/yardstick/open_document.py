"""OpenDocument files: texts and slides; the tables are in ``sheets.py``."""

from collections.abc import Iterator

from tests.tools.yardstick import Case
from tests.tools.yardstick.word import packed

SPACES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for short, name in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("presentation", "presentation"), ("manifest", "manifest"), ("meta", "meta"), ("svg", "svg-compatible"),
    )
) + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'  # fmt: skip


def opened(
    kind: str, body: str, styles: str = "", *, automatic: str = "", more: dict[str, str | bytes] | None = None
) -> bytes:
    mime = f"application/vnd.oasis.opendocument.{kind}"
    tag = {"text": "text", "presentation": "presentation", "spreadsheet": "spreadsheet"}[kind]
    return packed({
        "mimetype": mime,
        "META-INF/manifest.xml": f'<manifest:manifest {SPACES}><manifest:file-entry manifest:full-path="/" manifest:media-type="{mime}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>',
        "content.xml": f"<office:document-content {SPACES}><office:automatic-styles>{automatic}</office:automatic-styles><office:body><office:{tag}>{body}</office:{tag}></office:body></office:document-content>",
        "styles.xml": f"<office:document-styles {SPACES}>{styles}</office:document-styles>",
        "meta.xml": f"<office:document-meta {SPACES}><office:meta/></office:document-meta>",
        **(more or {}),
    })  # fmt: skip


def cases() -> Iterator[Case]:
    def text(
        name: str,
        body: str,
        *reads: str,
        notes: tuple[str, ...] = (),
        never: tuple[str, ...] = (),
        styles: str = "",
        automatic: str = "",
    ) -> Case:
        return Case(
            f"odt {name}",
            lambda: opened("text", body, styles, automatic=automatic),
            reads,
            notes,
            never=never,
        )

    yield text("plain", "<text:p>Open words</text:p>", "Open words")
    yield text(
        "remarks for programs",
        "<text:p>Se<!-- secret -->en <?note secret?>words</text:p>",
        "Seen words",
        never=("secret",),
    )
    yield text(
        "heading", '<text:h text:outline-level="1">Title</text:h><text:p>Body</text:p>', "# Title", "Body"
    )
    yield text(
        "spaces and tabs",
        '<text:p>a<text:tab/>b<text:s text:c="3"/>c<text:line-break/>d</text:p>',
        "a\tb   c\nd",
    )
    yield text(
        "list",
        "<text:list><text:list-item><text:p>One</text:p></text:list-item><text:list-item><text:p>Two</text:p></text:list-item></text:list>",
        "One",
        "Two",
    )
    yield text(
        "table",
        "<table:table><table:table-row><table:table-cell><text:p>left</text:p></table:table-cell><table:table-cell><text:p>right</text:p></table:table-cell></table:table-row></table:table>",
        "left\tright",
    )
    yield text(
        "note",
        '<text:p>Sum<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>Without tax</text:p></text:note-body></text:note></text:p>',
        "Sum",
        "Without tax",
    )
    yield text(
        "comment",
        "<text:p>Price<office:annotation><dc:creator>Ben</dc:creator><text:p>Too high</text:p></office:annotation></text:p>",
        "Price",
        "Too high",
    )
    yield text(
        "tracked changes",
        '<text:tracked-changes><text:changed-region text:id="c1"><text:deletion><text:p>struck</text:p></text:deletion></text:changed-region></text:tracked-changes>'
        '<text:p>Kept<text:change text:change-id="c1"/></text:p>',
        "Kept", notes=("1 tracked deletion",), never=("struck",),
    )  # fmt: skip
    yield text(
        "link",
        '<text:p><text:a xlink:href="https://example.com/t">terms</text:a></text:p>',
        "terms",
        "https://example.com/t",
    )
    yield text(
        "text box",
        "<text:p><draw:frame><draw:text-box><text:p>Boxed</text:p></draw:text-box></draw:frame></text:p>",
        "Boxed",
    )
    yield text("section", "<text:section><text:p>In a section</text:p></text:section>", "In a section")
    yield text(
        "header",
        "<text:p>Body</text:p>",
        "Body",
        "Draft only",
        styles="<office:master-styles><style:master-page><style:header><text:p>Draft only</text:p></style:header></style:master-page></office:master-styles>",
    )
    yield text(
        "picture",
        '<text:p>See<draw:frame><draw:image xlink:href="Pictures/a.png"/><svg:desc>A lamp</svg:desc></draw:frame></text:p>',
        "See",
        notes=("1 picture",),
    )
    yield text("hidden text", '<text:p>Seen<text:hidden-text text:string-value="secret"/></text:p>', "Seen")
    yield text(
        "hidden by its style",
        '<text:p>Seen<text:span text:style-name="T1">secret</text:span></text:p>',
        "Seen",
        notes=("hidden",),
        automatic='<style:style style:name="T1" style:family="text"><style:text-properties text:display="none"/></style:style>',
    )
    yield text("field", "<text:p>On <text:date>5 May</text:date></text:p>", "On 5 May")
    yield Case(
        "odt protected",
        lambda: opened(
            "text",
            "",
            more={
                "META-INF/manifest.xml": f'<manifest:manifest {SPACES}><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"><manifest:encryption-data/></manifest:file-entry></manifest:manifest>',
                "content.xml": b"\x01\x02",
            },
        ),
        fault="password",
    )
    yield Case(
        "odp slides",
        lambda: opened(
            "presentation",
            '<draw:page draw:name="p1"><draw:frame><draw:text-box><text:p>Slide words</text:p></draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>Say this</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>',
        ),
        ("[Slide 1]", "Slide words", "Say this"),
    )
    yield Case(
        "odp hidden slide",
        lambda: opened("presentation", '<draw:page draw:name="p1"><draw:frame><draw:text-box><text:p>A</text:p></draw:text-box></draw:frame></draw:page><draw:page draw:style-name="dp1"><draw:frame><draw:text-box><text:p>Backup</text:p></draw:text-box></draw:frame></draw:page>', automatic='<style:style style:name="dp1" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'),
        ("A", "Backup"), ("1 hidden slide",),
    )  # fmt: skip
