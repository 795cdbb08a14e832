"""Signing in at providers as their documents say: Entra, Google, Apple, Cognito, Zitadel, Keycloak.

Then claims, keys and answers as people have met them elsewhere, each taken or refused with its reason.
"""

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bot.telemetry import logs
from tests.fakes.oidc_provider import CLIENT, FakeProvider
from tests.web.conftest import ANA, TOKENS, Serve, Served
from tests.web.test_organisation import HOME

pytestmark = pytest.mark.platform

SUBJECT = "248289761001"
NAMED = {"sub": SUBJECT, "name": "Kim Lee"}
ADDRESS = "kim@example.com"
BASIC, POST = "client_secret_basic", "client_secret_post"


@dataclass(frozen=True)
class Provider:
    """What one of them says of itself, of a person, and how it answers."""

    person: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    user_info: dict[str, Any] | None = None
    secret: str = "a-long-random-secret"
    more: dict[str, Any] = field(default_factory=dict)
    account: str = f"http:sso.{ADDRESS}"
    unverified: dict[str, Any] = field(default_factory=lambda: {"email": ADDRESS, "email_verified": False})


PROVIDERS = {
    # https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference
    "entra": Provider(
        NAMED | {"email": ADDRESS, "xms_edov": "1", "preferred_username": ADDRESS},
        {"token_endpoint_auth_methods_supported": [POST, "private_key_jwt", BASIC]},
        secret="a~b+c/d:e%41f",
        unverified={"email": ADDRESS, "preferred_username": ADDRESS},
    ),
    # https://developers.google.com/identity/openid-connect/openid-connect
    "google": Provider(
        NAMED | {"email": ADDRESS, "email_verified": True, "hd": "example.com"},
        {
            "token_endpoint_auth_methods_supported": [POST, BASIC],
            "scopes_supported": ["openid", "email", "profile"],
        },
    ),
    # https://developer.apple.com/documentation/signinwithapplerestapi
    "apple": Provider(
        {"sub": SUBJECT, "email": ADDRESS, "email_verified": "true", "is_private_email": "false"},
        {
            "token_endpoint_auth_methods_supported": [POST],
            "scopes_supported": ["openid", "email", "name"],
            "response_modes_supported": ["query", "fragment", "form_post"],
        },
        secret="a.signed.token",
        more={"posts": True},
        unverified={"email": ADDRESS, "email_verified": "false"},
    ),
    # https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-id-token.html
    "cognito": Provider(NAMED | {"email": ADDRESS, "email_verified": "true", "token_use": "id"}),
    # https://zitadel.com/docs/apis/openidoauth/claims: the address at userinfo alone
    "zitadel": Provider(
        NAMED,
        {"token_endpoint_auth_methods_supported": ["none", BASIC, POST]},
        user_info={"sub": SUBJECT, "email": ADDRESS, "email_verified": True},
        unverified={},
    ),
    # https://www.keycloak.org/docs/latest/server_admin
    "keycloak": Provider(
        NAMED | {"email": ADDRESS, "email_verified": True, "preferred_username": "kim"},
        {"token_endpoint_auth_methods_supported": ["private_key_jwt", BASIC, POST]},
        secret="a:b/c+d e",
        more={"moved": True, "kid": None},
    ),
}


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    made = FakeProvider(f"{HOME}/api/session/back")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def open_site(serve: Serve, provider: FakeProvider) -> Callable[..., Any]:
    """Serve a Nod for one of the providers; arguments: what it is, and who may sign in."""

    def start(kind: Provider, *allowed: str) -> Any:
        provider.person = dict(kind.person)
        provider.about = kind.about
        provider.secret = kind.secret
        if kind.user_info is not None:
            provider.user_info = kind.user_info
            provider.about = kind.about | {"userinfo_endpoint": f"{provider.url}/userinfo"}
        for name, value in kind.more.items():
            setattr(provider, name, value)
        return serve(
            NOD_HTTP_TOKENS=TOKENS,
            token=ANA,
            NOD_PUBLIC_URL=HOME,
            NOD_OIDC_ISSUER=provider.url,
            NOD_OIDC_CLIENT_ID=CLIENT,
            NOD_OIDC_CLIENT_SECRET=kind.secret,
            NOD_OIDC_ALLOWED=allowed or ("example.com",),
            NOD_ADMINS=(f"http:sso.{ADDRESS}",),
        )

    return start


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Return what is in the log, down to warnings."""
    logs.configure("warning")
    return lambda: str([record.msg for record in caplog.records])


async def sign_in(nod: Served, page: httpx.AsyncClient) -> httpx.Response:
    """Go to the provider and come back, as its answer says: by an address, or by a form."""
    sent = await page.get("/api/session/begin")
    assert sent.status_code == 303
    async with httpx.AsyncClient() as elsewhere:
        answer = await elsewhere.get(sent.headers["location"])
    there = {"Sec-Fetch-Site": "cross-site"}
    if answer.status_code == 302:
        parts = urlsplit(answer.headers["location"])
        return await page.get(f"{parts.path}?{parts.query}", headers=there)
    assert answer.status_code == 200, answer.text
    form = {"Content-Type": "application/x-www-form-urlencoded", **there}
    async with nod.caller() as without_cookie:  # browsers keep a Lax cookie back from another site's form
        posted = await without_cookie.post(
            "/api/session/back", content=urlencode(answer.json()), headers=form
        )
    assert posted.status_code == 303
    return await page.get(posted.headers["location"], headers=there)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_who_has_a_verified_address_signs_in_and_out(open_site, name: str):
    kind = PROVIDERS[name]
    async with open_site(kind) as nod, nod.caller() as page:
        answer = await sign_in(nod, page)
        assert answer.status_code == 303, answer.text
        me = (await page.get("/api/me")).json()
        assert (me["account"], me["admin"]) == (kind.account, True)
        left = await page.delete("/api/session", headers={"Origin": str(page.base_url).rstrip("/")})
        assert left.status_code == 200
        assert (await page.get("/api/me")).status_code == 401


@pytest.mark.parametrize("name", PROVIDERS)
async def test_an_address_that_no_one_vouches_for_lets_no_one_in_and_the_log_names_the_claim(
    open_site, provider: FakeProvider, name: str, logged: Callable[[], str]
):
    kind = PROVIDERS[name]
    async with open_site(kind) as nod, nod.caller() as page:
        provider.person = NAMED | kind.unverified
        provider.user_info = {"sub": SUBJECT, "email": ADDRESS} if kind.user_info else None
        answer = await sign_in(nod, page)
        assert answer.status_code == 403
        assert "verified. Ask an admin" in answer.text
        assert "'missing': 'email_verified or xms_edov'" in logged()
        assert f"http:sso-id.{SUBJECT}" in logged()
        assert (await page.get("/api/me")).status_code == 401


@pytest.mark.parametrize("name", PROVIDERS)
async def test_who_is_known_by_their_id_alone_is_no_one_else(open_site, provider: FakeProvider, name: str):
    kind = PROVIDERS[name]
    for allowed in ("*", f"sso-id.{SUBJECT}"):
        async with open_site(kind, allowed) as nod, nod.caller() as page:
            provider.person = NAMED | kind.unverified
            provider.user_info = {"sub": SUBJECT, "email": ADDRESS} if kind.user_info else None
            assert (await sign_in(nod, page)).status_code == 303
            me = (await page.get("/api/me")).json()
            assert (me["account"], me["admin"]) == (f"http:sso-id.{SUBJECT}", False)


@pytest.mark.parametrize(
    "told",
    [
        {"sub": "someone-else", "email": ADDRESS, "email_verified": True},
        {"email": ADDRESS, "email_verified": True},
        {"sub": SUBJECT, "email_verified": True},
    ],
)
async def test_what_is_told_apart_counts_for_the_same_person_and_its_own_address_only(
    open_site, provider: FakeProvider, told: dict[str, Any]
):
    async with open_site(PROVIDERS["zitadel"]) as nod, nod.caller() as page:
        provider.person = NAMED | {"email": ADDRESS}
        provider.user_info = told
        assert (await sign_in(nod, page)).status_code == 403


async def test_a_refusal_of_the_provider_is_in_the_log(open_site, logged: Callable[[], str]):
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        answer = await page.get("/api/session/back", params={"error": "access_denied", "state": "x"})
        assert answer.status_code == 403
        assert "access_denied" in logged()


async def test_a_wrong_secret_is_told_by_its_setting(open_site, provider: FakeProvider, logged):
    async with open_site(PROVIDERS["keycloak"]) as nod, nod.caller() as page:
        provider.secret = "another"
        assert (await sign_in(nod, page)).status_code == 403
        assert "NOD_OIDC_CLIENT_SECRET" in logged()


async def test_a_description_of_another_provider_is_refused(open_site, provider: FakeProvider):
    async with open_site(PROVIDERS["keycloak"]) as nod, nod.caller() as page:
        provider.about = {"issuer": "http://elsewhere.example"}
        assert (await page.get("/api/session/begin")).status_code == 502


KNOWN = NAMED | {"email": ADDRESS, "email_verified": True}

TAKEN = {
    "an audience in a list": {"aud": [CLIENT]},
    "a project's audience, too": {"aud": [CLIENT, "282910@project"], "azp": CLIENT},
    "a clock that is half a minute ahead": {"iat": int(time.time()) + 30, "nbf": int(time.time()) + 30},
    "capitals in the address": {"email": "Kim@Example.COM"},
    "blanks around the address": {"email": f" {ADDRESS} "},
    "a capital in what is true": {"email_verified": "True"},
    "claims that mean nothing here": {"groups": ["a"] * 200, "address": {"street": None}, "amr": "pwd"},
    "no name": {"name": None},
    "a name that is no text": {"name": {"given": "Kim"}},
    "a time as a text": {"exp": str(int(time.time()) + 24 * 3600)},
}

REFUSED = {
    "another's audience, too, and no word for whom": ({"aud": [CLIENT, "other"]}, "another client"),
    "made for another client": ({"azp": "other"}, "another client"),
    "another's issuer": ({"iss": "accounts.example.com"}, "issuer"),
    "an ID that is a number": ({"sub": 7}, "ubject"),
    "addresses in a list": ({"email": [ADDRESS]}, "'missing': 'email'"),
    "addresses under another name": ({"email": None, "emails": [ADDRESS]}, "'missing': 'email'"),
    "a list that holds true": ({"email_verified": [True]}, "email_verified or xms_edov"),
    "letters that are no ASCII": ({"email": "kim@exämple.com"}, "can't be an account's name"),
}


@pytest.mark.parametrize("name", TAKEN)
async def test_what_is_odd_and_right_is_taken(open_site, provider: FakeProvider, name: str):
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        provider.person = KNOWN
        provider.lie = TAKEN[name]
        answer = await sign_in(nod, page)
        assert answer.status_code == 303, answer.text
        assert (await page.get("/api/me")).json()["account"] == f"http:sso.{ADDRESS}"


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_not_right_is_refused_with_its_reason_in_the_log(
    open_site, provider: FakeProvider, name: str, logged: Callable[[], str]
):
    claims, reason = REFUSED[name]
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        provider.person = KNOWN
        provider.lie = claims
        assert (await sign_in(nod, page)).status_code == 403
        assert reason in logged()


async def test_what_a_provider_adds_to_the_address_it_sends_back_is_let_be(open_site, provider: FakeProvider):
    more = (
        "&iss=https%3A%2F%2Faccounts.example.com&session_state=5f0c&scope=email+openid&authuser=0&prompt=none"
    )
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        provider.more = more
        assert (await sign_in(nod, page)).status_code == 303


@pytest.fixture
def keys_of(provider: FakeProvider) -> Callable[..., None]:
    """Let the provider sign with a key of ours and publish these; ``kid``: what the token names."""

    def publish(key: Any, algorithm: str, shown: list[dict[str, Any]], kid: str | None = None) -> None:
        headers = {"kid": kid} if kid else {}
        provider.sign = lambda claims: jwt.encode(claims, key, algorithm, headers=headers)
        provider.keys = shown

    return publish


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def shown_key(key: Any, **more: str) -> dict[str, Any]:
    """Return the public half as a provider publishes it."""
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**json.loads(kind.to_jwk(key.public_key())), **more}


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "PS384"])
async def test_a_key_that_names_no_algorithm_serves_each_of_its_family(
    open_site, keys_of, algorithm: str, provider: FakeProvider
):
    key = rsa_key()
    keys_of(key, algorithm, [shown_key(key, kid="a")], "a")
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        assert (await sign_in(nod, page)).status_code == 303


async def test_a_key_that_names_another_algorithm_does_not_count(open_site, keys_of):
    key = rsa_key()
    keys_of(key, "RS512", [shown_key(key, kid="a", alg="RS256")], "a")
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        assert (await sign_in(nod, page)).status_code == 403


async def test_keys_of_other_kinds_and_uses_are_left_aside(open_site, keys_of):
    key = rsa_key()
    others = [
        shown_key(rsa_key(), use="enc"),
        shown_key(rsa_key(), use="enc", alg="RSA-OAEP"),
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"},
        shown_key(ec.generate_private_key(ec.SECP256R1()), use="sig"),
    ]
    keys_of(key, "RS256", [*others, shown_key(key, use="sig")])
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        assert (await sign_in(nod, page)).status_code == 303


async def test_where_a_token_names_no_key_and_two_would_do_it_is_refused(open_site, keys_of):
    key = rsa_key()
    keys_of(key, "RS256", [shown_key(rsa_key(), use="sig"), shown_key(key, use="sig")])
    async with open_site(PROVIDERS["google"]) as nod, nod.caller() as page:
        assert (await sign_in(nod, page)).status_code == 403


@pytest.mark.parametrize(
    "changed", [{}, {"iss": "http://elsewhere.example"}, {"aud": "other"}, {"sub": "another"}]
)
async def test_what_is_told_apart_may_be_signed_and_counts_from_that_provider_for_nod_alone(
    open_site, provider: FakeProvider, changed: dict[str, Any]
):
    async with open_site(PROVIDERS["zitadel"]) as nod, nod.caller() as page:
        told = {"iss": provider.url, "aud": CLIENT, "sub": SUBJECT, "email": ADDRESS, "email_verified": True}
        provider.user_info_token = provider.signed(told | changed)
        assert (await sign_in(nod, page)).status_code == (403 if changed else 303)


@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
async def test_a_refused_secret_is_sent_in_the_other_way_and_told_by_its_setting(
    open_site, provider: FakeProvider, error: str, logged: Callable[[], str]
):
    async with open_site(PROVIDERS["keycloak"]) as nod, nod.caller() as page:
        provider.refusal = error
        provider.client_ways = ["client_secret_post"]  # as this client was set up there
        assert (await sign_in(nod, page)).status_code == 303
        provider.secret = "another"
        assert (await sign_in(nod, page)).status_code == 403
        assert "NOD_OIDC_CLIENT_SECRET" in logged()
