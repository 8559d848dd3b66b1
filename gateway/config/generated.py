"""Files generated from the schema: the commented YAML file, the tables of the documentation and the JSON Schema."""

import re
from collections.abc import Iterator
from typing import Any, Final

from gateway.config.schema import SECTIONS, SETTINGS, Setting
from gateway.config.sections import ANY, FOLD_KEYS, default_of, is_required, under

COMMENT_COLUMN: Final = 40
"""Where comments begin in the YAML file, in characters."""

HEAD: Final = """\
# The configuration of Turnfold: every setting, with its default.
# `turnfold check FILE` explains a file, or lists all its mistakes. More: docs/configuration.md.
# ${NAME} and ${NAME:-default} come from the environment. The file is read again when it changes.
# Written by `make settings` from gateway/config/schema.py.
"""

EXAMPLES: Final = {
    "upstreams": """\
  openai:
    provider: openai
    base_url: https://api.openai.com/v1
    api_key: "${OPENAI_API_KEY:-}"      # without one, the client's own credentials are forwarded
  # local:
  #   provider: vllm
  #   base_url: http://127.0.0.1:8000/v1
  #   fallbacks: [openai]               # asked for the same model if this one fails
  # Every key of an upstream, with its default:
""",
    "keys": """\
  # team-a:                             # `turnfold keys add team-a --print` writes such an entry
  #   hash: sha256:1111111111111111111111111111111111111111111111111111111111111111
  #   models: ["gpt-4o*"]
  #   rpm: 60
  # Every key of an entry, with its default:
""",
    "default_upstream": "default_upstream: openai                # the upstream of all models that are not mentioned below\n",
    "models": """\
  # gpt-4o:    {context_window: 128000, max_output_tokens: 16384}
  # "llama-*": {upstream: local, context_window: 8192}           # for all names that match
  # fast:      {name: gpt-4o-mini}                               # an alias
  # small:     {upstream: local, context_window: 8192, on_overflow: [gpt-4o]}
  # Every key of a model, with its default:
""",
}
"""Example names in the YAML file, where the operator chooses the names."""


def yaml_file() -> str:
    """Write `config/turnfold.yaml`."""
    return "\n".join((HEAD, *("".join(_section(name, help_)) for name, help_ in SECTIONS.items())))


def _section(name: str, help_: str) -> Iterator[str]:
    free = f"{name}.{ANY}"
    if name == "default_upstream":
        yield EXAMPLES[name]
    elif under(free):
        yield _line(f"{name}:", help_)
        yield EXAMPLES[name]
        for setting in under(free):
            yield _line(f"  #   {setting.key}: {written(setting)}", setting.help)
    else:
        yield _line(f"{name}:", help_)
        for setting in under(name):
            yield _line(f"  {setting.key}: {written(setting)}", setting.help)
        for inner in _inner(name):
            yield f"  {inner.rpartition('.')[2]}:\n"
            for setting in under(inner):
                yield _line(f"    {setting.key}: {written(setting)}", setting.help)


def _inner(section: str) -> tuple[str, ...]:
    """Return the sections inside a section."""
    found = (each.section for each in SETTINGS if each.section.startswith(f"{section}."))
    return tuple(dict.fromkeys(found))


def _line(text: str, comment: str) -> str:
    return f"{text.ljust(COMMENT_COLUMN - 1)} # {comment}\n" if comment else f"{text}\n"


def written(setting: Setting) -> str:
    """Write the default of a setting in YAML."""
    if setting.example:
        return setting.example
    default = default_of(setting)
    return "null" if default is None else setting.kind.write(default)


def rows(section: str) -> str:
    """Write the table of a section for the documentation, with the settings of the sections inside it."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for setting in (each for each in SETTINGS if each.section == section or each.section in _inner(section)):
        name = setting.path.removeprefix(f"{section}.")
        meaning = setting.help.rstrip(",").replace("|", "\\|")
        meaning += f". {setting.more}" if setting.more else ""
        lines.append(f"| `{name}` | {_default_shown(setting)} | {meaning} |")
    if section == "models.*":
        lines.append("| any key of `fold` | as under `fold` | for this model alone, directly or under `fold:` |")
    return "\n".join(lines)


def _default_shown(setting: Setting) -> str:
    if is_required(setting):
        return "required"
    default = default_of(setting)
    if setting.default or default in (None, (), {}):
        return setting.default or "none"
    return f"`{setting.kind.write(default)}`"


TABLE: Final = re.compile(r"(<!-- settings: (?P<section>[a-z*.]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(markdown: str) -> str:
    """Fill the tables between the marks ``<!-- settings: SECTION -->`` and ``<!-- end -->``."""
    return TABLE.sub(lambda found: f"{found[1]}{rows(found['section'])}\n{found[3]}", markdown)


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema of the file, for editors and for checks outside Turnfold."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Turnfold's configuration",
        "description": "Values may be ${NAME} or ${NAME:-default} from the environment.",
        **_properties(""),
    }


def _properties(section: str) -> dict[str, Any]:
    start = f"{section}." if section else ""
    found: dict[str, Any] = {each.key: _described(each) for each in SETTINGS if each.section == section}
    names = dict.fromkeys(
        path.removeprefix(start).partition(".")[0]
        for path in (each.path for each in SETTINGS)
        if path.startswith(start) and "." in path.removeprefix(start)
    )
    for name in names:
        if name != ANY:
            found[name] = _inside(start + name)
    if section == "models.*":
        fold = _properties("fold")
        found |= {"fold": fold, **{key: fold["properties"][key] for key in FOLD_KEYS}}
    required = [each.key for each in SETTINGS if each.section == section and is_required(each)]
    schema = {"type": ["object", "null"], "properties": dict(sorted(found.items())), "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _inside(path: str) -> dict[str, Any]:
    free = f"{path}.{ANY}"
    schema = (
        {"type": ["object", "null"], "additionalProperties": _properties(free)} if under(free) else _properties(path)
    )
    return {"description": SECTIONS[path], **schema} if path in SECTIONS else schema


def _described(setting: Setting) -> dict[str, Any]:
    default = default_of(setting)
    shown = {} if default in (None, (), {}) else {"default": _plain_default(setting, default)}
    return {"description": setting.help, **shown, **setting.kind.schema}


def _plain_default(setting: Setting, default: Any) -> Any:
    """Return the default as in the file: numbers stay numbers, durations and sizes have units."""
    if isinstance(default, tuple):
        return list(default)
    return setting.kind.write(default) if setting.kind.measured else default
