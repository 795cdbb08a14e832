"""Who is calling: tokens, sessions, OpenID Connect, proxies.

Begin with `tokens.py`. What a person may do is decided in `bot/approvals/`.
"""
