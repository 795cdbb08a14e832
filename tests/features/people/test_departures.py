"""Who is gone from the platform by which they signed in loses their sessions, and features are told."""

import pytest

from bot.approvals.accounts import sign_in_links
from bot.domain.hooks import Hooks
from bot.domain.people import Actor, Membership
from bot.errors import ChannelError, NotDeliverable
from bot.store.rules import Policies
from tests.kit import ANA, BEN, MakeNod, Nod


async def sign_in(nod: Nod, who: Actor) -> str:
    code = await nod.database.write(sign_in_links.new_link, who, nod.clock())
    secret = await nod.database.write(
        sign_in_links.sign_in, Policies(nod.policy, nod.clock), code, nod.clock()
    )
    assert secret is not None
    return secret


async def is_signed_in(nod: Nod, secret: str) -> bool:
    return await nod.database.read(sign_in_links.find_signed_in, secret, nod.clock()) is not None


async def look(nod: Nod) -> None:
    await next(each for each in nod.sweeps if each.name == "end_departed").run(nod.clock())


async def test_the_sessions_of_someone_who_is_gone_end_and_no_one_elses(make_nod: MakeNod) -> None:
    told: list[str] = []
    hooks = Hooks(change_person=(lambda _, account, __: told.append(str(account)),))
    nod = make_nod(hooks=hooks)
    ana, ben = await sign_in(nod, ANA), await sign_in(nod, BEN)
    unused = await nod.database.write(sign_in_links.new_link, ANA, nod.clock())
    told.clear()
    await look(nod)
    assert told == []
    nod.chat.standings[str(ANA)] = None
    await look(nod)
    assert (await is_signed_in(nod, ana), await is_signed_in(nod, ben)) == (False, True)
    assert str(ANA) in told
    assert str(BEN) not in told
    policies = Policies(nod.policy, nod.clock)
    assert await nod.database.write(sign_in_links.sign_in, policies, unused, nod.clock()) is None
    told.clear()
    await look(nod)
    assert told == []


@pytest.mark.parametrize("refusal", [ChannelError("it is down"), NotDeliverable("it never says")])
async def test_where_the_platform_does_not_say_no_one_is_signed_out(nod: Nod, refusal: ChannelError) -> None:
    ana = await sign_in(nod, ANA)
    nod.chat.refusals["standing"] = refusal
    await look(nod)
    assert await is_signed_in(nod, ana)


async def test_a_guest_stays_signed_in(nod: Nod) -> None:
    ana = await sign_in(nod, ANA)
    nod.chat.standings[str(ANA)] = Membership.GUEST
    await look(nod)
    assert await is_signed_in(nod, ana)
