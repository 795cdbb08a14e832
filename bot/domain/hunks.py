"""What changes in a long text, with a little around it: what a card shows instead of both texts in full."""

_AROUND = 2  # lines that stay the same, above and below


def hunk(old: str | None, new: str | None) -> str | None:
    """Every changed line, marked ``-`` or ``+``, in as many steps as the texts are long.

    None where there is nothing to leave out: then both texts are shown. Changes far apart are one hunk.
    """
    if old is None or new is None or old == new:
        return None
    before, after = old.split("\n"), new.split("\n")
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    room = most - head
    tail = next((at for at in range(room) if before[-1 - at] != after[-1 - at]), room)
    above, below = max(0, head - _AROUND), max(0, tail - _AROUND)
    if above + below == 0:
        return None
    lines = [_left_out(above)] if above else []
    lines += [f"  {line}" for line in before[above:head]]
    lines += [f"- {line}" for line in before[head : len(before) - tail]]
    lines += [f"+ {line}" for line in after[head : len(after) - tail]]
    lines += [f"  {line}" for line in after[len(after) - tail : len(after) - below]]
    lines += [_left_out(below)] if below else []
    return "\n".join(lines)


def _left_out(count: int) -> str:
    return f"… {count} {'line stays' if count == 1 else 'lines stay'} the same"
