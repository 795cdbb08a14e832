"""The checks of signed tokens of OpenID Connect: ID tokens, and user info that is signed (JWT).

A token's claims count only if all checks of OpenID Connect Core 1.0, 3.1.3.7 pass.
"""

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

_SIGNATURE_ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}  # by the beginning of an algorithm's name
_REQUIRED_CLAIMS = ("exp", "iat", "iss", "aud", "sub", "nonce")  # of an ID token
_REQUIRED_USER_INFO_CLAIMS = ("iss", "aud", "sub")  # of user info that is signed
_CLOCK_SKEW_SECONDS = 60  # the most by which two clocks may differ


def read_id_token(
    token: str, keys: Mapping[str, Any], issuer: str, client_id: str, nonce: str
) -> Mapping[str, Any]:
    """Return the claims of an ID token, after the checks of `read_token` and of its nonce and client.

    ``nonce``: that of the sign-in. Raises as `read_token`.
    """
    claims = read_token(token, keys, issuer, client_id, _REQUIRED_CLAIMS)
    if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        raise ValueError("it answers another sign-in")
    has_several_audiences = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if "azp" not in claims and not has_several_audiences:  # the client is then the only audience
        return claims
    if claims.get("azp") != client_id:
        raise ValueError("it was made for another client")
    return claims


def read_user_info_token(
    token: str, keys: Mapping[str, Any], issuer: str, client_id: str
) -> Mapping[str, Any]:
    """Return the claims of user info that is signed. Raises as `read_token`."""
    return read_token(token, keys, issuer, client_id, _REQUIRED_USER_INFO_CLAIMS)


def read_token(
    token: str, keys: Mapping[str, Any], issuer: str, client_id: str, required_claims: Sequence[str]
) -> Mapping[str, Any]:
    """Return the claims of a token, after checking its signature, issuer, audience and time.

    ``keys``: the provider's keys, as its ``jwks_uri`` gives them. Raises ValueError, TypeError or
    `jwt.PyJWTError` if a check fails.
    """
    import jwt  # only here: it imports cryptography

    header = jwt.get_unverified_header(token)
    if header.get("alg") not in _SIGNATURE_ALGORITHMS:
        raise ValueError("it is not signed with a key pair")
    claims: dict[str, Any] = jwt.decode(
        token,
        jwt.PyJWK.from_dict(_choose_key(keys, header), header["alg"]),
        algorithms=[header["alg"]],
        audience=client_id,
        issuer=issuer,
        leeway=_CLOCK_SKEW_SECONDS,
        options={"require": list(required_claims)},
    )
    return claims


def _choose_key(keys: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's key that a token names, or the only key for its algorithm if it names none.

    Raises ValueError without such a key.
    """
    listed = keys.get("keys")
    provider_keys = listed if isinstance(listed, list) else []
    fitting = [key for key in provider_keys if isinstance(key, dict) and _fits(key, header["alg"])]
    key_id = header.get("kid")
    if key_id is not None:
        fitting = [key for key in fitting if key.get("kid") == key_id]
    is_ambiguous = key_id is None and len(fitting) > 1
    if not fitting or is_ambiguous:
        raise ValueError("the provider has no such key")
    return fitting[0]


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    """Return whether a key is of the algorithm's type, and not for another use or algorithm."""
    has_type = key.get("kty") == _KEY_TYPES[algorithm[:2]]
    is_for_signing = key.get("use", "sig") == "sig"
    is_for_algorithm = key.get("alg", algorithm) == algorithm
    return has_type and is_for_signing and is_for_algorithm
