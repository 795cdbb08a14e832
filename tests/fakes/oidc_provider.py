"""An OpenID Connect provider on loopback: it knows its clients, its codes and what it has given out.

It refuses as providers do (RFC 6749 5.2, RFC 7636 4.6, OpenID Connect Core 1.0 3.1.3).
"""

import asyncio
import base64
import gzip
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote_plus

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "nod", "a-long-random-secret"
CODE_SECONDS = 60
_FLOODS = {
    "long": b'{"keys": "' + b"x" * (9 << 20) + b'"}',
    "deep": b"[" * 200_000,
    "many": b"[" + b"1," * 200_000 + b"1]",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FakeProvider:
    """``person``: the claims about who signs in next. ``lie`` changes what the next ID token claims.

    ``sign`` may sign it otherwise. ``late``: seconds that its codes have waited already. ``flood``: which of
    its ends (about, keys, token) sends too much, and of what: long, deep, many, packed. ``asked``: its ends,
    as they were asked. ``answers``: cleared, its token end keeps who asks waiting until it is set.
    """

    def __init__(self, back: str) -> None:
        self.back = back
        self.url = ""
        self.person: dict[str, Any] = {}
        self.lie: dict[str, Any] = {}
        self.late = 0
        self.gone = False
        self.flood: dict[str, str] = {}
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.given: list[str] = []  # the ID tokens, newest last
        self.secret = SECRET
        self.about: dict[str, Any] = {}  # more of what it says about itself
        self.user_info: dict[str, Any] | None = None  # claims that are told at that end alone
        self.user_info_token = ""  # what that end answers with instead, signed
        self.keys: list[dict[str, Any]] = []  # what it publishes in place of its own
        self.client_ways: list[
            str
        ] = []  # how this client may send its secret, where that is less than listed
        self.refusal = "invalid_client"
        self.more = ""  # what it adds to the address that it sends the browser back to
        self.kid: str | None = "one"
        self.moved = False  # its description is behind a permanent redirect
        self.posts = False  # it sends the browser back with a form
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self._codes: dict[str, dict[str, Any]] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(middlewares=[self._flooding])
        app.router.add_get("/.well-known/openid-configuration", self._about)
        app.router.add_get("/moved/openid-configuration", self._about)
        app.router.add_get("/userinfo", self._told)
        app.router.add_get("/keys", self._keys)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    @web.middleware
    async def _flooding(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        end = "about" if "openid-configuration" in request.path else request.path.strip("/")
        self.asked.append(end)
        much = self.flood.get(end)
        if much is None:
            return await handler(request)
        headers = {"Content-Type": "application/json"}
        if much == "packed":
            return web.Response(
                body=gzip.compress(b" " * 1_000_000), headers=headers | {"Content-Encoding": "gzip"}
            )
        return web.Response(body=_FLOODS[much], headers=headers)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self.key, "RS256", headers={"kid": self.kid} if self.kid else {})

    async def _about(self, request: web.Request) -> web.Response:
        if self.gone:
            raise web.HTTPServiceUnavailable
        if self.moved and "moved" not in request.path:
            raise web.HTTPMovedPermanently("/moved/openid-configuration")
        ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return web.json_response(
            {"issuer": self.url, **{name: f"{self.url}/{end}" for name, end in ends.items()}, **self.about}
        )

    async def _keys(self, _: web.Request) -> web.Response:
        shown = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        named = {"kid": self.kid} if self.kid else {}
        return web.json_response({"keys": self.keys or [shown | named | {"use": "sig"}]})

    async def _told(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer x":
            return web.Response(status=401)
        if self.user_info_token:
            return web.Response(text=self.user_info_token, content_type="application/jwt")
        return web.json_response(self.user_info or {})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = request.query
        fits = (asked["client_id"], asked["redirect_uri"], asked["response_type"])
        if fits != (CLIENT, self.back, "code") or "openid" not in asked["scope"].split():
            raise web.HTTPBadRequest
        if not set(asked["scope"].split()) <= set(self.about.get("scopes_supported", asked["scope"].split())):
            raise web.HTTPBadRequest(text="invalid_scope")
        if self.posts and asked.get("response_mode") != "form_post":
            raise web.HTTPBadRequest(text="response_mode must be form_post when name or email is requested")
        if asked["code_challenge_method"] != "S256":
            raise web.HTTPBadRequest
        code = secrets.token_urlsafe()
        self._codes[code] = {
            "challenge": asked["code_challenge"],
            "nonce": asked["nonce"],
            "until": time.time() + CODE_SECONDS - self.late,
            "person": dict(self.person),
        }
        if self.posts:
            return web.json_response({"code": code, "state": asked["state"]})
        raise web.HTTPFound(f"{self.back}?code={code}&state={asked['state']}{self.more}")

    def _is_client(self, request: web.Request, form: Mapping[str, Any]) -> bool:
        """Tell whether the secret came in a way that this provider takes (RFC 6749, 2.3.1)."""
        listed = self.about.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        ways = self.client_ways or listed
        if form.get("client_secret") == self.secret:
            return "client_secret_post" in ways
        pair = f"{quote_plus(CLIENT)}:{quote_plus(self.secret)}"
        basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return "client_secret_basic" in ways and request.headers.get("Authorization") == basic

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if not self._is_client(request, form):
            return web.json_response({"error": self.refusal}, status=401)
        await self.answers.wait()
        kept = self._codes.pop(str(form["code"]), None)  # once
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        late = kept is None or kept["until"] < time.time()
        if kept is None or late or form["redirect_uri"] != self.back or challenge != kept["challenge"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": kept["nonce"]}
        token = self.sign(claims | kept["person"] | self.lie)
        self.given.append(token)
        return web.json_response({"access_token": "x", "token_type": "Bearer", "id_token": token})
