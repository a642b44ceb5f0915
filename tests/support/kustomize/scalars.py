"""Generates unusual YAML. In: a random source. Out: the text of a manifest. Never: more than one oddity per line."""

from __future__ import annotations

import random

SCALARS = [
    "yes", "no", "on", "off", "y", "n", "True", "FALSE", "null", "~", "Null", "", "''", '""', "0644", "0o14", "0x1F",
    "0b11", "1_000", "1.0", "1e3", "1e400", "-0", "+1", ".5", "5.", "1.50", "1e-7", "123456789012345678901234567890",
    "18446744073709551615", "9223372036854775808", "-9223372036854775809", "2020-01-01", "2020-01-01T00:00:00Z",
    "2020-1-1", "2020-01-01 10:00:00", "2001-12-14t21:59:43.10-05:00", "12:30:45", "1:20", "=", "'a''b'",
    '"a\\tb\\u00e9"', "a # no", "a#b", "'#'", "x: y" , "[a, b]", "{a: b, c}", "[]", "{}", "!!str 5", "!!int '5'",
    "!!float 5", "! 5", "!custom x", "!!binary YWI=", "!!null ''", "&z zed", "@x", "%x", "`x", "*z", "0777", "08",
    "0o8",
    "1__0", "_1", "1_", "0x", "-", "--- x", "...", "? x", "é", "\u2028x", '"\\x07"', "'multi\n    line'",
    '"multi\n    line"', "plain\n    multi\n    line", "|\n    a\n     b\n    c\n", "|-\n    a\n\n    b\n",
    "|+\n    a\n\n",
    ">\n    a\n    b\n\n    c\n      d\n    e\n", ">-\n    a\n      b\n    c\n", ">+\n    a\n\n    b\n\n",
    "|2\n      a\n",
    ">2\n      a\n     b\n", "|\n\n    a\n", ">\n\n    a\n\n\n    b\n", "|\n    \ttab\n", "1e21", "1e20",
    "100000000000000000000000",
    "0.1", "1e+2", "12e03", "-2E+05", "+.inf", ".NaN", ".inf", "0.0", "-0.0", "1.0e10", "685_230.15", "190:20:30",
]  # fmt: skip
KEYS = [
    "plain",
    "'quoted'",
    '"dq"',
    "5",
    "true",
    "null",
    "1.5",
    "? complex",
    "<<",
    "a b",
    "2020-01-01",
    "yes",
    "0x1",
    "~",
    "é",
]
EXTRA = [
    "base: &base {x: '1', y: '2'}\nmore:\n  <<: *base\n  y: '3'\n",
    "base: &base\n  x: '1'\nmore:\n  <<: [*base, {z: '5'}]\n",
    "base: &base\n  x: '1'\nmore:\n  y: '1'\n  <<: *base\n  x: '2'\n",
    "list: &l [a, b]\nother: *l\n",
    "list:\n- &e {name: a}\n- *e\n",
    "nulls:\n  a:\n  b: null\n  c: ~\n  d: ''\n  e: [null, ~]\n",
    "nulls:\n  a:\n  b: {}\n  c: []\n",
    "deep: [[1, 2], [[3]], {a: [b]}]\n",
    "dup: 1\ndup: 2\n",
    "seq:\n- a\n-   b\n- - c\n  - d\n- {e: f}\n-\n- ~\n",
    "# a comment\nafter: x # trailing\n",
    "tabbed:\tx\n",
    "crlf: x\r\nnext: |\r\n  a\r\n  b\r\n",
    "empty:\n",
    "long: >\n  aaa bbb\n  ccc\n   ddd\n  eee\n\n\n  fff\n",
    "script: |\n  #!/bin/sh\n  echo $(V1) $$(V1)\n    indented\n  trailing \n",
    "? a\n: b\n",
    "flow: {a: , b: 1, 'c': [x, ], d}\n",
    "...\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n",
    "--- # next\n# only a comment\n---\n",
]


def odd_text(rng: random.Random, name: str) -> str:
    """Generate a manifest with unusual scalars: a ConfigMap, or a custom resource with unusual fields."""
    if rng.random() < 0.5:
        entries = "".join(f"  k{at}: {rng.choice(SCALARS)}\n" for at in range(rng.randint(1, 4)))
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{entries}"
    if rng.random() < 0.3:
        note = f"  annotations:\n    n: {rng.choice(SCALARS[:60])}\n  labels:\n    {rng.choice(KEYS)}: x\n"
        return f"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: {name}\n{note}"
    extra = "".join(rng.sample(EXTRA, rng.randint(1, 2)))
    return f"%YAML 1.1\n---\n{_head(name)}{extra}" if rng.random() < 0.05 else _head(name) + extra


def _head(name: str) -> str:
    return f"apiVersion: x.io/v1\nkind: Thing\nmetadata:\n  name: {name}\n"
