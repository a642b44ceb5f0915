"""Redacts what API servers and their admission webhooks quote of a Secret that they refuse. Pure.

In: an error and the manifest that was sent. Out: the error without the values of that Secret. Never: changes errors of
other kinds; I/O.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import ClusterError
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import SECRET
from argosy.observability.redaction import MASK
from argosy.observability.redaction.text_redaction import MIN_KNOWN_CHARACTERS, ValueRedactor, list_json_forms

_QUOTED_OBJECT: Final = re.compile(r'patch: Invalid value: ".*"', re.DOTALL)


def redact_secret_error(error: ClusterError, manifest: Manifest) -> ClusterError:
    """Return the error without values of the manifest if it is a Secret; otherwise the same error."""
    if key_of(manifest).group_kind != SECRET:
        return error
    # k8s: the API server quotes the whole patch if it does not fit the type.
    message = _QUOTED_OBJECT.sub("patch: Invalid value", error.message)
    forms = {form for value in _list_values(manifest) for form in list_json_forms(value)}
    message = ValueRedactor((form for form in forms if len(form) >= MIN_KNOWN_CHARACTERS), MASK).redact_text(message)
    redacted = copy.copy(error)
    redacted.message, redacted.args, redacted.details = message, (message,), None
    return redacted


def _list_values(manifest: Manifest) -> Iterator[str]:
    """Yield the values of a Secret, those in `data` also decoded."""
    yield from _list_texts(manifest.get("stringData"))
    for text in _list_texts(manifest.get("data")):
        yield text
        with contextlib.suppress(ValueError):  # it is not base64 of text, so nothing quotes it as text
            yield base64.b64decode(text, validate=True).decode()


def _list_texts(values: Any) -> list[str]:
    return [str(value) for value in values.values() if value is not None] if isinstance(values, dict) else []
