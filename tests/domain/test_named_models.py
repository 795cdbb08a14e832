"""A file of models by name: what it says, and which line is wrong."""

import re

import pytest

from bot.domain.named_models import Api, NamedModel, ToolCalls, read_models

FILE = """
[claude]
model = "anthropic/claude-sonnet-4.5"
base_url = "https://openrouter.ai/api/v1"
key = "OPENROUTER_API_KEY"
window = 200000
price = [3, 15, 0.3]
images = true
fallback = "gpt-4.1"
options = { temperature = 0.2, provider = { order = ["one"] } }

["gpt-4.1"]
api = "responses"
timeout = "5m"
options.reasoning.effort = "low"

[small]
base_url = "http://127.0.0.1:8000/v1"
tools = "text"
strict = false
"""


def test_each_model_has_what_its_table_says_and_the_rest_by_default():
    models = read_models(FILE)
    assert models["claude"] == NamedModel(
        "claude",
        "anthropic/claude-sonnet-4.5",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        images=True,
        window=200_000,
        price=(3, 15, 0.3),
        fallback="gpt-4.1",
        options={"temperature": 0.2, "provider": {"order": ["one"]}},
    )
    two = models["gpt-4.1"]
    assert (two.model, two.api, two.timeout, two.options) == (
        "gpt-4.1", Api.RESPONSES, 300, {"reasoning": {"effort": "low"}},
    )  # fmt: skip
    assert (models["small"].tools, models["small"].strict, models["small"].host) == (
        ToolCalls.TEXT, False, "127.0.0.1",
    )  # fmt: skip


WRONG = {
    '[a]\nmodel = "x"\nwindow 5': "line 3: Expected '='",
    '[a]\nmodel = "x"\n\nwindow = "big"': "line 4: window: write a number of tokens",
    "[a]\nimages = 1": "line 2: images: write true or false",
    '[a]\nkey = "sk-1234-abc"': "line 2: key: write the name of the variable that holds the key, never",
    "[a]\nprice = [1]": "line 2: price: write two or three prices",
    "[a]\nprice = [1, -2]": "line 2: price: write two or three prices",
    '[a]\nbase_url = "localhost:80"': "line 2: base_url: write an address",
    '[a]\nbase_url = "http://me:secret@host/v1"': "line 2: base_url: write an address",
    '[a]\napi = "grpc"': "line 2: api: use one of chat, responses",
    '[a]\ntimeout = "soon"': 'line 2: timeout: write a time such as "60s"',
    '[a]\ncolour = "red"': "line 2: colour: there is no such value; use model,",
    "[gpt-4.1]\nimages = true": "line 1: 1: there is no such value",
    "[a]\n[a.options]\nmessages = []": "line 2: options: messages is set by Nod",
    "[a]\noptions = { at = 2026-11-25 }": "line 2: options: write only texts",
    "[a]\noptions = { x = nan }": "line 2: options: write only texts",
    '[a]\n[b]\nfallback = "c"': "line 3: fallback: name another model of this file",
    '[a]\nfallback = "a"': "line 2: fallback: name another model of this file",
    "[a]\n[c]\n\n[b.x]\n": "line 4: x: there is no such value",
    '["b"]\nmodel = "x"\na.window = 5': "line 3: a: there is no such value",
    '\nb = {}\na = { window = "big" }': "line 3: window: write a number of tokens",
    'a = "gpt"': "line 1: a: begin each model with its name in brackets",
    '["a b"]\n': "line 1: a b: begin each model with its name in brackets",
    "a = " + "[" * 100_000: "Write it as in docs/models.md",
    "#" * 300_000: "it is longer than 200,000 characters",
    "\n".join(f"[m{at}]" for at in range(101)): "it has 101 models; 100 is the most",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:30])
def test_a_wrong_line_is_told_with_its_number_and_what_is_wrong(text: str):
    with pytest.raises(ValueError, match=re.escape(WRONG[text])) as raised:
        read_models(text)
    assert "\n" not in str(raised.value)
    assert "sk-1234" not in str(raised.value)


def test_the_model_of_the_settings_may_stand_in_for_one_of_the_file():
    assert read_models('[a]\nfallback = "b"', default="b")["a"].fallback == "b"
