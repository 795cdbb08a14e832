"""The request to sign in at a provider, which is an OAuth 2 server whose endpoints the settings name.

The sign-in is the authorization code flow with PKCE (RFC 7636). The address of the sign-in page has a
challenge, and later Nod sends its verifier with the code. This proves that the same Nod exchanges the code.
"""

import secrets
from collections.abc import Sequence

import httpx2
from mcp.client.auth import PKCEParameters
from mcp.shared.auth import OAuthMetadata
from pydantic import AnyHttpUrl

from bot.features.connections.sign_in.provider_entries import Provider
from bot.tools.mcp.authorization import (
    AuthorizationRequest,
    find_configured_client,
    set_auth_method,
    with_scope,
)
from bot.tools.mcp.config import Http
from bot.tools.mcp.signin import Discovered


def make_provider_request(
    provider: Provider, return_url: str, more_scopes: Sequence[str]
) -> AuthorizationRequest:
    """Return the address of the sign-in page, and the values that Nod needs when the browser comes back.

    ``return_url``: the address to which the provider sends the browser back. ``more_scopes``: scopes to ask
    for in addition to those of the settings.
    """
    # `Provider.transport` has the address of the token endpoint, and Nod's client there
    token_endpoint = provider.transport
    if not isinstance(token_endpoint, Http):
        raise TypeError(f"{provider.name} has no address")
    configured_client = token_endpoint.client
    method = "client_secret_basic" if provider.is_secret_in_header else "client_secret_post"
    server = OAuthMetadata(
        issuer=AnyHttpUrl(provider.issuer),
        authorization_endpoint=AnyHttpUrl(provider.authorization),
        token_endpoint=AnyHttpUrl(token_endpoint.url),
        revocation_endpoint=AnyHttpUrl(provider.revocation) if provider.revocation else None,
        token_endpoint_auth_methods_supported=[method],
    )
    client = find_configured_client(configured_client, return_url)
    set_auth_method(client, configured_client, server)
    pkce = PKCEParameters.generate()
    state = secrets.token_urlsafe(32)
    scope = " ".join(dict.fromkeys((*configured_client.scopes, *more_scopes)))
    query = {
        "response_type": "code",
        "client_id": configured_client.id,
        "redirect_uri": return_url,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
    }
    page = with_scope(httpx2.URL(provider.authorization).copy_merge_params(query), scope)
    return AuthorizationRequest(
        page=str(page),
        state=state,
        back=return_url,
        scope=scope,
        issuer=str(server.issuer),
        found=Discovered(server=server).model_dump_json(exclude_none=True),
        client=client.model_dump_json(exclude_none=True) if client else "",
        verifier=pkce.code_verifier,
    )
