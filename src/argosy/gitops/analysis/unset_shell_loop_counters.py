"""Loops of shell scripts that compare a counter which nothing sets before the loop.

In: the text of a script. Out: the counters, and what the shell does. Never: a variable that may come from elsewhere;
only one that the loop itself changes, and that nothing else in the script sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

# Limits of the work on one script: scripts come from repositories that anyone may have written.
MAX_SCRIPT_CHARACTERS: Final = 20_000
_MAX_LOOPS: Final = 100
_MAX_VARIABLES: Final = 20
_MAX_CONDITION_CHARACTERS: Final = 400

_KEYWORD: Final = re.compile(r"(?:^|(?<=[\s;&|(){}]))(while|until)(?=\s)")
_CONDITION: Final = re.compile(
    r"\s{1,40}+(?P<negated>!\s{1,40}+)?"
    r"(?P<test>\[\[[^\n]*?\]\]|\[\s[^\n]*?\s\]|test\s[^\n;]*+|\(\([^\n]*?\)\))"
    r"(?P<more>[^\n;]*+)[;\n]\s*+do\b"
)
_DO_OR_DONE: Final = re.compile(r"(?<![\w$./-])(do|done)(?![\w./=-])")
_QUOTED_OR_COMMENT: Final = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<![^\s;&|()])#[^\n]*""", re.DOTALL)
_NUMERIC: Final = r"-(?:lt|le|gt|ge|eq|ne)\b"
_OPERAND: Final = r"[\"']?\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})[\"']?"
_COMPARED_VARIABLE: Final = re.compile(rf"{_OPERAND}(?=\s+{_NUMERIC})|{_NUMERIC}\s+{_OPERAND}")
_EXPANDED_VARIABLE: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_SET_OPTIONS: Final = re.compile(r"(?:^|(?<=[\s;&|(){}]))set((?:[ \t]+[-+]?\w+)+)")
_STARTED_WITH_NOUNSET: Final = re.compile(r"(?:\S*/)?(?:ba|da|k|z)?sh\n(?:-\w+\n)*?-[a-tv-zA-Z]*u\w*\n")
_SOURCES_OTHER_FILE: Final = re.compile(r"(?m)(?:^|[;&|({\s])(?:source|eval|\.)\s+\S")
_SET_BY_SHELL: Final = frozenset({"SECONDS", "RANDOM", "EPOCHSECONDS", "LINENO", "UID", "EUID", "PPID", "OPTIND"})
_ASSIGNING_COMMANDS: Final = (
    r"(?:read|for|select|let|declare|typeset|export|local|readonly|getopts|mapfile|readarray|printf\s+-v)"
)
_COMMAND_TAIL: Final = r"[^\n;]{0,200}?"  # rest of a command


class UnsetCounter(NamedTuple):
    name: str
    ends_script: bool  # `set -u`: the shell ends the script; otherwise the test fails and the loop is skipped


class _ShellLoop(NamedTuple):
    keyword: str  # while or until
    condition: re.Match[str]
    start: int
    body: int  # where the body starts


def find_unset_counters(script: str) -> Iterator[UnsetCounter]:
    """Yield counters that a loop compares and sets only in its own body, so that they are unset the first time."""
    if len(script) > MAX_SCRIPT_CHARACTERS:
        return
    text = _strip_comments(script.replace("\\\n", " "))
    if _SOURCES_OTHER_FILE.search(text):
        return
    nounset = _find_nounset_changes(text)
    examined: set[tuple[int, str]] = set()
    reported: set[str] = set()
    for loop in _find_loops(text):
        end = _find_loop_end(text, loop.body)
        outside, body = text[: loop.start] + "\n" + text[end:], text[loop.body : end]
        ends_script = next((is_on for position, is_on in reversed(nounset) if position < loop.start), False)
        for name in _list_required_variables(loop, ends_script=ends_script):
            if len(examined) >= _MAX_VARIABLES:
                return
            examined.add((loop.start, name))
            if name not in reported and _is_set(name, body) and not _is_set(name, outside):
                reported.add(name)
                yield UnsetCounter(name, ends_script)


def _strip_comments(text: str) -> str:
    """Remove comments; a `#` inside quotes does not start one."""
    return _QUOTED_OR_COMMENT.sub(lambda match: "" if match[0].startswith("#") else match[0], text)


def _find_loops(text: str) -> Iterator[_ShellLoop]:
    for keyword in islice(_KEYWORD.finditer(text), _MAX_LOOPS):
        end = min(keyword.end() + _MAX_CONDITION_CHARACTERS, len(text))
        condition = _CONDITION.match(text, keyword.end(), end)
        if condition:
            yield _ShellLoop(keyword[1], condition, keyword.start(), condition.end())


def _find_nounset_changes(text: str) -> list[tuple[int, bool]]:
    """Where `set -u` is turned on or off, in the order of the script."""
    changes = [(-1, True)] if _STARTED_WITH_NOUNSET.match(text) else []
    for match in _SET_OPTIONS.finditer(text):
        words = match[1].split()
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word[0] in "-+" and ("u" in word or (word.endswith("o") and following == "nounset")):
                changes.append((match.start(), word[0] == "-"))
    return changes


def _list_required_variables(loop: _ShellLoop, *, ends_script: bool) -> list[str]:
    """Variables that make the loop fail if they are not set."""
    test, more = loop.condition["test"], loop.condition["more"]
    if ends_script:
        names = [plain or braced for plain, braced in _EXPANDED_VARIABLE.findall(test)]
    elif loop.keyword == "until" or loop.condition["negated"] or not test.startswith(("[ ", "[\t", "test")):
        return []  # the loop runs, and an unset variable counts as 0: `[[` and `((` do that too
    elif "||" in more or "||" in test or " -o " in test:
        return []
    else:
        names = [next(filter(None, groups)) for groups in _COMPARED_VARIABLE.findall(test)]
    return [name for name in dict.fromkeys(names) if name not in _SET_BY_SHELL]


def _is_set(name: str, text: str) -> bool:
    word = rf"(?<![\w$]){name}(?!\w)"
    patterns = (
        rf"(?<![\w$-]){name}(?:\[[^\]\n]{{0,200}}\])?\+?=",
        rf"\b{_ASSIGNING_COMMANDS}\b{_COMMAND_TAIL}{word}",
        rf"\(\([^\n]{{0,200}}?{word}\s*+(?:\+\+|--|[-+*/%]?=(?!=))",
        rf"(?:\+\+|--){word}",
        rf"\$\{{{name}:?=",
    )
    return any(re.search(pattern, text) for pattern in patterns)


def _find_loop_end(text: str, start: int) -> int:
    """Return the offset after the `done` that closes the loop whose body starts at `start`."""
    depth = 1
    for match in _DO_OR_DONE.finditer(text, start):
        depth += 1 if match[1] == "do" else -1
        if depth == 0:
            return match.end()
    return len(text)
