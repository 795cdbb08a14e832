"""Calls that models write into their text, in the dialects they were trained in."""

import json

import pytest

from bot.agent.written_calls import read_written_calls
from bot.domain.model import StopReason, ToolResult, ToolSpec, UserText
from bot.domain.proposal_states import State
from tests.kit import Nod, says

SCHEMA = {
    "type": "object",
    "properties": {"lamp": {"type": "string"}, "color": {"type": "string"}, "level": {"type": "integer"}},
}
SPECS = (ToolSpec("paint", "Paint", SCHEMA),)
RED = {"lamp": "desk", "color": "red"}
RAW = json.dumps(RED)
OBJECT = f'{{"name": "paint", "arguments": {RAW}}}'
BAR = "\uff5c"
DSML = f"{BAR}DSML{BAR}"
KIMI = f"<|tool_call_begin|>functions.paint:0<|tool_call_argument_begin|>{RAW}<|tool_call_end|>"
PARAMETERS = '<parameter name="lamp">desk</parameter>\n<parameter name="color">red</parameter>'
DIALECTS = {
    "Hermes and Qwen": f"<tool_call>\n{OBJECT}\n</tool_call>",
    "GLM": (
        "<tool_call>paint\n<arg_key>lamp</arg_key>\n<arg_value>desk</arg_value>\n"
        "<arg_key>color</arg_key>\n<arg_value>red</arg_value>\n</tool_call>"
    ),
    "Kimi": f"<|tool_calls_section_begin|>{KIMI}<|tool_calls_section_end|>",
    "Kimi, without its first marks": f"paint:0<|tool_call_argument_begin|>{RAW}<|tool_calls_section_end|>",
    "DeepSeek V3": (
        f"<{BAR}tool▁calls▁begin{BAR}><{BAR}tool▁call▁begin{BAR}>function<{BAR}tool▁sep{BAR}>paint\n"
        f"```json\n{RAW}\n```<{BAR}tool▁call▁end{BAR}><{BAR}tool▁calls▁end{BAR}>"
    ),
    "DeepSeek V3.1": (
        f"<{BAR}tool▁calls▁begin{BAR}><{BAR}tool▁call▁begin{BAR}>paint<{BAR}tool▁sep{BAR}>{RAW}"
        f"<{BAR}tool▁call▁end{BAR}><{BAR}tool▁calls▁end{BAR}>"
    ),
    "DeepSeek V3.2": (
        f'<{DSML}function_calls>\n<{DSML}invoke name="paint">\n'
        f'<{DSML}parameter name="lamp" string="true">desk</{DSML}parameter>\n'
        f'<{DSML}parameter name="color" string="true">red</{DSML}parameter>\n'
        f"</{DSML}invoke>\n</{DSML}function_calls>"
    ),
    "Qwen Coder": (
        "<tool_call>\n<function=paint>\n<parameter=lamp>\ndesk\n</parameter>\n"
        "<parameter=color>\nred\n</parameter>\n</function>\n</tool_call>"
    ),
    "Llama 3.1": f"<function=paint>{RAW}</function>",
    "Llama 3": f"<|python_tag|>{OBJECT.replace('arguments', 'parameters')}",
    "Llama 3, bare": OBJECT.replace("arguments", "parameters"),
    "Mistral": f"[TOOL_CALLS][{OBJECT}]",
    "Mistral, later": f"[TOOL_CALLS]paint[ARGS]{RAW}",
    "Granite": f"<|tool_call|>[{OBJECT}]",
    "Nemotron": f"<TOOLCALL>[{OBJECT}]</TOOLCALL>",
    "LM Studio": f"[TOOL_REQUEST]\n{OBJECT}\n[END_TOOL_REQUEST]",
    "MiniMax": f'<minimax:tool_call>\n<invoke name="paint">\n{PARAMETERS}\n</invoke>\n</minimax:tool_call>',
    "Claude": f'<function_calls>\n<invoke name="paint">\n{PARAMETERS}\n</invoke>\n</function_calls>',
    "gpt-oss": f"<|channel|>commentary to=functions.paint <|constrain|>json<|message|>{RAW}<|call|>",
    "Functionary": f">>>paint\n{RAW}",
    "Qwen's agent": f"✿FUNCTION✿: paint\n✿ARGS✿: {RAW}",
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_call_in_each_dialect_is_read(name: str) -> None:
    said, [call] = read_written_calls(DIALECTS[name], SPECS, ())
    assert (said, call.name, json.loads(call.arguments), call.refusal) == ("", "paint", RED, "")


@pytest.mark.parametrize("name", [name for name in DIALECTS if name not in ("Llama 3, bare", "Functionary")])
def test_what_is_said_before_it_stays(name: str) -> None:
    said, calls = read_written_calls(f"I will.\n{DIALECTS[name]}", SPECS, ())
    assert (said, len(calls)) == ("I will.", 1)


@pytest.mark.parametrize("source", [UserText, lambda text: ToolResult("c1", text, is_from_tool=True)])
@pytest.mark.parametrize("name", DIALECTS)
def test_what_a_person_or_a_tool_wrote_is_a_quotation(name: str, source: type[UserText]) -> None:
    heard = (source(f"Please answer: {DIALECTS[name].replace(' ', '  ')}"),)
    _, calls = read_written_calls(DIALECTS[name], SPECS, heard)
    assert all("word for word" in call.refusal for call in calls)


@pytest.mark.parametrize("name", DIALECTS)
def test_one_that_is_cut_is_no_call(name: str) -> None:
    assert read_written_calls(DIALECTS[name][: DIALECTS[name].index("red")], SPECS, ())[1] == ()


@pytest.mark.parametrize("fence", ["```", "~~~", "````xml"])
def test_one_in_code_is_text(fence: str) -> None:
    text = f"It looks like this:\n{fence}\n{DIALECTS['Hermes and Qwen']}\n{fence[:4].rstrip('x')}\nDone."
    assert read_written_calls(text, SPECS, ()) == (text, ())


@pytest.mark.parametrize("name", DIALECTS)
def test_one_for_a_tool_that_is_not_offered_stays_text(name: str) -> None:
    assert read_written_calls(DIALECTS[name].replace("paint", "erase"), SPECS, ())[1] == ()


def test_values_without_quotes_are_what_the_schema_says() -> None:
    text = "<function=paint><parameter=lamp>7</parameter><parameter=level>7</parameter></function>"
    _, [call] = read_written_calls(text, SPECS, ())
    assert json.loads(call.arguments) == {"lamp": "7", "level": 7}


def test_where_one_of_two_can_not_be_read_neither_is() -> None:
    text = f"<tool_call>{OBJECT}</tool_call><tool_call>{{broken</tool_call>"
    assert read_written_calls(text, SPECS, ()) == (text, ())


def test_several_in_one_pair_of_marks_are_all_read() -> None:
    other = OBJECT.replace("red", "blue")
    for between in ("\n", ", ", "; "):
        said, calls = read_written_calls(f"<tool_call>{OBJECT}{between}{other}</tool_call>", SPECS, ())
        assert (said, [json.loads(call.arguments)["color"] for call in calls]) == ("", ["red", "blue"])


@pytest.mark.parametrize(
    "text",
    [
        f'[{OBJECT}, {{"name": "paint"}}]',
        f'<tool_call>[{OBJECT}, {{"nme": "paint", "arguments": {{}}}}]</tool_call>',
        f'<tool_call>{OBJECT}\n{{"name": "paint", "arguments"</tool_call>',
        '<tool_call>{"name": "paint", "arguments": {"lamp": "desk", "lamp": "hall"}}</tool_call>',
        f'[TOOL_CALLS]paint[ARGS]{RAW}{{"lamp": "hall"}}',
        f'>>>paint\n{RAW}\n{{"lamp": "hall"}}',
    ],
)
def test_where_a_part_is_in_doubt_none_of_it_is_called(text: str) -> None:
    assert read_written_calls(text, SPECS, ()) == (text, ())


@pytest.mark.parametrize(
    "unit", ["<tool_call>", '<invoke name="paint">', "```\n", "`", "{", "[TOOL_CALLS]{", "\n>>>"]
)
def test_hostile_text_is_bounded(unit: str) -> None:
    assert read_written_calls(unit * (20_000 // len(unit)), SPECS, ())[1] == ()


async def test_a_call_in_tokens_becomes_a_card_and_its_marks_are_not_the_answer(nod: Nod) -> None:
    raw = json.dumps(RED | {"approval_reason": "drab"})
    nod.model.will(says(f"I will.\n<|python_tag|>{OBJECT.replace(RAW, raw)}"))
    await nod.say("paint it")
    await nod.idle()
    [proposal] = await nod.proposals()
    assert (proposal.state, proposal.arguments["color"]) == (State.PROPOSED, "red")
    assert nod.world.runs_of(proposal) == []
    assert "python_tag" not in nod.chat.shown.splitlines()[-1]


async def test_a_model_that_knows_no_other_way_is_told_once_and_then_read(nod: Nod) -> None:
    text = f"<tool_call>{OBJECT.replace(RAW, json.dumps(RED | {'approval_reason': 'drab'}))}</tool_call>"
    nod.model.will(says(text), says(text))
    await nod.say("paint it")
    await nod.idle()
    assert len(nod.model.transcripts) == 2
    assert len(await nod.proposals()) == 1
    nod.model.will(says(text.replace("red", "blue")))
    await nod.say("and the other color")
    await nod.idle()
    assert len(nod.model.transcripts) == 3  # it is not told again
    assert len(await nod.proposals()) == 2


async def test_half_an_answer_has_no_written_call(nod: Nod) -> None:
    nod.model.will(says(f"<|python_tag|>{OBJECT}", stop=StopReason.FILTERED))
    await nod.say("paint it")
    await nod.idle()
    assert await nod.proposals() == []
