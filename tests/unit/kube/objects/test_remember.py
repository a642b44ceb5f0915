"""What strangers send is not kept: thousands of long texts would fill the memory."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from argosy.errors import ArgosyError
from argosy.kube.objects.text_cache import LONGEST, remembered
from argosy.kube.patch import path_elements
from argosy.kube.schema import name_syntax, quantity, selectors
from argosy.kube.schema.crd import patterns
from argosy.kube.schema.defaults.pod import pull_policy
from argosy.sandbox.apiserver.http.content_negotiation import form_for, media_ranges
from argosy.sandbox.apiserver.http.request import parsed_query

LONG = 100_000
FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "a name": name_syntax.dns_subdomain,
    "a label's name": name_syntax.dns_label,
    "a label's key": name_syntax.qualified_name,
    "a label's value": name_syntax.label_value,
    "a key of data": name_syntax.config_key,
    "a quantity": lambda text: quantity.read(text[:-1].replace("x", "1")),
    "a label selector": lambda text: selectors.labels(f"a={text}"),
    "a field selector": lambda text: selectors.fields(f"metadata.name={text}"),
    "a pattern's text": lambda text: patterns.matches("^a$", text),
    "an Accept header": form_for,
    "media ranges": media_ranges,
    "a query": lambda text: parsed_query(f"a={text}".encode()),
    "an image": pull_policy,
    "a field of managedFields": lambda text: path_elements.canonical(f"f:{text}"),
    "the rank of a field": lambda text: path_elements.rank(f"f:{text}"),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_long_texts_do_not_stay_in_memory(function: Callable[[str], Any]) -> None:
    def send(letter: str) -> None:
        for number in range(20):
            with contextlib.suppress(ArgosyError, ValueError):
                function(f"{letter}{number}" + "x" * LONG)

    send("a")
    tracemalloc.start()
    try:
        send("b")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 5 * LONG


def test_short_texts_are_answered_once() -> None:
    asked: list[str] = []

    @remembered(10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for _ in range(3):
        assert length("a") == 1
        assert length("b" * LONGEST) == LONGEST
        assert length("c" * (LONGEST + 1)) == LONGEST + 1
    assert [text[0] for text in asked] == ["a", "b", "c", "c", "c"]
