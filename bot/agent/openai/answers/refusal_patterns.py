"""Patterns by which the cause of a refusal is recognised, in the words of models' makers and servers. Pure.

A server says only in words why it refuses a request. ``refusals.py`` searches its codes and its message, in
lower case, for these patterns. Each lists phrases, of which one must occur. They are taken from public
reports of what OpenAI, Anthropic, Bedrock, Gemini, xAI, Mistral, Moonshot, DashScope, z.ai, MiniMax, Groq,
Together, Fireworks, Cohere, watsonx, Cloudflare, OpenRouter, LiteLLM, vLLM, SGLang, TGI, llama.cpp, LM Studio
and Ollama answer.
"""

import re

# the thing that is too long, as in "prompt is too long"
_SUBJECT = (
    r"(?:prompt|inputs?|messages?|request|conversation|content|query|payload|body|text|history|transcript)"
)

# the words that say that it is too long
_TOO_MUCH = (
    r"(?:exceed|too (?:long|large|big|many)|(?:longer|greater|larger|bigger|more) than|over the|above the"
    r"|supports? (?:only |at most |up to )|only supports"
    r"|must (?:be|have) (?:<|less|at most|shorter|under|no more)"
    r"|but (?:the )?(?:limit|maximum|configured))"
)
ONLY_OUTPUT_LIMIT = re.compile(
    r"(?=.*(?:max_(?:completion_|output_|new_)?tokens|output tokens|completion tokens))"
    r"(?!.*(?:context|prompt|input|message|got -)).*",
    re.DOTALL,
)
"""The error is about the limit of the answer's length. A shorter history would not help."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# the request does not fit into the model's window, for example "prompt is too long: 210000 tokens > 200000"
SURELY_TOO_LONG = _any_of(
    r"context_length_exceeded|context_window_exceeded|exceed_context_size|model_context_window|context_overflow",
    r"request_too_large|prompt_too_long|input_too_long|max_prompt_tokens_exceeded|request entity too large",
    r"(?:request|payload|body|message)[^.]{0,20} too large\b(?! an? )",
    r"reduce (?:the length|the size|the (?:number|input)|your (?:message|prompt|input|context|request))",
    r"input or output tokens must be reduced",
)

# the request probably does not fit, unless a pattern below says otherwise
PROBABLY_TOO_LONG = _any_of(
    r"context[ _-]?(?:length|window|size|limit)|context[^.]{0,20}overflow|maximum context",
    r"max_model_len|model_max_length",
    r"max(?:imum)?[ _](?:model|prompt|input|sequence|seq|total|allowed)[ _](?:(?:context|input|sequence) )?"
    r"(?:len|length|size|tokens?)",
    r"range of input length|context shift|physical batch size|kv cache|n_ctx",
    rf"too many (?:\w+ )?tokens|{_SUBJECT}s?[`'\"]?(?: \([^)]{{0,40}}\))?(?: \w+){{0,4}} {_TOO_MUCH}",
    rf"tokens?\b[^.]{{0,80}}{_TOO_MUCH}",
    rf"(?:exceed\w*|maximum number of|more than|limit of)[^.]{{0,60}}(?:tokens?|{_SUBJECT} length)",
    rf"exceed\w*[^.]{{0,40}}(?:{_SUBJECT} (?:limit|size)|maximum (?:length|size)|(?:max|maximum) length)",
    rf"{_SUBJECT}[^.]{{0,40}}exceed\w*[^.]{{0,20}}(?:limit|max)",
    r"max_tokens must be at least 1, got -",
    r"string_above_max_length",
    r"超长|过长|上下文(?:长度|窗口)|长度超限|超[过出].{0,16}(?:长度|上限|限制|token)",
)

# the limit is for requests in a time, or for one tool or file, and not for the request's length
OTHER_LIMIT = _any_of(
    r"rate.?limit|too many requests|throttl|per (?:minute|min|hour|day|second|month)|\b[tr]p[mdh]\b|quota",
    r"please wait|concurren|spend",
    r"\btools?[\[.]|tools?\[|tool_calls?[\[.]|tool_use|function_declarations",
    r"functions?[.\[]|too many (?:tools|func)",
    r"'[\w.\[\]]{0,80}\b(?:name|description|id|metadata|user|stop|prompt_cache_key)'",
    r"\bdescription\b|\bfile (?:is )?too|images?\b[^.]{0,40}(?:large|exceed|size)",
)

# the same request may be answered a little later, for example "model is overloaded"
TRANSIENT = _any_of(
    r"overload|busy|capacity|unavailable|temporar|time.?out|timed out|rate.?limit|too many requests|throttl",
    r"try again|retry|server.?error|internal|bad gateway|gateway|upstream|disconnect|connection|network",
    r"loading model|starting|warming|cancel|abort|interrupt|resource",
    r"速率限制|请求频率|频繁|限流|访问量过大|稍后|繁忙|过载|超时",
)

# the model wrote a call that its own server does not accept; the next try may be better
BAD_CALL = _any_of(
    r"tool_use_failed|output_parse_failed|failed_generation",
    r"tool call validation failed|attempted to call tool|failed to call a function",
    r"failed to parse (?:tool|function) call|failed to parse input at pos",
)

# the model takes no system message, for example "system role not supported"
NO_SYSTEM_ROLE = _any_of(
    r"system (?:role|messages?|prompts?|instructions?) (?:is |are )?(?:not|un)[ -]?(?:supported|allowed)",
    r"system role not|developer instruction is not enabled|does not support (?:the )?['\"`]?system",
    r"roles must alternate",
    r"(?:system|developer) (?:instruction|prompt|message)s? (?:is|are) not (?:enabled|supported|allowed)",
    r"(?:unsupported|invalid|unknown|unexpected) (?:message )?role:? ['\"`]?(?:system|developer)",
    r"only (?:supports? )?['\"`]?user['\"`]?(?:,| and) ['\"`]?(?:assistant|model)['\"`]? roles",
)

# the model can't call tools at this server, for example "does not support tools"
NO_TOOLS = _any_of(
    r"(?:not|n't|unable to) support (?:\w+ ){0,2}(?:tools?|function)\b|support tool use",
    r"tool-call-parser",
    r"enable-auto-tool-choice",
    r"(?:tools?|functions?|function calling) (?:is|are) not (?:supported|enabled|available)",
    r"tools? (?:use|calls?|calling|param)[\w ]{0,20} not (?:supported|enabled|available)",
)

# the account has no money left, for example "insufficient_quota"
NO_MONEY = _any_of(
    r"insufficient.{0,3}(?:quota|funds|balance|credit)|credit balance|exceeded_current_quota|arrear",
    r"payment required",
    r"(?:no|not enough|out of|used up|low) (?:\w+ ){0,3}(?:credits?|balance|funds)\b",
    r"balance is (?:not|too|low)",
    r"余额|欠费|额度",
)

# the account's plan or money is named, which with a temporary status only means a limit for each minute
NAMES_MONEY = _any_of(r"\bcredits?\b|billing|payment|recharge|top.?up|spend(?:ing)? limit|balance|\bquota\b")

# the key is not accepted, for example "incorrect api key provided"
KEY_REFUSED = _any_of(
    r"(?:invalid|incorrect|wrong|missing|expired|no|bad|unknown) (?:\w+ )?(?:api.?)?(?:key|credential)",
    r"invalid_api_key|authentication|unauthori[sz]ed|unauthenticated|api.?key (?:is |has |not )",
    r"account.{0,20}(?:deactivated|suspended|disabled|not active)",
)
