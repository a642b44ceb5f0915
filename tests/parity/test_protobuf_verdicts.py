"""Mutated protobuf bodies: decoded or rejected as by Kubernetes' own decoder (tools/protobuf_verdicts)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from argosy.errors import ManifestError
from argosy.kube.schema import protobuf_envelope

TABLE = Path(__file__).parents[1] / "data/protobuf/verdicts.txt"
NO_OBJECT = ("refused", "unwritable")  # an object that Go decodes but cannot write as JSON could not be stored either
GROUP = re.compile(r"illegal wireType [34]$")  # Go skips unknown groups; no client writes any


def verdict(body: bytes) -> str:
    try:
        value = protobuf_envelope.decode(body).value
    except ManifestError as error:
        return "group" if GROUP.search(str(error)) else "refused"
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_every_recorded_body_is_decoded_or_rejected_as_by_kubernetes() -> None:
    rows = [line.split(" ") for line in TABLE.read_text().splitlines()]
    assert len(rows) == 600
    differing = []
    for recorded_verdict, encoded in rows:
        ours = verdict(base64.b64decode(encoded))
        if ours != "group" and ours != ("refused" if recorded_verdict in NO_OBJECT else recorded_verdict):
            differing.append((recorded_verdict, ours, encoded))
    assert differing == []
