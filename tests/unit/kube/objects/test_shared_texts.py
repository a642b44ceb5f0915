"""Equal texts of manifests are stored once, and nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.objects import shared_texts
from argosy.kube.objects.shared_texts import SharedTexts

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=4), children, max_size=4),
    max_leaves=20,
)


def parse(manifest: dict[str, Any]) -> dict[str, Any]:
    """A fresh copy, in which no two texts are the same object."""
    copied: dict[str, Any] = orjson.loads(orjson.dumps(manifest))
    return copied


def test_equal_texts_of_two_manifests_are_one_object() -> None:
    texts = SharedTexts()
    manifest = {
        "spec": {"repoURL": "https://git.example/models"},
        "history": [{"revision": "abcdef"}],
        "tags": ["v1.2"],
    }
    first, second = parse(manifest), parse(manifest)
    texts.share(first)
    texts.share(second)
    assert first["spec"]["repoURL"] is second["spec"]["repoURL"]
    assert first["history"][0]["revision"] is second["history"][0]["revision"]
    assert first["tags"][0] is second["tags"][0]


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=5))
def test_no_value_and_no_type_changes(manifest: dict[str, Any]) -> None:
    texts, before = SharedTexts(), copy.deepcopy(manifest)
    texts.share(parse(manifest))
    texts.share(manifest)
    assert repr(manifest) == repr(before)  # repr tells 1, 1.0 and True apart


def test_mappings_are_not_shared() -> None:
    """A copy of a manifest in which two fields were one mapping would change both."""
    manifest = parse({"labels": {"app": "web"}, "matchLabels": {"app": "web"}})
    SharedTexts().share(manifest)
    assert manifest["labels"] is not manifest["matchLabels"]


def test_long_texts_and_many_texts_are_not_kept() -> None:
    texts = SharedTexts()
    texts.share({"data": "x" * (shared_texts.MAX_TEXT_LENGTH + 1)})
    assert len(texts) == 0
    texts.share({f"key-{number}": f"value {number}" for number in range(shared_texts.MAX_TEXTS + 10)})
    assert len(texts) <= shared_texts.MAX_TEXTS


def test_texts_of_a_secret_are_not_kept() -> None:
    texts = SharedTexts()
    last_applied = {"kubectl.kubernetes.io/last-applied-configuration": "of-a-test"}
    texts.share({"kind": "Secret", "metadata": {"annotations": last_applied}, "data": {"password": "b2YtYS10ZXN0"}})
    assert len(texts) == 0


def test_subclass_of_text_is_left_alone() -> None:
    class Marked(str):
        __slots__ = ()

    marked = Marked("web")
    manifest = {"name": "web", "label": marked}
    SharedTexts().share(manifest)
    assert manifest["label"] is marked
