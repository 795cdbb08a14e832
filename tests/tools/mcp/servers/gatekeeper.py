"""An OAuth 2.1 sign-in server made with the official SDK: it agrees to everyone, until a test says otherwise.

Whatever it knows is in memory; what the world does to it is a switch here.
"""

import secrets
from dataclasses import dataclass, field

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


@dataclass
class Gatekeeper(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """``seen`` is every secret it gave out, ``used`` each that came back, ``granted`` each token's scopes."""

    lives: int | None = 3600  # seconds, as it says; `end_tokens` ends them in truth
    audience: str | None = None  # who the tokens are for, if not who was asked for
    refuses: str | None = None  # an OAuth error instead of tokens
    says_no: bool = False  # people do not agree
    seen: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    granted: list[list[str]] = field(default_factory=list)
    refreshed: int = 0
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    renewals: dict[str, RefreshToken] = field(default_factory=dict)

    def end_tokens(self) -> None:
        """No token that is out there works; they can be renewed."""
        self.tokens.clear()

    def end_everything(self) -> None:
        """The client was revoked, with all it has."""
        for kept in (self.clients, self.codes, self.tokens, self.renewals):
            kept.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info
        self._saw(client_info.client_secret)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.says_no:
            raise AuthorizeError("access_denied", "no")
        code = AuthorizationCode(
            code=self._saw(secrets.token_urlsafe(32)),
            scopes=params.scopes or [],
            expires_at=9e9,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.renewals.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshed += 1
        del self.renewals[refresh_token.token]  # good for one use
        return self._tokens(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        self.used.append(token)
        return self.tokens.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)

    def _tokens(
        self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        if self.refuses:
            raise TokenError(self.refuses, "no")  # type: ignore[arg-type]
        access, refresh = self._saw(secrets.token_urlsafe(32)), self._saw(secrets.token_urlsafe(32))
        whose = self.audience or resource
        self.tokens[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, resource=whose
        )
        self.renewals[refresh] = RefreshToken(
            token=refresh, client_id=client.client_id, scopes=scopes, resource=resource
        )
        self.granted.append(scopes)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=self.lives, scope=" ".join(scopes)
        )

    def _saw(self, secret: str | None) -> str:
        self.seen += [secret] if secret else []
        return secret or ""
