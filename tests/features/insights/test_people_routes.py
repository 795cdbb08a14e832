"""The signs of how people decide over HTTP: whose, and what the console says was opened."""

from tests.features.push.conftest import KEY
from tests.store.test_statements import counting
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Json, Serve, Served
from tests.web.scripted import ask, say

SETTINGS = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "NOD_APPROVERS": ("http:ben",)}
PEOPLE = SETTINGS | {"NOD_INSIGHTS": "people"}


async def decide(nod: Served, token: str, *, kept: bool = True) -> None:
    """Ana asks, and this person opens the card and approves."""
    nod.model.answer(ask(("keep", {"text": "milk"})), say("Done."))
    async with nod.caller(ANA) as ana, nod.caller(token) as person:
        [proposal] = await nod.proposed(client=ana)
        answer = await person.post("/api/insights/opened", json={"proposal": proposal["id"], "part": "all"})
        assert (answer.status_code, answer.json()["kept"]) == (200, kept), answer.text
        assert (await nod.press(proposal, "approve", person)).status_code == 200
    await nod.idle()


async def find_signs(nod: Served, token: str, zone: str | None = None) -> Json:
    async with nod.caller(token) as person:
        answer = await person.get("/api/insights/people", params={"zone": zone} if zone else {})
    found: Json = answer.json()
    return found | {"status": answer.status_code}


async def test_admins_see_everyone_by_name_and_others_themselves(serve: Serve):
    async with serve(**PEOPLE) as nod:
        await decide(nod, ANA)
        await decide(nod, CHIEF)
        found = await find_signs(nod, CHIEF)
        assert (found["everyone"], found["timed"], found["total"]) == (True, True, None)
        assert [each["name"] for each in found["people"]] == ["ana", "chief"]
        signs = found["people"][0]["signs"]
        assert (signs["decided"], signs["timed"], signs["faster"], signs["viewed"]) == (1, 1, 1, 1)
        own = await find_signs(nod, ANA)
        assert ([each["name"] for each in own["people"]], own["everyone"]) == (["ana"], False)
        assert (await find_signs(nod, BEN))["people"] == []


async def test_by_default_no_one_is_named_and_nothing_is_timed(serve: Serve):
    async with serve(**SETTINGS) as nod:
        await decide(nod, ANA, kept=False)
        found = await find_signs(nod, CHIEF)
        assert (found["total"], found["people"], found["timed"]) == (None, [], False)
        [own] = (await find_signs(nod, ANA))["people"]
        assert (own["signs"]["decided"], own["signs"]["timed"], own["signs"]["viewed"]) == (1, 0, 0)


async def test_ones_own_working_hours_go_by_ones_own_clock(serve: Serve):
    async with serve(**PEOPLE) as nod:
        await decide(nod, ANA)  # Monday, 9:00 UTC
        for zone, outside in ((None, 0), ("UTC", 0), ("Pacific/Auckland", 1)):
            [own] = (await find_signs(nod, ANA, zone))["people"]
            assert own["signs"]["outside_hours"] == outside
        [other] = (await find_signs(nod, CHIEF, "Pacific/Auckland"))["people"]
        assert other["signs"]["outside_hours"] == 0
        assert (await find_signs(nod, ANA, "Nowhere/Town"))["status"] == 422


async def test_everyone_elses_working_hours_go_by_the_zone_of_their_quiet_hours(serve: Serve):
    async with serve(**PEOPLE, NOD_PUSH_KEY=KEY.private) as nod:
        asked: list[int] = []
        for token in (ANA, CHIEF):
            await decide(nod, token)  # Monday, 9:00 UTC
            async with nod.caller(token) as person:
                quiet = {"begins": "22:00", "ends": "07:00", "zone": "Pacific/Auckland"}
                assert (await person.put("/api/push/quiet", json=quiet)).status_code == 200
            statements: list[str] = []
            with counting(nod.app.database, statements):
                found = await find_signs(nod, CHIEF)
            assert {each["signs"]["outside_hours"] for each in found["people"]} == {1}
            asked.append(len(statements))
        assert asked[0] == asked[1]
        [own] = (await find_signs(nod, ANA, "UTC"))["people"]
        assert own["signs"]["outside_hours"] == 0
        [own] = (await find_signs(nod, ANA))["people"]
        assert own["signs"]["outside_hours"] == 1


async def test_turned_off_there_is_nothing(serve: Serve):
    async with serve(**SETTINGS, NOD_INSIGHTS="false") as nod:
        assert (await find_signs(nod, CHIEF))["status"] == 404


async def test_no_one_opens_a_card_that_they_may_not_see(serve: Serve):
    async with serve(**PEOPLE) as nod:
        nod.model.answer(ask(("keep", {"text": "milk"})), say("Done."))
        async with nod.caller(ANA) as ana, nod.caller("dee-0123456789abcdef") as dee:
            [proposal] = await nod.proposed(client=ana)
            for ident in (proposal["id"], "no-such-id"):
                answer = await dee.post("/api/insights/opened", json={"proposal": ident, "part": "all"})
                assert answer.status_code == 404
            answer = await ana.post("/api/insights/opened", json={"proposal": proposal["id"], "part": "ads"})
            assert answer.status_code == 422
