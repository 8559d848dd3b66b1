"""Upstreams that say "too long", and upstreams that say something else: the first are recovered, the second passed on.

The numbers in the names are those of the catalogue of cases: input and required outcome.
"""

import asyncio

import orjson
import pytest

from gateway.standin import Gate, Raw, Refuse, StandIn
from gateway.standin.dialects import DIALECTS
from gateway.standin.weight import prompt_tokens
from tests import fakes
from tests.e2e.stories import Story, events_of, final_text

BELIEVED, REAL = 16_000, 3000
"""The window the gateway is configured with, and the one the upstream has."""

PROVIDERS = {
    "vllm": "vllm",
    "vllm-counts-no-further": "vllm",
    "llama.cpp": "llama.cpp",
    "llama-cpp-python": "llama.cpp",
    "ollama": "ollama",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "groq": "groq",
    "bedrock": "bedrock",
    "lm-studio": "lmstudio",
    "xai": "xai",
}
"""How a server is configured that speaks a dialect; openai where it has no row of its own."""

HISTORY = fakes.chat(60, 100)
"""Too long for the upstream, not for the gateway."""

NEAR = 7600
"""A window that the history nearly fills: there a stream without an event is taken for a refusal."""


def config(window: int | None = BELIEVED, provider: str = "openai", **model):
    named = {} if window is None else {"context_window": window}
    return {
        "upstreams": {"standin": {"provider": provider}},
        "models": {"m": {"tokenizer": "o200k", **named, **model}},
    }


@pytest.fixture
async def story(gateway):
    """Set the scene: a stand-in, a gateway before it, and what happened."""
    opened = []

    async def tell(standin: StandIn, settings) -> Story:
        opened.append(standin)
        await standin.start()
        upstreams = {"standin": {**settings["upstreams"]["standin"], "base_url": standin.base_url}}
        return Story(await gateway(standin, {**settings, "upstreams": upstreams}), standin)

    yield tell
    for standin in opened:
        await standin.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_78_79_82_83_84_97_98_120_125_a_refusal_in_any_dialect_is_recovered(story, dialect, stream):
    believed = NEAR if DIALECTS[dialect].silent_stream and stream else BELIEVED
    told = await story(StandIn(window=REAL, dialect=dialect), config(believed, PROVIDERS.get(dialect, "openai")))
    body = {"model": "m", "messages": HISTORY, "max_tokens": 100, "stream": stream}
    answer = await told.gateway.chat(body)
    assert answer.status == 200
    assert final_text(answer, stream) == "Understood."
    assert answer.action == "retry"
    assert answer.headers["x-turnfold-attempts"] == str(len(told.chats))
    assert told.chats[0].body == orjson.dumps(body)
    told.shrinks_each_time(at_most=4)
    told.last_is_valid(body)


RECOVERED = [
    (
        "78 a code alone",
        400,
        '{"error":{"message":"","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}',
    ),
    (
        "81 functions are counted beside the messages",
        400,
        '{"error":{"message":"This model\'s maximum context length is 4096 tokens. However, your messages resulted in 4109 '
        'tokens (3379 in the messages, 730 in the functions). Please reduce the length of the messages or functions.",'
        '"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}',
    ),
    (
        "82 images and text together",
        400,
        '{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens.",'
        '"param":"","type":"BadRequest"}}',
    ),
    (
        "83 the input is longer than the context",
        400,
        '{"object":"error","message":"The input (400013 tokens) is longer than the model\'s context length (262144 '
        'tokens).","type":"BadRequestError","param":null,"code":400}',
    ),
    (
        "84 a range of input lengths",
        400,
        '{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input '
        'length should be [1, 983616]","param":null,"type":"invalid_request_error"},"request_id":"81a373d6"}',
    ),
    (
        "85 142907 tokens are no 429",
        400,
        '{"error":{"message":"This model\'s maximum context length is 131072 tokens. However, your messages resulted in '
        '142907 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages",'
        '"code":"context_length_exceeded"}}',
    ),
    (
        "120 a 413",
        413,
        '{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 4000 '
        'tokens.","details":"Request body too large for gpt-4o model. Max size: 4000 tokens."}}',
    ),
    (
        "120 a 422",
        422,
        '{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 6204 `inputs` tokens '
        'and 100 `max_new_tokens`","error_type":"validation"}',
    ),
    (
        "120 a 500",
        500,
        '{"error":{"message":"Requested tokens (6285) exceed context window of 4096","type":"internal_server_error",'
        '"param":null,"code":null}}',
    ),
    (
        "124 the prompt fills the window",
        400,
        '{"error":{"message":"max_tokens must be at least 1, got -7584. (parameter=max_tokens, value=-7584)","type":'
        '"BadRequestError","param":"max_tokens","code":400}}',
    ),
]


@pytest.mark.parametrize(("status", "refusal"), [row[1:] for row in RECOVERED], ids=[row[0] for row in RECOVERED])
async def test_a_recorded_refusal_is_recovered(story, status, refusal):
    told = await story(StandIn(script=[fakes.verbatim(status, refusal)]), config(provider="vllm"))
    body = {"model": "m", "messages": HISTORY}
    answer = await told.gateway.chat(body)
    assert answer.status == 200
    assert answer.headers["x-turnfold-attempts"] == "2"
    told.shrinks_each_time(at_most=2)
    told.last_is_valid(body)


PASSED_ON = [
    ("86 another parameter is wanted", 400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "unsupported_parameter"),
    ("87 the output is capped", 400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "invalid_request_error"),
    ("88 another parameter is invalid", 400, "<400> InternalError.Algo.InvalidParameter: Temperature should be in [0.0, 2.0)", "invalid_parameter_error"),
    ("89 the image is too large", 400, "400 Bad Request: image too large, max 5MB", None),
    ("91 a deadline is exceeded", 504, "context deadline exceeded", None),
    ("91 a deadline is exceeded, as a 500", 500, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)", None),
    ("92 the model is unknown", 404, "The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"),
    ("92 the model is unknown, as a 400", 400, "model not found", None),
    ("92 a field is missing", 400, "each field is required", None),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("status", "message", "code"), [row[1:] for row in PASSED_ON], ids=[row[0] for row in PASSED_ON]
)
async def test_86_to_92_another_refusal_is_passed_on_as_it_is(story, status, message, code, stream):
    refusal = fakes.error(status, message, code=code)
    told = await story(StandIn(script=[refusal]), config())
    body = {"model": "m", "messages": HISTORY, "stream": stream}
    answer = await told.gateway.chat(body)
    assert (answer.status, answer.body) == (status, refusal.chunks[0])
    assert [seen.body for seen in told.chats] == [orjson.dumps(body)]


async def test_89_a_413_of_a_web_server_is_passed_on(story):
    told = await story(StandIn(script=[fakes.TOO_LARGE_HTML]), config())
    answer = await told.gateway.chat({"model": "m", "messages": fakes.chat(3)})
    assert (answer.status, answer.body) == (413, fakes.TOO_LARGE_HTML.chunks[0])
    assert answer.headers["content-type"] == "text/html"
    assert len(told.chats) == 1


async def test_90_a_rate_limit_is_passed_on_with_its_headers(story):
    told = await story(StandIn(script=[fakes.RATE_LIMITED]), config())
    answer = await told.gateway.chat({"model": "m", "messages": HISTORY})
    assert (answer.status, answer.body) == (429, fakes.RATE_LIMITED.chunks[0])
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["x-ratelimit-remaining-tokens"] == "0"
    assert len(told.chats) == 1


async def test_93_a_broken_pair_of_the_clients_own_is_refused_by_the_upstream_itself(story):
    told = await story(StandIn(), config())
    answer = await told.gateway.chat({"model": "m", "messages": [fakes.user("u"), fakes.result("call_1", "r")]})
    assert answer.status == 400
    assert answer.json["error"]["message"].startswith("Invalid parameter: messages with role 'tool'")
    assert len(told.chats) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_94_a_refusal_that_persists_ends_with_the_upstreams_last_word(story, stream):
    told = await story(StandIn(otherwise=lambda _: Refuse()), config())
    answer = await told.gateway.chat({"model": "m", "messages": HISTORY, "stream": stream})
    assert answer.status == 400
    assert answer.json["error"]["code"] == "context_length_exceeded"
    assert str(told.chats[-1].prompt_tokens) in answer.json["error"]["message"]
    told.shrinks_each_time(at_most=4)


async def test_94_max_retries_is_the_most_calls_that_follow_the_first(story):
    told = await story(StandIn(otherwise=lambda _: Refuse("groq")), config(max_retries=1))
    assert (await told.gateway.chat({"model": "m", "messages": HISTORY})).status == 400
    assert len(told.chats) <= 2


async def test_95_122_numbers_beat_an_estimate_that_is_off_by_three(story):
    told = await story(StandIn(window=BELIEVED, scale=3.0), config())
    body = {"model": "m", "messages": HISTORY, "max_tokens": 100}
    assert prompt_tokens(body) < BELIEVED < 3 * prompt_tokens(body)
    assert (await told.gateway.chat(body)).status == 200
    assert len(told.chats) == 2
    assert (await told.gateway.chat(body)).status == 200
    assert len(told.chats) == 3, "the second request is right the first time"


async def test_96_a_retry_does_not_repeat_the_users_message(story):
    told = await story(StandIn(window=REAL), config())
    await told.gateway.chat({"model": "m", "messages": HISTORY})
    asked = HISTORY[-1]["content"]
    assert sum(asked in message["content"] for message in told.chats[-1].messages) == 1


async def test_99_126_an_error_after_content_is_handed_on_and_not_retried(story):
    overflow = {"error": {"message": "This model's maximum context length is 3000 tokens. However, your messages resulted in 9000 tokens.", "code": "context_length_exceeded"}}  # fmt: skip
    server = {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}
    for late in (overflow, server):
        stream = fakes.events(fakes.delta("Half an ans"), late, done=False)
        told = await story(StandIn(script=[stream]), config())
        answer = await told.gateway.chat({"model": "m", "messages": HISTORY, "stream": True})
        assert (answer.status, answer.body) == (200, b"".join(stream.chunks))
        assert len(told.chats) == 1


async def test_100_a_client_that_leaves_during_a_retry_ends_it(story):
    told = await story(StandIn(script=[fakes.refuse(limit=REAL), fakes.SILENCE]), config())
    asking = asyncio.ensure_future(  # noqa: TID251  # the test owns it
        told.gateway.chat({"model": "m", "messages": HISTORY})
    )
    async with asyncio.timeout(10):
        second = await told.standin.arrived(2)
        asking.cancel()
        await second.done.wait()
    assert second.left
    assert len(told.chats) == 2


async def test_101_an_answer_cut_by_its_length_is_no_refusal(story):
    told = await story(StandIn(script=[fakes.Completion("Once upon", finish_reason="length")]), config())
    answer = await told.gateway.chat({"model": "m", "messages": HISTORY, "max_tokens": 2})
    assert answer.json["choices"][0]["finish_reason"] == "length"
    assert len(told.chats) == 1


async def test_102_a_learned_limit_holds_for_later_requests(story):
    told = await story(StandIn(window=REAL), config())
    body = {"model": "m", "messages": HISTORY, "max_tokens": 100}
    await told.gateway.chat(body)
    after_first = len(told.chats)
    answer = await told.gateway.chat(body)
    assert answer.status == 200
    assert len(told.chats) == after_first + 1
    assert answer.action == "fold"
    assert int(answer.headers["x-turnfold-window"]) == REAL


async def test_103_without_history_there_is_nothing_to_try(story):
    told = await story(StandIn(otherwise=lambda _: Refuse("groq")), config())
    answer = await told.gateway.chat({"model": "m", "messages": [fakes.system("s"), fakes.user("Hello")]})
    assert answer.status == 400
    assert answer.json["error"]["message"] == "Please reduce the length of the messages or completion."
    assert len(told.chats) == 1


async def test_80_114_when_the_prompt_fits_only_the_output_is_lowered(story):
    """The refusal of the second kind: the upstream's window is smaller than believed."""
    for dialect in ("openai", "deepseek", "vllm", "anthropic", "tgi", "sglang"):
        told = await story(StandIn(window=REAL, dialect=dialect), config(128_000, PROVIDERS.get(dialect, "openai")))
        messages = fakes.chat(15, 100)
        answer = await told.gateway.chat({"model": "m", "messages": messages, "max_tokens": 2500})
        assert answer.status == 200, dialect
        assert len(told.chats) == 2
        assert told.chats[1].messages == messages
        assert 256 <= told.chats[1].json["max_tokens"] < 2500


async def test_114_a_known_window_lowers_the_output_before_any_call(story):
    told = await story(StandIn(window=REAL), config(REAL))
    messages = fakes.chat(15, 100)
    answer = await told.gateway.chat({"model": "m", "messages": messages, "max_tokens": 2500})
    assert answer.status == 200
    assert len(told.chats) == 1
    assert told.chats[0].messages == messages
    assert 256 <= told.chats[0].json["max_tokens"] < 2500


async def test_124_an_output_larger_than_the_whole_window_is_lowered(story):
    refusal = fakes.error(400, "max_tokens=4096 cannot be greater than max_model_len=2048. Please request fewer output tokens.", code=400)  # fmt: skip
    told = await story(StandIn(script=[refusal]), config(None, "vllm"))
    messages = fakes.chat(4, 100)
    answer = await told.gateway.chat({"model": "m", "messages": messages, "max_tokens": 4096})
    assert answer.status == 200
    assert told.chats[1].messages == messages
    assert told.chats[1].json["max_tokens"] < 2048


async def test_122_chinese_that_counts_for_more_is_recovered_and_then_known(story):
    """A model of unknown vocabulary, whose real counts are two and a half times the estimate."""
    sentence = "船在厚云下向北航行，船员们在温暖的石墙旁修补旧网。"
    history = [fakes.system("你是一个助手。")]
    for turn in range(60):
        history += [fakes.user(f"第{turn}个问题：{sentence * 4}"), fakes.assistant(f"第{turn}个回答：{sentence * 4}")]
    body = {"model": "unheard-of", "messages": [*history, fakes.user("第一个问题是什么？")], "max_tokens": 100}
    scale = 6.0
    window = round(prompt_tokens(body) * scale * 0.6)
    settings = config() | {"models": {"unheard-of": {"context_window": window}}}
    told = await story(StandIn(window=window, scale=scale), settings)
    assert (await told.gateway.chat(body)).status == 200
    assert len(told.chats) <= 2
    before = len(told.chats)
    assert (await told.gateway.chat(body)).status == 200
    assert len(told.chats) == before + 1


async def test_123_a_stream_without_an_event_is_a_refusal_only_near_the_window(story):
    told = await story(StandIn(script=[fakes.EMPTY_STREAM]), config(NEAR))
    answer = await told.gateway.chat({"model": "m", "messages": HISTORY, "stream": True})
    assert prompt_tokens({"messages": HISTORY}) > 0.85 * NEAR
    assert events_of(answer)[-1] == "[DONE]"
    assert len(told.chats) == 2

    told = await story(StandIn(script=[fakes.EMPTY_STREAM]), config())
    answer = await told.gateway.chat({"model": "m", "messages": fakes.chat(2), "stream": True})
    assert (answer.status, answer.body) == (200, b"")
    assert len(told.chats) == 1


async def test_a_stream_starts_before_the_upstream_has_finished_after_a_retry(story):
    gate = Gate()
    told = await story(StandIn(script=[fakes.refuse(limit=REAL), fakes.reply("ab", gate=gate)]), config())
    url, body = f"{told.gateway.base_url}/chat/completions", {"model": "m", "messages": HISTORY, "stream": True}
    gate.release()
    async with told.gateway.session.post(url, json=body) as response:
        first = await response.content.readany()
        assert first.count(b"data:") == 1
        gate.release(9)
        assert (await response.read()).endswith(b"data: [DONE]\n\n")


async def test_a_compressed_refusal_is_read(story):
    refusal = {"error": {"message": "x", "type": "invalid_request_error", "code": "context_length_exceeded"}}
    packed = fakes.gzipped(refusal)
    told = await story(StandIn(script=[Raw(400, packed.chunks, packed.headers)]), config())
    answer = await told.gateway.chat({"model": "m", "messages": HISTORY}, {"accept-encoding": "gzip"})
    assert answer.status == 200
    assert len(told.chats) == 2


async def test_a_truncating_server_is_noticed(story):
    told = await story(StandIn(window=REAL, truncates=True), config())
    answers = [await told.gateway.chat({"model": "m", "messages": HISTORY}) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert ["x-turnfold-warning" in answer.headers for answer in answers] == [False, True], "one bill proves nothing"
    assert (await told.gateway.chat({"model": "m", "messages": HISTORY})).action == "fold"
