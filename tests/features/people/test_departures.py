"""Who is gone from the platform by which they signed in loses their sessions, and features are told."""

from datetime import datetime, timedelta

import pytest
from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.accounts import linking, sign_in_links
from bot.domain.chat import Address
from bot.domain.hooks import Hooks
from bot.domain.jobs import Job
from bot.domain.people import Actor, Membership
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable
from bot.features.people import rows
from bot.store import state
from bot.store.audit import verification
from bot.store.rules import Policies
from tests.kit import ANA, BEN, MakeNod, Nod, call


async def sign_in(nod: Nod, who: Actor) -> str:
    code = await nod.database.write(sign_in_links.create_link, who, nod.clock())
    secret = await nod.database.write(
        sign_in_links.sign_in_by_link, Policies(nod.policy, nod.clock), code, nod.clock()
    )
    assert secret is not None
    return secret


async def is_signed_in(nod: Nod, secret: str) -> bool:
    return await nod.database.read(sign_in_links.find_signed_in, secret, nod.clock()) is not None


async def look(nod: Nod) -> None:
    await next(each for each in nod.sweeps if each.name == "end_departed").run(nod.clock())


async def test_the_sessions_of_someone_who_is_gone_end_and_no_one_elses(make_nod: MakeNod) -> None:
    told: list[str] = []
    hooks = Hooks(change_person=(lambda _, account, __: told.append(str(account)) or (),))
    nod = make_nod(hooks=hooks)
    ana, ben = await sign_in(nod, ANA), await sign_in(nod, BEN)
    unused = await nod.database.write(sign_in_links.create_link, ANA, nod.clock())
    told.clear()
    await look(nod)
    assert told == []
    nod.chat.standings[str(ANA)] = None
    await look(nod)
    assert (await is_signed_in(nod, ana), await is_signed_in(nod, ben)) == (False, True)
    assert str(ANA) in told
    assert str(BEN) not in told
    policies = Policies(nod.policy, nod.clock)
    assert await nod.database.write(sign_in_links.sign_in_by_link, policies, unused, nod.clock()) is None
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


async def allow_painting(nod: Nod, by: Actor) -> None:
    """Have someone ask for a coat of paint, and allow all calls like it."""
    [proposal] = await nod.asked(call("paint", lamp="desk", color="red"), by=by, at=Address("chat", by.key))
    await nod.press(Verb.SIMILAR, proposal, by=by, rung=GrantScope.TOOL, lasting=GrantDuration.DAY)
    await nod.idle()


def list_grants(nod: Nod) -> list[str]:
    return nod.database.read_now(grants.list_givers, nod.clock())


async def test_the_grants_of_someone_who_is_gone_end_and_no_one_elses(make_nod: MakeNod) -> None:
    nod = make_nod()
    for who in (ANA, BEN):
        await allow_painting(nod, who)
    assert sorted(list_grants(nod)) == sorted([str(ANA), str(BEN)])
    nod.chat.standings[str(ANA)] = None
    await look(nod)
    assert list_grants(nod) == [str(BEN)]
    assert nod.database.read_now(verification.find_faults_in_session) == []


async def test_who_stands_in_for_someone_who_is_gone_decides_for_them_no_longer(nod: Nod) -> None:
    until = nod.clock() + timedelta(days=3)
    await nod.database.write(rows.begin_absence, ANA, BEN, until, nod.clock())
    nod.chat.standings[str(ANA)] = None
    await look(nod)
    assert nod.database.read_now(rows.list_away) == []


async def test_an_account_that_is_gone_is_unlinked_so_that_the_other_signs_in_again_once(nod: Nod) -> None:
    policies = Policies(nod.policy, nod.clock)
    await nod.database.write(linking.link_accounts, policies, ANA, BEN, ANA, nod.clock())
    nod.chat.standings[str(ANA)] = None
    ben = await sign_in(nod, BEN)
    await look(nod)
    assert not await is_signed_in(nod, ben)
    again = await sign_in(nod, BEN)
    await look(nod)
    assert await is_signed_in(nod, again)


class Stubborn:
    """A hook that raises after a write of its own, until it is told to take what it is given."""

    def __init__(self) -> None:
        self.takes = False
        self.told: list[str] = []

    def __call__(self, session: Session, account: Actor, now: datetime) -> tuple[Job, ...]:
        state.store_state(session, "stubborn", f"{account} {self.takes}", {}, now)
        if not self.takes:
            raise RuntimeError("not now")
        self.told.append(str(account))
        return ()


async def test_a_feature_that_raises_stops_no_sign_out_and_is_told_again_until_it_takes_it(
    make_nod: MakeNod,
) -> None:
    stubborn = Stubborn()
    others: list[str] = []
    hooks = Hooks(change_person=(stubborn, lambda _, account, __: others.append(str(account)) or ()))
    nod = make_nod(hooks=hooks)
    stubborn.takes = True
    ana = await sign_in(nod, ANA)
    stubborn.takes = False
    for told in (stubborn.told, others):
        told.clear()
    await nod.database.write(sign_in_links.end_sessions_of, ANA, BEN, nod.clock())
    assert not await is_signed_in(nod, ana)
    assert others != []
    kept = nod.database.read_now(state.list_states, "stubborn")
    assert f"{others[0]} False" not in kept  # nothing stays of what it wrote
    await look(nod)
    assert stubborn.told == []
    stubborn.takes = True
    await look(nod)
    assert stubborn.told == [others[0]]
    await look(nod)
    assert len(stubborn.told) == 1


async def test_a_feature_that_raises_stops_no_unlinking(make_nod: MakeNod) -> None:
    stubborn = Stubborn()
    stubborn.takes = True
    nod = make_nod(hooks=Hooks(change_person=(stubborn,)))
    await nod.database.write(
        linking.link_accounts, Policies(nod.policy, nod.clock), ANA, BEN, ANA, nod.clock()
    )
    stubborn.takes = False
    await nod.database.write(linking.unlink_account, str(BEN), ANA, nod.clock())
    stubborn.takes = True
    stubborn.told.clear()
    await look(nod)
    assert sorted(stubborn.told) == sorted([str(ANA), str(BEN)])
