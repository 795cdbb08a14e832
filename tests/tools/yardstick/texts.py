"""Texts in the encodings of the world, and files that are text with marks."""

import json
from collections.abc import Iterator
from email.message import EmailMessage

from tests.tools.yardstick import Case
from tests.tools.yardstick.word import packed

GERMAN = "Schöne Grüße aus München. Die Größe ist fünf Meter, der Preis beträgt wie immer viel.\r\n"
FRENCH = "Bonjour, veuillez envoyer le contrat signé et la facture réglée avant vendredi, à bientôt.\r\n"
RUSSIAN = "Добрый день! Прошу прислать договор и счёт до пятницы. Спасибо, Анна.\r\n"
UKRAINIAN = "Добрий день! Прошу надіслати договір і рахунок до п'ятниці. Дякую, Ганна. Їжак їсть.\r\n"
JAPANESE = "お世話になっております。請求書を金曜日までに送ってください。よろしくお願いします。\r\n"
KOREAN = "안녕하세요. 금요일까지 계약서와 청구서를 보내 주세요. 감사합니다.\r\n"
CHINESE = "您好,请在星期五之前把合同和发票发给我。谢谢,安娜。\r\n"
TAIWANESE = "您好,請在星期五之前把合約和發票寄給我。謝謝,安娜。\r\n"
POLISH = "Dzień dobry, proszę przesłać umowę i fakturę do piątku. Dziękuję, zażółć gęślą jaźń.\r\n"
CZECH = "Dobrý den, prosím pošlete smlouvu a fakturu do pátku. Děkuji, příliš žluťoučký kůň.\r\n"
GREEK = "Καλημέρα, παρακαλώ στείλτε το συμβόλαιο και το τιμολόγιο μέχρι την Παρασκευή.\r\n"
TURKISH = "Merhaba, lütfen sözleşmeyi ve faturayı cuma gününe kadar gönderin. Teşekkürler, ığşİ.\r\n"
HEBREW = "שלום, נא לשלוח את החוזה ואת החשבונית עד יום שישי. תודה, אנה.\r\n"
ARABIC = "مرحبا، يرجى إرسال العقد والفاتورة قبل يوم الجمعة. شكرا، آنا.\r\n"
LITHUANIAN = "Laba diena, prašome atsiųsti sutartį ir sąskaitą iki penktadienio. Ačiū, žąsis ėjo.\r\n"
GUESSED = ("doesn't say its encoding",)
ENCODED = (
    ("utf-8-sig", GERMAN), ("utf-16", GERMAN), ("utf-16-le", GERMAN), ("utf-16-be", RUSSIAN), ("utf-16-le", CHINESE),
    ("utf-32", GERMAN), ("utf-32-le", RUSSIAN), ("cp932", JAPANESE), ("euc_jp", JAPANESE), ("iso2022_jp", JAPANESE),
    ("euc_kr", KOREAN), ("gbk", CHINESE), ("gb18030", CHINESE), ("big5", TAIWANESE), ("cp1250", POLISH),
    ("cp1250", CZECH), ("cp1251", RUSSIAN), ("cp1251", UKRAINIAN), ("cp1252", GERMAN), ("cp1252", FRENCH),
    ("cp1253", GREEK), ("cp1254", TURKISH), ("cp1255", HEBREW), ("cp1256", ARABIC), ("cp1257", LITHUANIAN),
    ("koi8_r", RUSSIAN), ("koi8_u", UKRAINIAN), ("cp437", GERMAN), ("cp850", FRENCH), ("cp852", POLISH),
    ("cp866", RUSSIAN), ("mac_roman", GERMAN), ("iso8859_2", POLISH), ("iso8859_5", RUSSIAN),
)  # fmt: skip
SHORT = (
    ("cp1252", "naïve,1"),
    ("cp1252", "25 °C"),
    ("cp1252", "Größe"),
    ("cp932", "こんにちは"),
    ("cp1251", "Здравствуйте"),
    ("cp850", "Müller GmbH, Straße 5"),
)


def cases() -> Iterator[Case]:
    yield Case("text in UTF-8", lambda: GERMAN.encode(), (GERMAN,))
    for coding, text in (*ENCODED, *SHORT):
        newline = "\n" if coding == "mac_roman" else "\r\n"
        said = text.replace("\r\n", newline)
        notes = () if coding in ("utf-8-sig", "utf-16", "utf-32") else GUESSED
        yield Case(
            f"text in {coding}: {text[:12]}",
            lambda said=said, coding=coding: said.encode(coding),
            (said,),
            notes,
            never=("\ufeff", "\ufffd"),
        )
    log = "2026-05-05 10:30:00 service started, all is well\n"
    yield Case(
        "log with a NUL",
        lambda: (log * 5 + "\0" + log).encode(),
        (log,),
        ("1 control character",),
        never=("\0",),
    )
    yield Case(
        "log with a block of NUL",
        lambda: (log * 5).encode() + bytes(4096) + log.encode(),
        (log,),
        ("4,096 control characters",),
    )
    yield Case(
        "file of DOS with its end", lambda: (log * 3).encode() + b"\x1a", (log,), ("1 control character",)
    )
    yield Case("log with colours", lambda: b"\x1b[31mfailed\x1b[0m\n", ("failed",))
    yield Case(
        "UTF-8 that is cut in a character",
        lambda: (GERMAN * 3).encode()[:-1] + b"\xc3",
        (GERMAN,),
        ("1 damaged character",),
    )
    yield Case(
        "log with one wrong byte",
        lambda: (GERMAN * 3).encode() + b"\xe9t\n",
        (GERMAN,),
        ("damaged character",),
    )
    yield Case("empty file", lambda: b"", fault="it is empty")
    yield Case("file of spaces", lambda: b" \n\t\n", fault="it is empty")
    yield Case("no text", lambda: bytes(range(256)) * 20, fault="of a kind I don't know")
    yield Case(
        "page with its charset",
        lambda: (
            f'<html><head><meta charset="windows-1251"><title>Счёт</title></head><body><p>{RUSSIAN}</p></body></html>'.encode(
                "cp1251"
            )
        ),
        ("# Счёт", RUSSIAN.strip()),
        never=("encoding",),
    )
    yield Case(
        "page with an old charset",
        lambda: (
            f'<html><head><meta http-equiv="Content-Type" content="text/html; charset=koi8-r"></head><body><p>{RUSSIAN}</p></body></html>'.encode(
                "koi8_r"
            )
        ),
        (RUSSIAN.strip(),),
    )
    yield Case(
        "page in Shift-JIS",
        lambda: f"<html><meta charset=Shift_JIS><body>{JAPANESE}</body></html>".encode("cp932"),
        (JAPANESE.strip(),),
    )
    yield Case(
        "page in UTF-16",
        lambda: f"<html><body><p>{GERMAN}</p></body></html>".encode("utf-16"),
        (GERMAN.strip(),),
    )
    yield Case(
        "page after a comment",
        lambda: (
            b"<!-- saved from url -->\n<!DOCTYPE html><html><body><script>no()</script><p>Seen</p></body></html>"
        ),
        ("Seen",),
        never=("no()",),
    )
    yield Case(
        "page with pictures",
        lambda: b'<html><body>Seen <img src="a.png" alt="A lamp"><svg><text>x</text></svg></body></html>',
        ("Seen", "A lamp"),
        ("2 pictures",),
    )
    yield Case(
        "page with a table", lambda: b"<html><table><tr><td>12<td>500<tr><td><td>7</table>", ("12\t500", "7")
    )
    yield Case(
        "page with a form",
        lambda: (
            b"<html><body>Name <input value='Ana'><input type=hidden value=token><input type=checkbox checked>Agreed"
            b"<select><option>Visa<option selected>Cash</select></body></html>"
        ),
        ("Name Ana", "☒ Agreed", "Visa\n☒ Cash"),
        never=("token",),
    )
    yield Case(
        "page with hidden words",
        lambda: (
            b"<html><body>Seen<p style='color:red; display: none'>a</p><p hidden>b</p><p style='font-size:0.9em'>c</p></body></html>"
        ),
        ("Seen",),
        ("Left out: 2 pieces of hidden text",),
    )
    yield Case(
        "XML with its encoding",
        lambda: f'<?xml version="1.0" encoding="windows-1251"?><order>{RUSSIAN}</order>'.encode("cp1251"),
        (RUSSIAN.strip(),),
        never=("doesn't say",),
    )
    yield Case(
        "XML that says UTF-8",
        lambda: f'<?xml version="1.0" encoding="UTF-8"?><order>{RUSSIAN}</order>'.encode(),
        (RUSSIAN.strip(),),
    )
    yield Case(
        "SVG", lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><text>Plan A</text></svg>', ("Plan A",)
    )
    yield Case("JSON", lambda: '{"größe": [1, 2]}'.encode(), ('{"größe": [1, 2]}',))
    yield Case("YAML", lambda: b"name: nod\nlist:\n  - a\n", ("name: nod\nlist:\n  - a\n",))
    yield Case("Python", lambda: b"#!/usr/bin/env python3\nprint('x')\n", ("print('x')",))
    yield Case(
        "Markdown with a picture in it",
        lambda: b"# Title\n![x](data:image/png;base64," + b"A" * 5000 + b")\nEnd\n",
        ("# Title", "End"),
        ("1 picture or file",),
        never=("AAAAAA",),
    )
    yield Case(
        "RTF",
        lambda: (
            rb"{\rtf1\ansi\ansicpg1252 {\fonttbl{\f0 Arial;}}{\info{\author Ben}}\f0 Gr\'fc\'dfe and \b bold\b0\par Second {\u8364?} line}"
        ),
        ("Grüße and bold", "Second € line"),
        never=("Arial", "\\par"),
    )
    yield Case("RTF in Russian", lambda: rb"{\rtf1\ansi\ansicpg1251 \'cf\'f0\'e8\'e2\'e5\'f2}", ("Привет",))
    yield Case(
        "RTF with a picture",
        lambda: rb"{\rtf1 Before {\pict\pngblip 89504e47} after}",
        ("Before", "after"),
        ("1 picture",),
        never=("89504e47",),
    )
    yield Case(
        "RTF with hidden text",
        lambda: rb"{\rtf1 Seen {\b\v secret} end}",
        ("Seen", "end"),
        ("1 piece of hidden text",),
        never=("secret",),
    )
    yield Case(
        "RTF with hidden text between others",
        lambda: rb"{\rtf1 Seen \v secret\v0 end}",
        ("Seen", "end"),
        ("Hidden in the file, but read: 1 piece of hidden text",),
    )
    yield Case(
        "RTF with a deletion",
        lambda: rb"{\rtf1 Kept {\deleted struck} end}",
        ("Kept", "end"),
        ("1 tracked deletion",),
        never=("struck",),
    )
    yield Case(
        "RTF with a footnote",
        lambda: rb"{\rtf1 Sum{\footnote Without tax} end}",
        ("Sum", "[Note] Without tax"),
    )
    yield Case(
        "RTF with a header",
        lambda: rb"{\rtf1 {\headerl Draft only\par}Body}",
        ("Body", "[Header] Draft only"),
    )
    yield Case(
        "RTF with a comment",
        lambda: rb"{\rtf1 Price{\*\annotation Too high} end}",
        ("Price", "[Comment] Too high"),
    )
    yield Case(
        "RTF with a text box",
        lambda: rb"{\rtf1 Body{\shp{\*\shpinst{\sp{\sn shapeType}{\sv 202}}{\shptxt Boxed words\par}}}end}",
        ("Body", "Boxed words"),
        never=("shapeType",),
    )
    yield Case(
        "RTF table",
        lambda: rb"{\rtf1 \trowd\cellx1000\cellx2000 left\cell right\cell\row}",
        ("left", "right"),
    )
    yield Case(
        "notebook",
        _notebook,
        ("print('hi')", "hi there", "Some words", "ValueError: no such thing", "The end"),
        ("1 picture",),
        never=("AAAA",),
    )
    yield Case(
        "old notebook",
        lambda: json.dumps(
            {
                "nbformat": 3,
                "worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"], "outputs": []}]}],
            }
        ).encode(),
        ("x = 1",),
    )
    yield Case(
        "e-mail",
        _mail,
        ("From: Ana <ana@example.com>", "Subject: Größe", "Schöne Grüße", "[Attached: offer.pdf]"),
        ("1 attached file",),
    )
    yield Case("e-mail of HTML", lambda: _mail(html=True), ("Schöne Grüße",), never=("<p>",))
    yield Case(
        "e-mail in another charset",
        lambda: (
            b"From: a@example.com\r\nSubject: =?windows-1251?B?0dfF0g==?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=windows-1251\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
            + RUSSIAN.encode("cp1251")
        ),
        ("Subject: СЧЕТ", RUSSIAN.strip()),
    )
    yield Case(
        "e-mail whose page says more",
        lambda: _two_versions("Pay 100", "<p>Pay 900</p>"),
        ("Pay 900",),
        ("1 plain version with other words",),
        never=("100",),
    )
    yield Case(
        "e-mail of two versions",
        lambda: _two_versions("Pay *100* soon", "<p>Pay <b>100</b> soon</p>"),
        ("Pay *100* soon",),
    )
    yield Case(
        "e-mail without its encoding",
        lambda: b"From: a@example.com\r\nSubject: s\r\nMIME-Version: 1.0\r\n\r\n" + GERMAN.encode(),
        (GERMAN.strip(),),
        never=("\ufffd",),
    )
    yield Case(
        "e-mail that is encrypted",
        lambda: (
            b"From: a@example.com\r\nSubject: s\r\nContent-Type: application/pkcs7-mime; name=smime.p7m\r\n"
            b"Content-Transfer-Encoding: base64\r\n\r\nMIIB\r\n"
        ),
        ("Subject: s",),
        ("1 attached file",),
    )
    yield Case(
        "contact with a picture",
        lambda: (
            b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ana\r\nPHOTO;ENCODING=b:"
            + b"A" * 70
            + b"\r\n "
            + b"A" * 70
            + b"\r\nTEL:123\r\nEND:VCARD\r\n"
        ),
        ("FN:Ana", "TEL:123"),
        ("1 picture or file",),
        never=("AAAA",),
    )
    yield Case(
        "calendar",
        lambda: (
            b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Launch\r\nDTSTART:20260505T100000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        ),
        ("SUMMARY:Launch", "DTSTART:20260505T100000Z"),
    )
    yield Case(
        "archive",
        lambda: packed({"a.txt": "hello", "b/c.csv": "1,2"}),
        ("a.txt\t5 bytes", "b/c.csv\t3 bytes"),
        ("2 packed files",),
    )
    yield Case("empty archive", lambda: b"PK\x05\x06" + bytes(18), fault="no text in it")
    yield Case("book", _book, ("# The book", "First chapter", "Second chapter"), never=("not in the spine",))
    yield Case(
        "book with a missing chapter", lambda: _book(missing=True), ("First chapter",), ("1 missing chapter",)
    )
    yield Case("archive of gzip", lambda: b"\x1f\x8b\x08" + bytes(50), fault="an archive")
    yield Case("voice message", lambda: bytes(4) + b"ftypM4A " + bytes(50), fault="a recording")
    yield Case("mp3 without a mark", lambda: b"\xff\xfb\x90\x64" + bytes(400), fault="a recording")
    yield Case("mp3", lambda: b"ID3\x04" + bytes(400), fault="a recording")
    yield Case("video", lambda: bytes(4) + b"ftypisom" + bytes(50), fault="a video")
    yield Case("database", lambda: b"SQLite format 3\0" + bytes(100), fault="a database")
    yield Case("program", lambda: b"MZ" + bytes(200), fault="a program")
    yield Case("text that begins like a program", lambda: b"MZ is the code of Mozambique\n", ("Mozambique",))
    yield Case("text that begins like a picture", lambda: b"BMW, Audi and others\n" * 3, ("Audi",))


def _notebook() -> bytes:
    cells = [
        {"cell_type": "markdown", "source": ["Some words"]},
        {"cell_type": "code", "source": "print('hi')", "outputs": [
            {"output_type": "stream", "text": ["hi there\n"]},
            {"output_type": "display_data", "data": {"image/png": "A" * 200_000, "text/plain": ["<Figure>"]}},
            {"output_type": "error", "ename": "ValueError", "evalue": "no such thing", "traceback": []},
        ]},
        {"cell_type": "markdown", "source": ["The end"]},
    ]  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def _two_versions(plain: str, page: str) -> bytes:
    parts = "".join(
        f"--x\r\nContent-Type: text/{kind}\r\n\r\n{text}\r\n"
        for kind, text in (("plain", plain), ("html", page))
    )
    head = "From: a@example.com\r\nSubject: s\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=x"
    return f"{head}\r\n\r\n{parts}--x--\r\n".encode()


def _mail(*, html: bool = False) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Ana <ana@example.com>", "ben@example.com", "Größe"
    message.set_content(
        "<html><p>Schöne Grüße</p></html>" if html else "Schöne Grüße", subtype="html" if html else "plain"
    )
    message.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="offer.pdf")
    return message.as_bytes()


def _book(*, missing: bool = False) -> bytes:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body><p>{}</p></body></html>'
    return packed({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
        "OEBPS/content.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The book</dc:title></metadata><manifest><item id="b" href="second%20one.xhtml"/><item id="a" href="first.xhtml"/><item id="n" href="other.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
        "OEBPS/first.xhtml": page.format("First chapter"),
        "OEBPS/other.xhtml": page.format("not in the spine"),
        **({} if missing else {"OEBPS/second one.xhtml": page.format("Second chapter")}),
    })  # fmt: skip
