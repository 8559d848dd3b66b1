"""What one attempt leaves for the next survives Envoy's metadata, and foreign metadata harms nothing."""

import pytest

from gateway.context.life.replies import OutputLimit, Refusal, StatedNumbers, ThinkingRejected
from gateway.extproc import protocol
from gateway.extproc.carried import (
    FIELD,
    LONGEST,
    NAMESPACE,
    NOTHING,
    Carried,
    CarriedRefusal,
    from_metadata,
    to_metadata,
)

REFUSALS = [
    Refusal("openai", StatedNumbers(8192, 9000, 100, None, True, None)),
    Refusal("vllm", StatedNumbers(None, None, None, 9100, False, 12)),
    Refusal("empty", StatedNumbers()),
    Refusal("output", OutputLimit(4096)),
    Refusal("output", OutputLimit()),
    Refusal("thinking", ThinkingRejected()),
]


def arriving(metadata: dict[str, object]) -> object:
    """A request to the processor with this metadata, as it comes off the wire."""
    spaces = [{"key": name, "value": value} for name, value in metadata.items()]
    sent = protocol.message("ProcessingRequest", request_headers={}, metadata_context={"filter_metadata": spaces})
    return protocol.parse("ProcessingRequest", protocol.encode(sent))


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: f"{each.sign} {each.numbers}")
def test_a_refusal_reaches_the_next_attempt_with_its_numbers(refusal: Refusal) -> None:
    carried = Carried("observe", (CarriedRefusal.of(refusal, 123),))

    found = from_metadata(arriving(to_metadata(carried)))

    assert found == carried
    assert found.refusals[0].refusal == refusal


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"envoy.filters.http.rbac": {"x": "y"}},
        {NAMESPACE: {}},
        {NAMESPACE: {FIELD: 7.0}},
        {NAMESPACE: {FIELD: "{"}},
        {NAMESPACE: {FIELD: '["off", [["x"]]]'}},
        {NAMESPACE: {FIELD: '"' + "x" * LONGEST + '"'}},
        {NAMESPACE: {FIELD: {"deep": [1.0, None, True]}}},
    ],
)
def test_metadata_that_is_not_ours_counts_as_a_first_attempt(metadata: dict[str, object]) -> None:
    assert from_metadata(arriving(metadata)) == NOTHING
