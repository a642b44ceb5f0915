"""Loops of shell scripts that compare a counter which nothing sets before the loop.

In: the text of a script. Out: the counters, and what the shell does. Never: a variable that may come from elsewhere;
only one that the loop itself changes, and that nothing else in the script sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_LOOP: Final = re.compile(
    r"(?:^|(?<=[\s;&|(){}]))(?P<word>while|until)\s+(?P<negated>!\s+)?"
    r"(?P<test>\[\[[^\n]*?\]\]|\[\s[^\n]*?\s\]|test\s[^\n;]*|\(\([^\n]*?\)\))"
    r"(?P<more>[^\n;]*)\s*[;\n]\s*do\b"
)
_DO_OR_DONE: Final = re.compile(r"(?<![\w$./-])(do|done)(?![\w./=-])")
_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_NUMERIC: Final = r"-(?:lt|le|gt|ge|eq|ne)\b"
_OPERAND: Final = r"[\"']?\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})[\"']?"
_COMPARED: Final = re.compile(rf"{_OPERAND}(?=\s+{_NUMERIC})|{_NUMERIC}\s+{_OPERAND}")
_EXPANDED: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_NOUNSET: Final = re.compile(
    r"\bset\s+(?:-\w+\s+)*(?:-\w*u|-\w*o\s+nounset)|^(?:\S*/)?(?:ba|da|k|z)?sh\n(?:-\w+\n)*-\w*u\w*\n"
)
_FROM_ELSEWHERE: Final = re.compile(r"(?m)(?:^|[;&|({\s])(?:source|eval|\.)\s+\S")
_SET_BY_SHELL: Final = frozenset({"SECONDS", "RANDOM", "EPOCHSECONDS", "LINENO", "UID", "EUID", "PPID", "OPTIND"})
_SETTERS: Final = r"(?:read|for|select|let|declare|typeset|export|local|readonly|getopts|mapfile|readarray|printf\s+-v)"


class UnsetCounter(NamedTuple):
    name: str
    ends_script: bool  # `set -u`: the shell ends the script; otherwise the test fails and the loop is skipped


def find_unset_counters(script: str) -> Iterator[UnsetCounter]:
    """Counters that a loop compares, sets only in its own body, and therefore does not have the first time."""
    text = _COMMENT.sub("", script.replace("\\\n", " "))
    if _FROM_ELSEWHERE.search(text):
        return
    ends_script = _NOUNSET.search(text) is not None
    found: set[str] = set()
    for loop in _LOOP.finditer(text):
        end = _end_of_body(text, loop.end())
        outside, body = text[: loop.start()] + "\n" + text[end:], text[loop.end() : end]
        for name in _names_at_risk(loop, ends_script=ends_script):
            if name not in found and _is_set(name, body) and not _is_set(name, outside):
                found.add(name)
                yield UnsetCounter(name, ends_script)


def _names_at_risk(loop: re.Match[str], *, ends_script: bool) -> list[str]:
    """Variables that make the loop fail if they are not set."""
    test = loop["test"]
    if ends_script:
        names = [one or other for one, other in _EXPANDED.findall(test)]
    elif loop["word"] == "until" or loop["negated"] or not test.startswith(("[ ", "[\t", "test")):
        return []  # the loop runs, and an unset variable counts as 0: `[[` and `((` do that too
    elif "||" in loop["more"] or "||" in test or " -o " in test:
        return []
    else:
        names = [next(filter(None, groups)) for groups in _COMPARED.findall(test)]
    return [name for name in dict.fromkeys(names) if name not in _SET_BY_SHELL]


def _is_set(name: str, text: str) -> bool:
    word = rf"(?<![\w$]){name}(?!\w)"
    patterns = (
        rf"(?<![\w$-]){name}(?:\[[^\]\n]*\])?\+?=",
        rf"\b{_SETTERS}\b[^\n;]*{word}",
        rf"\(\([^\n]*{word}\s*(?:\+\+|--|[-+*/%]?=(?!=))",
        rf"(?:\+\+|--){word}",
        rf"\$\{{{name}:?=",
    )
    return any(re.search(pattern, text) for pattern in patterns)


def _end_of_body(text: str, start: int) -> int:
    """Where the `done` of a loop stands whose body starts here."""
    depth = 1
    for match in _DO_OR_DONE.finditer(text, start):
        depth += 1 if match[1] == "do" else -1
        if depth == 0:
            return match.end()
    return len(text)
