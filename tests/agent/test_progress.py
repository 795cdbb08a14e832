"""What a tool says of its progress: bounded, never too often, and never a reason to fail."""

from datetime import timedelta

from bot.approvals.run_progress import ON_CARDS, Progress


async def test_progress_is_one_short_line_without_secrets_and_never_more_often_than_its_pace(clock):
    shown: list[str] = []

    async def show(words: str) -> None:
        shown.append(words)

    progress = Progress(clock, ON_CARDS, show, ["hunter22"])
    await progress("")
    await progress("1 of 3\nwith hunter22")
    await progress("2 of 3")
    clock.forward(ON_CARDS - timedelta(milliseconds=1))
    await progress("still 2 of 3")
    clock.forward(timedelta(milliseconds=1))
    await progress("x" * 1000)
    clock.forward(ON_CARDS)
    await progress("x" * 1000)
    assert shown == ["1 of 3 with ••••••", "x" * 100]


async def test_what_a_tool_prints_is_shown_by_its_last_lines_without_secrets(clock):
    shown: list[str] = []

    async def show(words: str) -> None:
        shown.append(words)

    progress = Progress(clock, ON_CARDS, show, ["hunter22"])
    await progress.tail("\n".join(f"line {n}\r" for n in range(7)) + "\n\n  with hunter22\n")
    assert shown == ["line 3\nline 4\nline 5\nline 6\nwith ••••••"]


async def test_a_call_does_not_fail_because_its_progress_could_not_be_shown(clock, capfd):
    async def show(_: str) -> None:
        raise OSError("the database is away")

    await Progress(clock, ON_CARDS, show)("1 of 3")
    assert "progress was not shown" in capfd.readouterr().out
