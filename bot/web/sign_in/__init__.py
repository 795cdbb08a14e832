"""Authentication of callers: tokens, sessions, OpenID Connect, proxies.

Begin with `tokens.py`. A person's rights are decided in `bot/approvals/`.
"""
