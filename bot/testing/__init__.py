"""The contract of channels as a test suite, for channels of other distributions as for Nod's own.

`bot.testing.contract` has the suite, `driver` what it needs of a channel, `world` the Nod it runs on. It
needs pytest with pytest-asyncio; ``docs/plugins.md`` shows how. Nothing in ``bot/`` imports it.
"""
