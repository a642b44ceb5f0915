"""Records what Kubernetes' own decoder makes of mutated protobuf bodies, for tests/parity/test_protobuf_verdicts.py.

In: the program of main.go beside this file, built by Go with k8s.io/client-go 0.32.
Out: tests/data/protobuf/verdicts.txt.
Run: PYTHONPATH=tests:src python tools/protobuf_verdicts/record.py PROGRAM
"""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from pathlib import Path

from support.protobuf_mutations import mutated_messages, real_messages

COUNT = 600
MAX_BYTES = 400  # the table is kept in Git
SEED = 32
TABLE = Path(__file__).parents[2] / "tests/data/protobuf/verdicts.txt"


def main() -> None:
    others = [message for message in real_messages() if b"apiregistration" not in message]  # not in client-go's scheme
    small = [message for message in others if len(message) <= MAX_BYTES]
    mutated = [body for body in mutated_messages(random.Random(SEED), small, COUNT * 3) if len(body) <= MAX_BYTES]
    bodies = [base64.b64encode(body).decode() for body in [*small, *mutated][:COUNT]]
    done = subprocess.run([sys.argv[1]], input="\n".join(bodies), capture_output=True, text=True, check=True)
    rows = [f"{verdict} {body}\n" for verdict, body in zip(done.stdout.split("\n"), bodies, strict=False)]
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text("".join(rows))


if __name__ == "__main__":
    main()
