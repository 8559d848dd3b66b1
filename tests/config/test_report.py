"""The report of `turnfold check`."""

from gateway.config.report import report

GOOD = """
upstreams:
  openai: {provider: openai, base_url: https://api.openai.com/v1, api_key: "${OPENAI_API_KEY}"}
  local:  {provider: vllm, base_url: "http://me:hidden@127.0.0.1:8000/v1", fallbacks: [openai]}
default_upstream: openai
models:
  gpt-4o: {context_window: 128000}
  "llama-*": {upstream: local}
  fast: {name: gpt-4o-mini}
  unheard-of: {upstreams: {openai: 2, local: 1}, mode: observe}
"""


def test_a_good_file_is_told_in_tables(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(GOOD)
    text, problems = report(path, {"OPENAI_API_KEY": "sk-hidden"})
    assert problems == ()
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert lines[f"{path}:"][1:] == ["all", "right"]
    assert lines["openai"] == ["openai", "(default)", "openai", "https://api.openai.com/v1", "configured"]
    assert lines["local"] == ["local", "vllm", "http://127.0.0.1:8000/v1", "the", "client's", "openai"]
    assert " ".join(lines["gpt-4o"]) == "gpt-4o as named openai 128,000 this file enforce fold"
    assert " ".join(lines["llama-*"]) == "llama-* as named local each model's own enforce fold"
    assert " ".join(lines["fast"]) == "fast gpt-4o-mini openai 128,000 the catalogue enforce fold"
    assert " ".join(lines["unheard-of"]) == (
        "unheard-of as named openai x2, local x1 131,072 defaults, until the upstream tells observe fold"
    )
    assert "hidden" not in text


def test_the_clients_address_holds_the_base_path(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("server: {base_path: /llm}\n")
    assert "http://127.0.0.1:8787/llm/v1 " in report(path, {})[0]


def test_a_bad_file_is_told_problem_by_problem(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("server: {port: x}\nnonsense: 1\n")
    text, problems = report(path, {})
    assert len(problems) == 2
    assert text.splitlines() == [*problems, f"{path}: 2 problems"]
