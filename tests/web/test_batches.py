"""A batch over HTTP: which one a proposal is of, its table, and some rows decided by one request."""

from tests.web.conftest import ANA, BEN, TOKENS, Serve
from tests.web.test_proposals import asking

THREE = [("keep", {"text": text}) for text in ("bread", "eggs", "milk")]


async def test_a_batch_has_its_rows_and_says_where_each_stands(serve: Serve):
    async with serve(model=asking(*THREE)) as nod:
        found = await nod.proposed()
        ident = found[0]["id"]
        assert [p["batch"] for p in found] == [{"id": ident, "size": 3, "position": n} for n in (1, 2, 3)]
        body = (await nod.client.get(f"/api/batches/{ident}")).json()
        assert [p["id"] for p in body["proposals"]] == [p["id"] for p in found]
        assert (body["batch"]["size"], body["batch"]["open"], body["batch"]["state"]) == (3, 3, "proposed")
        assert [row["about"] for row in body["batch"]["rows"]] == ["“bread”", "“eggs”", "“milk”"]
        assert [row["seen"] for row in body["batch"]["rows"]] == [p["seen"] for p in found]
        assert (await nod.client.get("/api/batches/nothing")).status_code == 404
        assert (await nod.client.get(f"/api/batches/{found[1]['id']}")).status_code == 404


async def test_rows_are_approved_and_declined_by_one_request_as_they_were_seen(serve: Serve):
    async with serve(model=asking(*THREE)) as nod:
        rows = [{"id": p["id"], "seen": p["seen"]} for p in await nod.proposed()]
        path = f"/api/batches/{rows[0]['id']}/decide"
        body = {"approve": rows[:1], "decline": rows[1:2], "reason": "not today"}
        answer = await nod.client.post(path, json=body)
        assert (answer.status_code, answer.json()["text"]) == (200, "1 approved, 1 declined.")
        await nod.idle()
        assert nod.notes.kept == ["bread"]
        batch = (await nod.client.get(f"/api/batches/{rows[0]['id']}")).json()["batch"]
        assert batch["outcome"] == "1 waiting, 1 done, 1 declined. Approved by you."
        stale = await nod.client.post(path, json={"approve": [{"id": rows[2]["id"], "seen": "0" * 64}]})
        assert stale.status_code == 409
        for wrong in ({}, {"approve": rows[2:], "decline": rows[2:]}, {"approve": rows[2:] * 101}):
            assert (await nod.client.post(path, json=wrong)).status_code == 422
        assert nod.notes.kept == ["bread"]


async def test_one_who_may_not_see_it_finds_no_batch(serve: Serve):
    async with serve(model=asking(*THREE), NOD_HTTP_TOKENS=TOKENS, token=ANA) as nod, nod.caller(BEN) as ben:
        found = await nod.proposed()
        row = {"id": found[0]["id"], "seen": found[0]["seen"]}
        looked = await ben.get(f"/api/batches/{row['id']}")
        decided = await ben.post(f"/api/batches/{row['id']}/decide", json={"approve": [row]})
        assert (looked.status_code, decided.status_code) == (404, 404)
        assert nod.notes.kept == []
