"""Compiles the regular expressions of targets and images. In: untrusted text. Out: a pattern.

Never: a pattern that can run for a very long time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from argosy.errors import RenderError
from argosy.languages.go_regexp import InvalidGoRegexp, MatchTooExpensiveError, RegexpMatcher, compile_go_regexp

_MAX_PATTERN_LENGTH: Final = 1000
_PLAIN_NAME: Final = re.compile(r"[\w./:@-]*", re.ASCII)  # Python reads it like Go, in linear time, without loading RE2


class ResourcePattern(NamedTuple):
    text: str
    where: str
    matcher: RegexpMatcher

    def matches(self, text: str) -> bool:
        """True if the pattern matches the text."""
        try:
            return self.matcher(text)
        except MatchTooExpensiveError:
            raise _build_cost_error(self.text, self.where) from None


def _build_cost_error(text: str, where: str) -> RenderError:
    return RenderError(f"the pattern {text[:80]!r} is too expensive: use a shorter one", where=where)


@lru_cache(1024)
def compile_pattern(text: str, where: str, suffix: str = "") -> ResourcePattern:
    """Compile a pattern, followed by our own suffix."""
    if len(text) > _MAX_PATTERN_LENGTH:
        raise _build_cost_error(text, where)
    # k8s: a suffix is appended without brackets, so the first alternative may end, and the last may start, anywhere.
    pattern = f"^{text}{suffix}$" if suffix else f"^(?:{text})$"
    if _PLAIN_NAME.fullmatch(text):
        match_whole = re.compile(text + suffix).fullmatch
        return ResourcePattern(text, where, lambda name: match_whole(name) is not None)
    try:
        return ResourcePattern(text, where, compile_go_regexp(pattern))
    except InvalidGoRegexp as error:
        raise RenderError(f"{text!r} is not a valid regular expression ({error}): correct it", where=where) from error
