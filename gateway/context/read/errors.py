"""Errors: whether a line of output reports one."""

import re
from collections.abc import Sequence
from typing import Final

# Each is searched separately: in lines of some hundred characters this is twenty times faster than one joint
# expression.
_ERROR_WORDS: Final = (
    "error exception traceback fatal panic abort denied refused rejected invalid cannot can't unable undefined unexpected timeout timedout"
    " unauthorized unauthorised forbidden conflict overflow segfault killed insufficient missing warning assert"
    " fehler fehlgeschlagen erreur échec fallo falló errore ошибка 错误 失败 エラー 失敗 오류"
)
_ERRORS: Final = (*_ERROR_WORDS.split(), "not found", "no such", "time out", "timed out")
_FAILURE: Final = re.compile(r"fail(?:ed|ure|s|ing)?\b|erro\b")


def reports_error(line: str, error_words: Sequence[str] = _ERRORS) -> bool:
    """Return whether a line of output reports an error: it has one of the given words, or a word of failure."""
    low = line.lower()
    if any([error in low for error in error_words]):
        return True
    return ("fail" in low or "erro" in low) and _FAILURE.search(low) is not None


def error_words_in(text: str) -> Sequence[str]:
    """Return the error words in a whole text; its lines have no others. In a text with escapes all are possible."""
    low = text.lower()
    return _ERRORS if "\\u" in low else [error for error in _ERRORS if error in low]
