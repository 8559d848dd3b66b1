"""Metrics: every exchange counts once, under labels that a client cannot multiply."""

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from gateway.context.write.draft import Step
from gateway.observe.exchange import Exchange
from gateway.observe.exposition import families, merged
from gateway.observe.metrics import MOST_KEYS, OTHER_KEYS, Metrics

FOLDED = Exchange(
    request_id="r",
    upstream="up",
    model="whatever the client wrote",
    entry="gpt-*",
    action="fold",
    status=200,
    stream=False,
    window=1000,
    tokens_before=2500,
    tokens_after=600,
    basis="exact",
    attempts=2,
    refusals=("context",),
    steps=(Step("digest", 1900, "10 lines"), Step("recall", -50)),
    prompt_tokens=590,
    cached_tokens=300,
    written_tokens=200,
    completion_tokens=5,
    total_s=0.3,
    mode="enforce",
)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    found = text_string_to_metric_families(merged([families(metrics)]).decode())
    return {(s.name, tuple(s.labels.values())): s.value for family in found for s in family.samples}


def test_an_exchange_is_counted_in_every_family_it_concerns() -> None:
    metrics = Metrics()
    metrics.observe(FOLDED)
    metrics.observe(FOLDED)
    seen = samples(metrics)

    assert seen["turnfold_requests_total", ("fold", "gpt-*", "enforce", "200", "up")] == 2
    assert seen["turnfold_retries_total", ("gpt-*", "up")] == 2
    assert seen["turnfold_refusals_total", ("gpt-*", "up")] == 2
    assert seen["turnfold_tokens_before_total", ("gpt-*", "enforce", "up")] == 5000
    assert seen["turnfold_tokens_after_total", ("gpt-*", "enforce", "up")] == 1200
    assert seen["turnfold_saved_tokens_total", ("gpt-*", "digest", "up")] == 3800
    assert seen["turnfold_saved_tokens_total", ("gpt-*", "recall", "up")] == 0
    assert seen["turnfold_billed_tokens_total", ("gpt-*", "prompt", "up")] == 1180
    assert seen["turnfold_billed_tokens_total", ("gpt-*", "cached", "up")] == 600
    assert seen["turnfold_billed_tokens_total", ("gpt-*", "written", "up")] == 400
    assert seen["turnfold_request_seconds_count", ("gpt-*", "up")] == 2
    assert seen["turnfold_window_share_bucket", ("gpt-*", "3.0", "enforce", "up")] == 2
    assert seen["turnfold_window_share_bucket", ("gpt-*", "2.0", "enforce", "up")] == 0


def test_the_clients_own_words_are_no_label() -> None:
    metrics = Metrics()
    metrics.observe(FOLDED)

    assert "whatever" not in merged([families(metrics)]).decode()


def test_a_survived_failure_of_our_own_is_counted() -> None:
    metrics = Metrics()
    metrics.degraded("fold")

    assert samples(metrics)["turnfold_degraded_total", ("fold",)] == 1


def test_what_was_only_observed_saves_nothing() -> None:
    metrics = Metrics()
    metrics.observe(replace(FOLDED, mode="observe", action="observe"))
    seen = samples(metrics)

    assert seen["turnfold_tokens_after_total", ("gpt-*", "observe", "up")] == 2500
    assert seen["turnfold_would_save_tokens_total", ("gpt-*", "up")] == 1900
    assert seen["turnfold_would_fold_total", ("gpt-*", "up")] == 1
    assert not [name for name, _ in seen if name == "turnfold_saved_tokens_total"]


def test_keys_beyond_a_number_share_one_name():
    metrics = Metrics()
    for number in range(MOST_KEYS + 50):
        metrics.observe(Exchange.passed("id", "fits", 200, key=f"key-{number}"))
    [found] = [values for name, _, _, values in metrics.counters() if name == "turnfold_key_requests"]
    assert len(found) == MOST_KEYS + 1
    assert dict(found)[(OTHER_KEYS, "200")] == 50
