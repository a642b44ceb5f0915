# ruff: noqa: E501 - tables
"""Records what Go's regexp says about patterns, for tests/unit/kube/schema/crd/test_go_patterns.py, and what it finds,
replaces and splits, for tests/unit/languages/test_go_regexp_replacement.py.

In: the patterns and texts below, and random ones by a fixed seed. Out: tests/data/go-patterns.json and
tests/data/go-regexp-replacements.json.
Development only, needs Go. Run after a change of the lists: python tools/record_go_patterns.py
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "go-patterns.json"
REPLACEMENTS_RECORD = ROOT / "tests" / "data" / "go-regexp-replacements.json"
RANDOM_PATTERNS = 700
RANDOM_REPLACEMENTS = 120
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "aab",
    "aba",
    "b1",
    "a\n",
    "\n",
    "a b",
    "é",
    "Éa",
    "日本",
    "٣",
    "ſ",
    "K",
    "_",
    "-",
    "]",
    "{2}",
    "\\",
    "1.5",
]

# Catastrophic in an engine that backtracks.
BACKTRACKING = [
    "(a+)+$", "^(a+)+$", "(a*)*b", "(a|a)*b", "(a|aa)+$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y",
    "([a-zA-Z]+)*$", "^(a?){25}a{25}$", "(.*a){20}", r"^(\w+\s?)*$", r"^([^@\s]+)+@$",
]  # fmt: skip
# What Go has and Python does not, or writes otherwise.
GO_SYNTAX = [
    r"\pL", r"^\pL+$", r"\PL", r"\p{L}", r"\p{Lu}", r"^\p{Greek}+$", r"\p{Han}", r"\P{Han}", r"\p{^L}", r"\pN", r"[\pL\d]", r"[^\pL]",
    r"(?i)a", r"(?i:a)b", r"a(?i)b", r"(?i)é", r"(?i)k", r"(?i)s", r"(?s).", r"^(?s).$", r"(?m)^$", r"(?m)a$", r"(?U)a+", r"(?U)a+?$",
    r"(?i-s)a.", r"(?is-m:A.)", r"\Aa", r"a\z", r"^a\z", r"\z", "[[:alpha:]]", "[[:^alpha:]]", "^[[:word:]]+$", "[[:digit:][:space:]]",
    "[[:ascii:]]", "[^[:ascii:]]", "[[:xdigit:]]", "(?P<n>a)", "(?P<n>a)(?P<m>b)", "(?<n>a)", r"\Qa.b\E", r"\Q1.5\E", r"\Q1.5", r"a\Q\E*",
    r"\Q[\E", r"\x41", r"\x{e9}", r"\x{65E5}", r"\101", r"\07", r"\a", r"\f", r"\v", r"\t", r"\n", r"\r", r"\d", r"\D", r"\w", r"\W", r"\s",
    r"\S", r"\b", r"\B", r"^\d$", r"^\w$", r"^\w+$", r"\bb", r"a\b", r"é\b", r"\Bb", r"[\d\s]", r"[^\d\s]", r"[\D]", r"[^\W]", r"\_", r"\-", r"\!",
    r"\<", r"\>", r"\@", r"a{2}", r"a{1,2}b", r"a{,2}", r"^a{0}$", r"{", r"a{", r"a{a}", r"{2}", r"a{2", r"x{2,1}", r"]", r"}", r"a}", r"[]a]", r"[^]a]",
    r"[a-]", r"[-a]", r"[a\]]", r"[a\-z]", r"[&&a]", r"[a&&b]", r"[a~~b]", r"[a--b]", r"[[a]]", r"[[a]b]", r"a|", r"|", r"()", r"(|a)", r"(?:)", r"(?i)",
    r"a*?", r"a+?", r"a??", r"a{1,2}?", r"^*", r"$*", r"(^)*", r"$a", r"a^", r"a$", "a$\n", r"\n$", r".", r"^.$", r"^..$", r"[^a]", r"^[^a]$", r"\x{10FFFF}", r"\C*",
    r"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", r"^(\+|-)?[0-9]+$", r"(a){1000}", r"\pL{100}", r"^.{0,1000}$", r"(?i)[k-s]", r"[K-\x{212A}]", r"(((((a)))))",
]  # fmt: skip
# What Go refuses, though Python, PCRE or Rust take it; and what nobody takes.
REFUSED = [
    r"(?=a)b", r"a(?=b)", r"(?!a)", r"(?<=a)b", r"(?<!a)b", r"(?>a)", r"(a)\1", r"(?P<n>a)(?P=n)", r"\k<n>", r"(?(1)a|b)", r"(?#c)", r"(?x)a b",
    r"(?a)a", r"(?L)a", r"(?u)a", r"a\Z", r"\G", r"\X", r"\R", r"\h", r"\N{DIGIT ONE}", r"\u0041", r"\U00000041", r"\cA", r"\e", r"\y", r"\i", r"\8", r"\1",
    r"a**", r"a*+", r"a++", r"a?+", r"a+*", r"a{2}{3}", r"a{2}*", r"a{1}+", r"*", r"+a", r"?", r"(*)", r"(+a)", r"|*", r"(?i)*", r"^(*a)", r"a{1001}", r"a{1,1001}",
    r"(a{1000}){1000}", r"(a{100}){11}", r"((a{10}){10}){11}", r"a{2,1}", r"(", r")", r"a)", r"(a", r"(?", r"(?P", r"(?P<", r"(?P<n", r"(?P<n>", r"(?P<>a)",
    r"(?P<1 >a)", r"(?P<n>a)(?P<n>b)", r"(?i", r"(?i-)a", r"(?-)a", r"(?i--s)", r"(?z)", r"[", r"[a", r"[]", r"[^]", r"[^", r"[z-a]", r"[a-\d]", r"[\d-z]", r"[[:foo:]]",
    r"[[:alpha:]-z]", r"[[.a.]]", r"[[=a=]]", r"[a\z]", r"[\b]", r"[\Q]\E]", r"\p", r"\pX", r"\p{", r"\p{L", r"\p{Foo}", r"\p{IsGreek}", r"\p{Script=Greek}", r"\p{Alphabetic}",
    r"\P{}", r"[\p{Foo}]", r"\x", r"\x4", r"\xZZ", r"\x{", r"\x{}", r"\x{110000}", r"\x{zz}", "\\", "a\\", "[\\", r"\Q\E*", r"\b{start}", r"\b+", r"(?<n", r"(?<n>",
    r"(?'n'a)", r"(?|a)", r"(?&n)", r"(?R)", r"(?1)", r"\g1", r"\K", r"a{99999999999}", "(" * 1001 + ")" * 1001, r"((?i)a", r"x{0,2000}",
]  # fmt: skip
PIECES = [
    *"aAbz019_-.^$|()[]*+?{},:\\é\n", "(?:", "(?i)", "(?s)", "(?P<n>", "[a-c]", "[^a]", "[[:alpha:]]", "{2}", "{1,}", "{0,3}", "{,2}", "\\d", "\\w",
    "\\W", "\\s", "\\b", "\\B", "\\pL", "\\p{Lu}", "\\.", "\\-", "\\A", "\\z", "\\Z", "\\Q", "\\E", "\\1", "\\x41", "\\x{e9}", "*?", "+?", "&&", "[a", "b]", "(?=", "[\\d-",
]  # fmt: skip

# For finding, replacing and splitting: patterns with groups and with empty matches, and templates of replacements.
REPLACED_PATTERNS = [
    "a(b)", "(a)(b)?", "(?P<x>a+)(?P<y>b*)", "", "a*", "b*", "(|a)", "a|", "^", "$", r"\b", "(?m)^", "(?m)$", "x*", ".", "(?s).", r"(\w+) (\w+)",
    "(a*)(b*)", "[,;] *", r"\d+", "é*", "(é|日)", r"\z", "(a(b(c)))", "(?i)A", "b|(a)", r"\s*", "a.b",
]  # fmt: skip
REPLACED_TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "aab abc",
    "xaby",
    "a,b; c",
    "éa日本",
    "1.5 $x",
    "one two\nthree\n",
    "(a+b)*[c]{2}|^$\\?-/é",
]
TEMPLATES = [
    "", "x", "$", "$$", "$1", "${1}", "$0", "<$1>", "$1x", "${1}x", "$x", "${x}", "$y-$x", "$2$1", "${2", "$(1)", "$-", "$1_", "${1}_", "$01", "${01}",
    "$9", "$999999999999", "a$", "$$1", "$$$1", "${}", "${ 1}", "$é", "$1é", "${x}${y}", "\\1", "$1$", "日$1",
]  # fmt: skip
REPLACED_PIECES = [
    "a",
    "b",
    "(a)",
    "(b|c)",
    "(a|)",
    "(?P<x>b)",
    "é",
    " ",
    ".",
    r"\w",
    r"\b",
    "[^a]",
    "^",
    "$",
    "(?:a|ab)",
    "日",
]
REPLACED_ENDS = ["", "", "*", "+", "?", "*?", "{2}"]


def random_patterns() -> list[str]:
    """Short random patterns; half of them with balanced brackets, so that many compile."""
    rng = random.Random(20)
    patterns: dict[str, None] = {}
    while len(patterns) < RANDOM_PATTERNS:
        body = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7)))
        patterns[body if len(patterns) % 2 else f"^({body})$"] = None
    return list(patterns)


def random_replacements() -> list[tuple[str, str]]:
    """Patterns with a template each."""
    rng = random.Random(21)
    listed = [(pattern, template) for pattern in REPLACED_PATTERNS for template in rng.sample(TEMPLATES, 4)]
    for _ in range(RANDOM_REPLACEMENTS):
        pieces = (rng.choice(REPLACED_PIECES) + rng.choice(REPLACED_ENDS) for _ in range(rng.randint(1, 4)))
        pattern = "".join(pieces)
        if pattern.count("(?P<x>") < 2:
            listed.append((pattern, rng.choice(TEMPLATES)))
    return listed


def main() -> None:
    record_patterns()
    record_replacements()


def record_replacements() -> None:
    rows = [
        {"pattern": pattern, "texts": REPLACED_TEXTS, "template": template}
        for pattern, template in random_replacements()
    ]
    names = ("all", "replaced", "literal", "parts", "two_parts")
    lines = [
        json.dumps(
            [row["pattern"], row["template"], [[edit[name] for name in names] for edit in row["edits"]]],
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for row in run_go(rows)
        if "error" not in row
    ]
    quoted = run_go([{"pattern": "", "texts": REPLACED_TEXTS, "template": ""}])[0]["edits"]
    head = f'{{"go": "{go_version()}",\n"texts": {json.dumps(REPLACED_TEXTS)},\n'
    head += f'"quoted": {json.dumps([edit["quoted"] for edit in quoted])},\n"rows": [\n'
    REPLACEMENTS_RECORD.write_text(head + ",\n".join(lines) + "\n]}\n")


def run_go(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = ["go", "run", str(ROOT / "tools" / "go_patterns" / "main.go")]
    done = subprocess.run(command, input=json.dumps(rows).encode(), capture_output=True, check=True)
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def go_version() -> str:
    return subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()


def record_patterns() -> None:
    patterns = list(dict.fromkeys([*BACKTRACKING, *GO_SYNTAX, *REFUSED, *random_patterns()]))
    rows = [{"pattern": pattern, "texts": TEXTS} for pattern in patterns]
    lines = [
        json.dumps([row["pattern"], row.get("error") or [text for text, fits in zip(TEXTS, row["matches"]) if fits]])
        for row in run_go(rows)
    ]
    head = f'{{"go": "{go_version()}",\n"texts": {json.dumps(TEXTS)},\n"patterns": [\n'
    RECORD.write_text(head + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
