"""What models think is taken out of their answers, in whatever marks and pieces it comes."""

import pytest

from bot.agent.openai.answers.thoughts import Thoughts

THOUGHT = "Okay, the user\nwants a number."
ANSWER = "It is 42."
MARKED = {
    "think": f"<think>{THOUGHT}</think>\n\n{ANSWER}",
    "thought": f"<thought>\n{THOUGHT}\n</thought>{ANSWER}",
    "thinking": f"<thinking>{THOUGHT}</thinking>\n{ANSWER}",
    "reasoning": f"<reasoning>{THOUGHT}</reasoning>\n{ANSWER}",
    "capitals": f"<Think>{THOUGHT}</Think>\n{ANSWER}",
    "seed": f"<seed:think>{THOUGHT}</seed:think>{ANSWER}",
    "Magistral": f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    "Kimi-VL": f"◁think▷{THOUGHT}◁/think▷{ANSWER}",
    "OpenThinker": (
        f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|>\n<|begin_of_solution|>{ANSWER}<|end_of_solution|>"
    ),
    "Cohere": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{ANSWER}<|END_RESPONSE|>",
    "MedGemma": f"<unused94>thought\n{THOUGHT}<unused95>{ANSWER}",
    "gpt-oss": (
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
    ),
    "Gemma 4": f"<|channel>thought\n{THOUGHT}<channel|>{ANSWER}",
    "no first mark": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "no first mark, no line": f"{THOUGHT}</think>{ANSWER}",
    "no first mark, another": f"{THOUGHT}\n</thought>\n{ANSWER}",
    "no first mark, Magistral": f"{THOUGHT}[/THINK]{ANSWER}",
    "one within another": f"<think>{THOUGHT}<think>b</think>c</think>\n{ANSWER}",
    "one kind within another": f"<thinking>{THOUGHT}<think>b</think></thinking>\n{ANSWER}",
    "a mark that is never closed twice": f"<think>{THOUGHT} <think> is a mark</think>\n{ANSWER}",
    "white space first": f" \n <think>{THOUGHT}</think> {ANSWER}",
    "an end token": f"<think>{THOUGHT}</think>{ANSWER}<|im_end|>",
}


def read(text: str, size: int) -> tuple[str, str]:
    """What is shown at the end, and what was thought, of a text that comes in pieces."""
    thoughts, shown, thought = Thoughts(), "", ""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    for piece in [*pieces, None]:
        more = thoughts.flush() if piece is None else thoughts.add(piece)
        if thoughts.take_retraction():
            shown = ""
        thought += thoughts.take_thought()
        shown += more
    return shown, thought


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("name", MARKED)
def test_a_thought_is_not_shown_however_it_is_marked_and_cut(name: str, size: int) -> None:
    shown, thought = read(MARKED[name], size)
    assert shown.strip() == ANSWER
    assert "wants a number" in thought


KEPT = {
    "in a fence": "Write it so:\n```xml\n<think>\nhm\n</think>\n```\nDone.",
    "in a fence of tildes": "~~~\n<thought>x</thought>\n~~~\nDone.",
    "in a longer fence": "````\n```\n</think>\n```\n````\nDone.",
    "in backticks": "The mark `</think>` ends it, and `<think>` begins it.",
    "in two backticks": "The mark ``</think>`` ends it.",
    "as a word": "The tag </think> ends a thought.",
    "another tag": "<b>bold</b> and <thinker>no</thinker> a < b, c<d",
    "within a line": "Use <think> to think.",
    "half a mark": "a <thi",
    "brackets": "[THINKING] and [link](x) and [THI",
    "ticks": "It's ``` no fence",
    "html": "<s>old</s> new",
}


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("name", KEPT)
def test_what_only_looks_like_one_stays(name: str, size: int) -> None:
    assert read(KEPT[name], size) == (KEPT[name], "")


def test_a_thought_that_never_ends_is_not_shown() -> None:
    assert read("Yes.\n<thinking>hm", 3) == ("Yes.\n", "hm")


def test_a_long_answer_is_shown_while_it_comes() -> None:
    thoughts = Thoughts()
    assert thoughts.add("One ") == "One "
    assert thoughts.add("two\nthree") == "two\nthree"


@pytest.mark.parametrize(
    "unit", ["<", "`", "~", "<|", "</think>", "<think>", "[", "\n<", "◁", " ", "<|channel|>"]
)
def test_hostile_marks_are_read_in_linear_time(unit: str) -> None:
    thoughts = Thoughts()
    for _ in range(2_000):
        thoughts.add(unit * 20)
    thoughts.flush()
