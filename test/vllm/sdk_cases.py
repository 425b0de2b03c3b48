"""The official OpenAI client for Python against an address: one JSON line a case, `{"name", "ok", "detail"}`.

Usage: sdk_cases.py BASE_URL KEY MODEL
"""

import json
import sys
import traceback

import openai

base_url, key, model = sys.argv[1:4]
client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=120)
MESSAGES = [{"role": "user", "content": "Tell me of the river and of the hills."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks up a word.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string", "maxLength": 8}}, "required": ["word"]},
    },
}
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def models():
    assert model in [each.id for each in client.models.list()]


@case
def chat():
    answer = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=8)
    assert answer.choices[0].message.role == "assistant"
    assert answer.usage.completion_tokens > 0


@case
def chat_streamed_with_usage():
    finish, usage, texts = None, None, 0
    options = {"include_usage": True}
    for chunk in client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=8, stream=True, stream_options=options
    ):
        for choice in chunk.choices:
            texts += choice.delta.content is not None
            finish = choice.finish_reason or finish
        usage = chunk.usage or usage
    assert finish in ("stop", "length") and texts > 0
    assert usage is not None and usage.completion_tokens > 0


@case
def chat_streamed_without_usage():
    chunks = list(client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=8, stream=True))
    assert chunks and all(chunk.usage is None for chunk in chunks), "a usage frame that was not asked for"
    assert all(chunk.choices for chunk in chunks), "a frame without choices that was not asked for"


@case
def completion():
    answer = client.completions.create(model=model, prompt="the river", max_tokens=6)
    assert answer.usage.total_tokens > 0


@case
def completion_streamed():
    chunks = list(client.completions.create(model=model, prompt=[301, 302, 303], max_tokens=6, stream=True))
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


@case
def two_choices():
    answer = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=6, n=2)
    assert sorted(choice.index for choice in answer.choices) == [0, 1]


@case
def tools():
    choice = {"type": "function", "function": {"name": "look_up"}}
    answer = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=60, tools=[TOOL], tool_choice=choice
    )
    # Random weights seldom close the call before max_tokens; vLLM then gives its beginning as content.
    message = answer.choices[0].message
    named = message.tool_calls[0].function.name if message.tool_calls else message.content
    assert "look_up" in named, named


@case
def logprobs():
    answer = client.chat.completions.create(
        model=model, messages=MESSAGES, max_tokens=4, logprobs=True, top_logprobs=2
    )
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2


@case
def unknown_model():
    expect(openai.NotFoundError, model="no-such-model", messages=MESSAGES)


@case
def bad_parameter():
    expect(openai.BadRequestError, model=model, messages=MESSAGES, temperature=-3)


@case
def over_the_context():
    try:
        client.completions.create(model=model, prompt=[301] * 9000, max_tokens=4)
    except openai.BadRequestError:
        return
    raise AssertionError("a prompt over the context limit was taken")


@case
def abort_in_mid_stream():
    stream = client.chat.completions.create(model=model, messages=MESSAGES, max_tokens=400, stream=True)
    for number, _ in enumerate(stream):
        if number == 3:
            stream.close()
            return
    raise AssertionError("the stream ended before it was left")


def expect(error, **request):
    try:
        client.chat.completions.create(**request, max_tokens=4)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


for function in CASES:
    result = {"name": function.__name__.replace("_", " "), "ok": True, "detail": ""}
    try:
        function()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        result.update(ok=False, detail=f"{type(error).__name__}: {error} (line {where.lineno})")
    print(json.dumps(result), flush=True)
