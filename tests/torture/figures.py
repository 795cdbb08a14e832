"""What a run did and found, in numbers."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Figures:
    messages: int = 0
    presses: int = 0
    kills: list[float] = field(default_factory=list)  # when, in seconds since the epoch
    outages: int = 0  # restarts of the database
    parked: list[float] = field(default_factory=list)  # seconds from a message to its card
    ended: list[float] = field(default_factory=list)  # from a press to the end of the change
    taken: list[float] = field(default_factory=list)  # from a kill until nothing was the dead process's
    taken_late: list[float] = field(default_factory=list)  # where all others were killed as well by then
    pressed: list[float] = field(default_factory=list)  # from a press to its answer
    pressed_rolling: list[float] = field(default_factory=list)  # while processes ended by SIGTERM
    rolls: int = 0  # times that each process ended by SIGTERM and started again
    stale: int = 0  # cards that were there twice, of which one was forgotten until it was pressed
    signed_in: int = 0  # accounts that were connected at the server
    conflicts: int = 0  # times two processes polled Telegram in the same moment
    points: Counter[str] = field(default_factory=Counter)  # where processes killed themselves
    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ends = ", ".join(f"{many} {how}" for how, many in sorted(self.ends.items()))
        points = ", ".join(f"{many} where {point}" for point, many in sorted(self.points.items()))
        did = (
            f"{self.messages} messages, {self.presses} presses, {len(self.kills)} kills, "
            f"{self.outages} restarts of the database, {self.rolls} rolling restarts"
        )
        return "\n".join(
            (
                did,
                f"how it ended: {ends or 'nothing did'}",
                f"kills at points: {sum(self.points.values())}, {points or 'none yet'}",
                f"message to card: {spread(self.parked)}",
                f"press to end: {spread(self.ended)}",
                f"press to answer: {spread(self.pressed)}",
                f"press to answer during a rolling restart: {spread(self.pressed_rolling)}",
                f"cards that were forgotten until they were pressed: {self.stale}",
                f"accounts connected: {self.signed_in}",
                f"two polled Telegram in the same moment: {self.conflicts}",
                f"kill to take-over by one that lived on: {spread(self.taken)}",
                f"kill to take-over by one that was started since: {spread(self.taken_late)}",
                f"{len(self.faults)} faults",
            )
        )


def spread(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    in_order = sorted(seconds)
    p50, p99 = (in_order[min(len(in_order) - 1, int(len(in_order) * part))] for part in (0.5, 0.99))
    return f"{len(in_order)} times, p50 {p50:.2f} s, p99 {p99:.2f} s, longest {in_order[-1]:.2f} s"
