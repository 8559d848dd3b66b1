"""Definitions are written as chat templates write them, and no schema, however odd, breaks that."""

import json  # noqa: TID251  # what is written is compared with it
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.count import fixed_cost, tools
from gateway.context.count.tools import _FORMS, definitions, response_schema, typescript, write
from gateway.wire.memory import Memory

WEATHER = {
    "name": "get_weather",
    "description": "Get the weather.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "array", "items": {"type": "integer"}},
            "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["city"],
    },
}
PLAIN = {"name": "now", "parameters": {"type": "object", "properties": {}}}


def test_openai_models_read_typescript() -> None:
    """https://github.com/openai/harmony, ``template_tools_section``."""
    assert typescript([WEATHER, PLAIN]) == (
        "namespace functions {\n\n"
        "// Get the weather.\n"
        "type get_weather = (_: {\n"
        "// The city.\n"
        "city: string,\n"
        'unit?: "celsius" | "fahrenheit", // default: "celsius"\n'
        "days?: number[],\n"
        "where?: {\nlat: number,\n},\n"
        "note?: string | number,\n"
        "}) => any;\n\n"
        "type now = () => any;\n\n"
        "} // namespace functions"
    )


def test_the_dialects_of_definitions_are_read_alike() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    shapes: list[dict[str, Any]] = [
        {"tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}]},
        {"tools": [{"name": "f", "description": "d", "input_schema": schema}]},
        {"functions": [{"name": "f", "description": "d", "parameters": schema}]},
    ]

    assert len({typescript(definitions(shape)) for shape in shapes}) == 1


def test_a_response_schema_is_read_without_what_only_steers_the_answer() -> None:
    body = {
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "city",
                "schema": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                    "required": ["a"],
                    "additionalProperties": False,
                },
            },
        }
    }

    assert (
        response_schema(body)
        == '# Response Formats\n\n## city\n\n{"type":"object","properties":{"a":{"type":"string"}}}'
    )
    assert response_schema({"response_format": {"type": "json_object"}}) == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "properties", "items", "enum", "anyOf", "oneOf", "required", "description", "default", "title", "format", "x"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(json_values, max_size=3), st.sampled_from(sorted(_FORMS)))
def test_any_json_can_stand_where_definitions_should(tools: list[Any], form: Any) -> None:
    assert isinstance(write(definitions({"tools": tools}), form), str)


@given(json_values)
def test_any_json_can_stand_where_a_schema_should(schema: Any) -> None:
    assert isinstance(response_schema({"response_format": {"json_schema": {"schema": schema}}}), str)


@pytest.mark.parametrize("form", sorted(_FORMS))
def test_a_schema_that_never_ends_is_followed_only_so_far(form: Any) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(500):
        schema = {"type": "object", "properties": {"a": schema}}

    assert isinstance(write([{"name": "f", "parameters": schema}], form), str)


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
@given(value=json_values, at_once=st.integers(0, 5))
def test_json_in_pieces_is_the_json_that_python_writes(value: Any, at_once: int, separators: tuple[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tools, "WRITTEN_AT_ONCE", at_once)
        assert tools._json(value, separators=separators) == json.dumps(value, ensure_ascii=False, separators=separators)


@pytest.mark.parametrize("depth", [1, 30])
def test_a_schema_of_megabytes_is_written_in_small_pieces(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's encoder holds the interpreter's lock while it writes: one call for all of it stopped the event loop for 85 ms."""
    schema: Any = {f"p{number}": {"type": "string", "description": "x" * 100} for number in range(10_000)}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    sizes: list[int] = []

    def encode(value: Any) -> str:
        written = json.dumps(value, ensure_ascii=False)
        sizes.append(len(written))
        return written

    monkeypatch.setattr(tools, "_ENCODERS", dict.fromkeys(tools._ENCODERS, encode))
    assert tools.write([{"name": "f", "parameters": schema}], "list") == json.dumps(
        [tools._wrapped({"name": "f", "parameters": schema})]
    )
    assert sum(sizes) > 1_000_000
    assert max(sizes) < 150_000


@pytest.mark.parametrize("member", ["tools", "response_format"])
def test_definitions_that_no_window_holds_are_not_written_but_estimated(
    member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joining 31 MB of them with emoji stopped the event loop for a second."""
    monkeypatch.setattr(fixed_cost, "count", None)
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "word 😀 " * 1_500_000}}}
    body: dict[str, Any] = {
        "tools": {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]},
        "response_format": {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}},
    }[member]
    assert fixed_cost.fixed_cost({"messages": [], **body}, "gpt-4o", Memory()) > 2_000_000
