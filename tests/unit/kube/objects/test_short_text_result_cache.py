"""Result caches keep only short texts, so that many long texts from clients do not fill the memory."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from argosy.errors import ArgosyError
from argosy.kube.objects.short_text_result_cache import MAX_CACHED_TEXT_LENGTH, cache_short_texts
from argosy.kube.patch import fields_v1_path_elements
from argosy.kube.schema import name_label_address_syntax, quantity, selectors
from argosy.kube.schema.defaults.pod import default_pull_policy
from argosy.languages import go_regexp
from argosy.sandbox.apiserver.http.content_negotiation import negotiate_format, parse_accept_header
from argosy.sandbox.apiserver.http.request_and_response_io import parse_query

LONG = 100_000
FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "a name": name_label_address_syntax.check_dns_subdomain,
    "a label's name": name_label_address_syntax.check_dns_label,
    "a label's key": name_label_address_syntax.check_qualified_name,
    "a label's value": name_label_address_syntax.check_label_value,
    "a key of data": name_label_address_syntax.check_config_key,
    "a quantity": lambda text: quantity.read(text[:-1].replace("x", "1")),
    "a label selector": lambda text: selectors.parse_label_selector(f"a={text}"),
    "a field selector": lambda text: selectors.parse_field_selector(f"metadata.name={text}"),
    "a pattern's text": lambda text: go_regexp.matches("^a$", text),
    "an Accept header": negotiate_format,
    "media ranges": parse_accept_header,
    "a query": lambda text: parse_query(f"a={text}".encode()),
    "an image": default_pull_policy,
    "a field of managedFields": lambda text: fields_v1_path_elements.canonicalize(f"f:{text}"),
    "the rank of a field": lambda text: fields_v1_path_elements.element_sort_key(f"f:{text}"),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_long_texts_are_not_cached(function: Callable[[str], Any]) -> None:
    def send(letter: str) -> None:
        for number in range(20):
            with contextlib.suppress(ArgosyError, ValueError):
                function(f"{letter}{number}" + "x" * LONG)

    send("a")
    tracemalloc.start()
    try:
        send("b")
        traced_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert traced_bytes < 5 * LONG


def test_only_results_for_short_texts_are_cached() -> None:
    calls: list[str] = []

    @cache_short_texts(10)
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    for _ in range(3):
        assert length("a") == 1
        assert length("b" * MAX_CACHED_TEXT_LENGTH) == MAX_CACHED_TEXT_LENGTH
        assert length("c" * (MAX_CACHED_TEXT_LENGTH + 1)) == MAX_CACHED_TEXT_LENGTH + 1
    assert [text[0] for text in calls] == ["a", "b", "c", "c", "c"]
