"""Slack and Telegram on this machine, to try a change in: ``python -m tests.fakes``.

Prints the settings with which ``nod run`` connects, then reads lines. ``slack TEXT`` and ``telegram TEXT``
write to Nod as Ana. ``slack: BUTTON`` and ``telegram: BUTTON`` press a button of the newest card that has it.
``slack`` and ``telegram`` show the chat as it is now.
"""

import asyncio
import sys

from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.fakes.telegram_server import TOKEN, FakeTelegram

ANA = 991
SLACK_ANA = "U7"


async def talk() -> None:
    """Serve both platforms until the input ends."""
    slack, telegram = FakeSlack(), FakeTelegram()
    await slack.start()
    await telegram.start()
    telegram.person(ANA)
    print(f"SLACK_API_URL={slack.url}\nSLACK_BOT_TOKEN={BOT_TOKEN}\nSLACK_APP_TOKEN={APP_TOKEN}")
    print(f"TELEGRAM_API_URL={telegram.url}\nTELEGRAM_BOT_TOKEN={TOKEN}")
    print(f"NOD_ADMINS=slack:T1/{SLACK_ANA},telegram:{ANA}", flush=True)
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            where, _, text = line.strip().partition(" ")
            if where.startswith("slack"):
                await in_slack(slack, text, is_press=where.endswith(":"))
            elif where.startswith("telegram"):
                await in_telegram(telegram, text, is_press=where.endswith(":"))
            else:
                print("Begin the line with slack or telegram.", flush=True)
    finally:
        await slack.stop()
        await telegram.stop()


async def in_slack(slack: FakeSlack, text: str, *, is_press: bool) -> None:
    """Write or press in Ana's chat with Nod; without a text, show it."""
    chat = slack.dm(SLACK_ANA)
    if not text:
        for post in slack.in_channel(chat, SLACK_ANA):
            print(f"{post.words.strip()}\n{format_buttons(list(post.buttons))}", flush=True)
        return
    if not is_press:
        await slack.say(SLACK_ANA, text)
        return
    for post in reversed(slack.cards(chat)):
        if text in post.buttons:
            await slack.click(post, text, SLACK_ANA)
            return
    print("No card has that button.", flush=True)


async def in_telegram(telegram: FakeTelegram, text: str, *, is_press: bool) -> None:
    """Write or press in Ana's chat with Nod; without a text, show it."""
    if not text:
        for post in telegram.seen_by(ANA, ANA):
            print(f"{post.text.strip()}\n{format_buttons(post.labels)}", flush=True)
        return
    if not is_press:
        await telegram.say(ANA, text)
        return
    for post in reversed(telegram.seen_by(ANA, ANA)):
        if text in post.labels:
            await telegram.press(ANA, post, text)
            return
    print("No card has that button.", flush=True)


def format_buttons(labels: list[str]) -> str:
    return "".join(f"[{label}] " for label in labels) + "\n"


if __name__ == "__main__":
    asyncio.run(talk())
