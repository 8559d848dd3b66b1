"""Names of models in the configuration: a name, or a pattern for many."""

from fnmatch import fnmatchcase


def is_pattern(name: str) -> bool:
    """Return whether a configured model name is a pattern."""
    return "*" in name or "?" in name


def matches(pattern: str, model: str) -> bool:
    """Return whether a model name matches a pattern: ``*`` is any text, ``?`` any one character."""
    return fnmatchcase(model, pattern.replace("[", "[[]"))  # without going back behind a star that matched


def literal_characters(pattern: str) -> int:
    """Count the literal characters of a pattern: more characters are more specific."""
    return len(pattern) - pattern.count("*") - pattern.count("?")
