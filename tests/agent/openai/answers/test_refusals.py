"""What servers say when they refuse, as public reports have it, and what each means."""

import pytest

from bot.agent.openai.answers.refusals import MAX_SHOWN_CHARS, RefusalCause, find_error, read_refusal

TOO_LONG = [
    "prompt is too long: 213462 tokens > 200000 maximum",  # Anthropic
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
    "Input is too long for requested model.",  # Bedrock
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",  # xAI
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 310000)",  # Moonshot
    "total message size 10176584 exceeds limit 2097152",
    "InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",  # DashScope
    "Prompt exceeds max length",  # z.ai
    "tokens in request more than max tokens allowed",
    "Prompt 超长",
    "输入长度超过模型上限",
    "invalid params, context window exceeds limit (2013)",  # MiniMax
    "The decoder prompt (length 6000) is longer than the maximum model length of 4096.",  # vLLM
    "max_tokens must be at least 1, got -2020.",
    "The input (516368 tokens) is longer than the model's context length (262144 tokens).",  # SGLang
    "Input length (700001 tokens) exceeds the maximum allowed length (536826 tokens).",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",  # TGI
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
    "the request exceeds the available context size, try increasing it",  # llama.cpp
    "input is too large to process. increase the physical batch size",
    "The number of tokens to keep from the initial prompt is greater than the context length",  # LM Studio
    "Trying to keep the first 8000 tokens when context the overflows.",
    "prompt too long; exceeded max context length by 5000 tokens",  # Ollama
    "the input length exceeds the context length",
    "Please reduce the length of the messages or completion",  # Groq
    "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 10252",
    "too many tokens: size limit exceeded by 19296 tokens.",  # Cohere
    "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",  # Poolside
    "Prompt contains 140000 tokens, too large for model with 131072 maximum context length",  # Mistral
    "the input token count is 40000 but model only supports up to 32768.",  # Vertex
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",  # Gemini
    "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",  # watsonx
    "The estimated number of input and maximum output tokens (7000) exceeded this model context window limit",
    "prompt token count of 5000 exceeds the limit of 4096",  # Copilot
    "Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens",
    "The total length of all messages is too long.",  # Perplexity
    "Request exceeds the maximum allowed number of bytes.",
    "Requested tokens (4500) exceed context window of 4096",  # llama-cpp-python
    "Error code: 400 - {'error': {'message': 'Your input exceeds the context window of this model'}}",
]


@pytest.mark.parametrize("words", TOO_LONG)
def test_each_makers_words_for_too_long_are_known(words: str) -> None:
    assert read_refusal({"error": {"message": words}}, 400).cause is RefusalCause.TOO_LONG


_C = RefusalCause
OTHERS = {
    "Throttling error: Too many tokens, please wait before trying again.": _C.REFUSED,
    "Rate limit reached on tokens per min (TPM): Limit 30000, Used 28000.": _C.REFUSED,
    "Invalid 'tools[0].function.description': string too long. At most 1024.": _C.REFUSED,
    "Invalid 'messages[2].tool_calls[0].id': string too long. At most 40.": _C.REFUSED,
    "Invalid 'tools': array too long. Expected an array with maximum length 128.": _C.REFUSED,
    "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens": _C.REFUSED,
    "image exceeds 5 MB maximum: 6 MB": _C.REFUSED,
    "Unexpected role 'user' after role 'tool'": _C.REFUSED,
    "System role not supported": _C.NO_SYSTEM_ROLE,
    "Developer instruction is not enabled for models/gemma-3-27b-it": _C.NO_SYSTEM_ROLE,
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.": _C.NO_SYSTEM_ROLE,
    "registry.ollama.ai/library/gemma3:latest does not support tools": _C.NO_TOOLS,
    "No endpoints found that support tool use": _C.NO_TOOLS,
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set': _C.NO_TOOLS,
    "Your credit balance is too low to access the API.": _C.MONEY,
    "Insufficient Balance": _C.MONEY,
    "Incorrect API key provided": _C.KEY,
}


@pytest.mark.parametrize("words", OTHERS)
def test_what_means_something_else_is_not_too_long(words: str) -> None:
    assert read_refusal({"error": {"message": words}}, 400).cause is OTHERS[words]


def test_413_is_too_long_whatever_it_says() -> None:
    assert read_refusal("", 413).cause is RefusalCause.TOO_LONG


WRAPPED = '{"type":"error","error":{"type":"invalid_request_error","message":"messages: bad"}}'
SHAPES = [
    ({"error": {"message": "as OpenAI has it"}}, "as OpenAI has it"),
    ({"error": "a text"}, "a text"),
    ({"detail": "Method Not Allowed"}, "Method Not Allowed"),
    ({"detail": [{"loc": ["body", "messages", 3], "msg": "No."}]}, "body.messages.3: No."),
    ({"object": "error", "message": "vLLM's", "code": 400}, "vLLM's"),
    ({"code": "Arrearage", "message": "Please pay."}, "Please pay."),
    ({"success": False, "errors": [{"code": 7000, "message": "No route"}]}, "No route"),
    ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "login fail"),
    ([{"error": {"message": "in a list"}}], "in a list"),
    ("upstream connect error", "upstream connect error"),
    (b"caf\xc3\xa9 \xff", "café \ufffd"),
    ("<html><head><title>502 Bad Gateway</title></head><body>x</body></html>", "502 Bad Gateway"),
    ({"error": {"message": "Provider returned error", "metadata": {"raw": "out of memory"}}},
     "Provider returned error: out of memory"),
    ({"error": {"message": "Provider returned error", "metadata": {"raw": WRAPPED}}},
     "Provider returned error: messages: bad"),
    ({"error": {"message": f"litellm.BadRequestError: AnthropicException - {WRAPPED}"}},
     "litellm.BadRequestError: AnthropicException: messages: bad"),
    ({"error": {}}, ""),
    (None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "words"), SHAPES, ids=lambda value: str(value)[:40])
def test_the_servers_own_words_are_found_in_each_shape(body: object, words: str) -> None:
    assert read_refusal(body, 400).message == words


def test_its_words_are_one_short_line_without_secrets() -> None:
    key = "abcd-1234-efgh"
    said = f"Bad key {key}\nsk-proj-abcdefghijklmnopqrstuvwxyz, masked sk-ab****9x " + "y" * 500
    words = read_refusal({"error": {"message": said}}, 401, key).message
    assert len(words) <= MAX_SHOWN_CHARS
    assert "\n" not in words
    assert not any(secret in words for secret in (key, "sk-proj-abc", "sk-ab"))


@pytest.mark.parametrize("unit", ["a", "prompt ", "'a.b[", "tokens ", "{", "<", "exceed ", '[{"error":', "*"])
def test_hostile_words_take_no_time(unit: str) -> None:
    refusal = read_refusal(unit * (2_000_000 // len(unit)), 400)
    assert refusal.cause in RefusalCause


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [], "usage": {}, "message": ""},
        {"choices": [{"delta": {}}], "detail": "fine"},
        {"id": "x", "object": "chat.completion.chunk"},
        {"message": {"content": "Ollama's own"}},
        {"choices": [{}], "base_resp": {"status_code": 1000, "status_msg": "x"}},
        [],
        7,
    ],
    ids=str,
)
def test_an_answer_is_no_error(answer: object) -> None:
    assert find_error(answer) is None
