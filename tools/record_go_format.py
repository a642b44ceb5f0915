"""Records how Go's fmt package prints JSON values, for tests/unit/kube/objects/test_go_format.py.

In: the values below, and random numbers and texts by a fixed seed. Out: tests/data/go-format.json.
Development only, needs Go. Run after a change of the lists: python tools/record_go_format.py
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "tests" / "data" / "go-format.json"
RANDOM_VALUES = 150
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 9007199254740993, -(2**63), "", "a", "a b", "%d", "'a'", "`a`", "<&>", 'a"b', "a\\b",
    *(f"a{chr(code)}b" for code in [*range(32), 127]),
    *(f"a{chr(code)}" for code in (0x80, 0x9F, 0xA0, 0xAD, 0xE9, 0x301, 0x378, 0x65E5, 0x200B, 0x2028, 0x3000)),
    *(chr(code) for code in (0xE000, 0xFEFF, 0xFFFD, 0xFFFE, 0x1F600, 0xE0001, 0x10FFFF)),
    0.5, -0.5, 1.0, -0.0, 0.1, 1.5, 100000.0, 123456.5, 999999.0, 1000000.0, 1234567.5, 123456789.0, 1e20, 1e21, 1e22,
    0.001, 0.0001, 0.00012, 0.00001, 1e-7, 5e-324, 1.7976931348623157e308, 2147483647.0, -2147483648.0,
    [], {}, [[]], [{}], [None], [1, "a", None, 1.5, True, [2], {"a": None}],
    {"b": 1, "a": [1, "x y"], "c": {"d": None}},
    {"a b": "c:d", "x\ty": "\n", "é": 1e21, '"': 2.0},
]  # fmt: skip


def build_random_values() -> list[Any]:
    rng = random.Random(22)
    floats = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(RANDOM_VALUES)]
    decimals = [round(rng.uniform(-1, 1) * 10 ** rng.randint(-8, 12), rng.randint(0, 6)) for _ in range(RANDOM_VALUES)]
    texts = ["".join(chr(rng.choice((rng.randrange(0x250), rng.randrange(0xD800)))) for _ in range(3))
             for _ in range(RANDOM_VALUES)]  # fmt: skip
    return [value for value in floats if value - value == 0] + decimals + texts


def main() -> None:
    lines = [json.dumps(value) for value in [*VALUES, *build_random_values()]]
    command = ["go", "run", str(ROOT / "tools" / "go_format" / "main.go")]
    rows = subprocess.run(command, input="\n".join(lines), capture_output=True, check=True, text=True).stdout
    version = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    ascii_rows = (json.dumps(json.loads(row)) for row in rows.split("\n") if row)
    RECORD.write_text(f'{{"go": "{version}",\n"rows": [\n' + ",\n".join(ascii_rows) + "\n]}\n")


if __name__ == "__main__":
    main()
