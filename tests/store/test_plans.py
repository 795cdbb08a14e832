"""Each statement of the API, the sweeps and the metrics finds its rows by an index, or is listed."""

import re

import pytest

from tests.kit.plans import AskedTexts, ask_everything, read_from_end_to_end
from tests.web.conftest import ANA, CHIEF, TOKENS, Serve
from tests.web.scripted import ScriptedModel, ask, say

pytestmark = pytest.mark.slow

VERIFIED = "the audit log is verified"
SCANS = {
    r"^INSERT INTO (conversation|proposal) ": "SQLite looks for rows that lacked their key, if any did",
    r"FROM audit ORDER BY audit.id DESC\s+LIMIT 1": "it is the end of the key",
    r"FROM audit JOIN proposal .* ORDER BY audit.id DESC\s+LIMIT": "a page of the audit log goes back "
    "until it is full: of a rare account, tool or grant that is all of the log",
    r"FROM ledger\s+(WHERE .*)?ORDER BY ledger.id DESC": "the same page, which stops at its length",
    r"FROM ledger\s+WHERE ledger.(thing|holds) .* ORDER BY ledger.id\s*$": VERIFIED,
    r"FROM audit LEFT OUTER JOIN proposal": VERIFIED,
    r"FROM (absence|account|connection|memory|token|schedule|grant_given)\s*$": VERIFIED,
    r"FROM grant_given LEFT OUTER JOIN proposal": VERIFIED,
    r"FROM grant_given\s+WHERE .*revoked_at IS NULL": "the list of grants, each given by a press",
    r"FROM memory\s+WHERE .* LIMIT": "a page of what people had Nod remember",
    r"FROM sign_in\s+WHERE sign_in.code IS 0": "once an hour, each browser that is signed in",
    r"FROM push_device\s+WHERE .* ORDER BY push_device.created_at DESC\s+LIMIT 500": "the list of devices "
    "that admins see, each added by a person",
    r"FROM account ORDER BY": "the list of linked accounts, each linked by a person",
}
"""The statements that read a table or index from end to end, as patterns, and why they may."""


@pytest.mark.usefixtures("only_on_sqlite")  # PostgreSQL chooses by how many rows there are
async def test_no_statement_reads_a_table_from_end_to_end_without_a_reason(serve: Serve) -> None:
    asks = ask(("keep", {"text": "milk"}))
    model = ScriptedModel(asks, say("Done."), asks, say("No."), asks)
    settings = {
        "NOD_HTTP_TOKENS": ",".join(TOKENS),
        "NOD_ADMINS": "http:chief",
        "NOD_METRICS_TOKEN": "metrics-0123456789abcdef",
    }
    async with serve(model=model, token=ANA, patience=300, **settings) as nod:
        asked = AskedTexts(nod.app.database)
        [kept] = await nod.proposed()
        await nod.press(kept, "approve?wait=20")
        [declined] = await nod.proposed()
        await nod.press(declined, "decline")
        [waiting] = await nod.proposed()
        known = {
            "proposal_id": waiting["id"],
            "conversation_id": waiting["conversation_id"],
            "before": "",
            "q": "milk",
            "channel": "http",
            "requester": "http:ana",
            "who": "http:ana",
            "tool": "keep",
        }
        await ask_everything(nod.app, nod.client, known)
        async with nod.caller(CHIEF) as chief, nod.caller("metrics-0123456789abcdef") as monitor:
            await ask_everything(nod.app, chief, known)
            assert (await monitor.get("/metrics")).status_code == 200
        texts = list(asked.texts)
        assert len(texts) > 150
        found = {text: ends for text in texts if (ends := read_from_end_to_end(nod.app.database, text))}
    unexplained = [text for text in found if not any(re.search(each, text, re.DOTALL) for each in SCANS)]
    assert not unexplained, "\n\n".join(f"{found[text]}: {text}" for text in unexplained)
    unused = [each for each in SCANS if not any(re.search(each, text, re.DOTALL) for text in found)]
    assert not unused
