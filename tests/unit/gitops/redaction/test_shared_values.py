"""A value that thousands of Secrets share costs as much per Secret as a unique value."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin, SecretScope
from argosy.observability.redaction.secret_search import SecretSearch, _OriginCounts
from support.counted_calls import calls_of
from support.page_site import StillLookout

VALUE = "Zx81kQpLm03vBn7RtYw-shared"
LABEL = {"argocd.argoproj.io/secret-type": "repository"}


def secret(namespace: str, name: str = "pull", value: str = VALUE, project: str = "") -> dict[str, Any]:
    texts = {"token": value} | ({"project": project} if project else {})
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    metadata = {"name": name, "namespace": namespace, "resourceVersion": "1", "labels": LABEL if project else {}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def key(namespace: str, name: str = "pull") -> ResourceKey:
    return ResourceKey("", "Secret", namespace, name)


class CountedOrigin(SecretOrigin):
    """An origin that counts how often it is hashed or compared."""

    operations = 0

    def __hash__(self) -> int:
        CountedOrigin.operations += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        CountedOrigin.operations += 1
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        CountedOrigin.operations += 1
        return super().__ne__(other)


class CountedName(str):
    """A namespace name that counts the same operations: most origins differ only in it."""

    __slots__ = ()

    def __hash__(self) -> int:
        CountedOrigin.operations += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        CountedOrigin.operations += 1
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        CountedOrigin.operations += 1
        return super().__ne__(other)


@pytest.fixture(params=["", "team"])
def project(request: pytest.FixtureRequest) -> str:
    """Without a project, and with a separate project for each namespace."""
    return str(request.param)


def count_operations(number: int, project: str) -> int:
    """Return the operations to add that many Secrets with one value, and to remove them in the same order."""
    CountedOrigin.operations = 0
    secrets = [secret(f"n{index}") for index in range(number)]
    needles = SecretSearch(
        lambda: secrets, lambda key: CountedOrigin(CountedName(key.namespace), project and f"{project}-{key[2]}")
    )
    needles.update_index()
    for index in range(number):
        needles.on_change(key(f"n{index}"), None)
        needles.update_index()
    assert len(needles) == 0
    return CountedOrigin.operations


def test_work_for_a_shared_value_grows_linearly_with_its_secrets(project: str) -> None:
    few, many = count_operations(100, project), count_operations(400, project)
    assert many <= 4.2 * few
    assert few >= 100, "nothing is counted"


def test_operation_count_detects_quadratic_copying(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same count for a structure that is quadratic on purpose."""
    add = _OriginCounts.add

    def copying(self: _OriginCounts, origin: Any) -> None:
        self.by_namespace, self.others = dict(list(self.by_namespace.items())), dict(list(self.others.items()))
        add(self, origin)

    monkeypatch.setattr(_OriginCounts, "add", copying)
    few, many = count_operations(100, project), count_operations(400, project)
    assert many > 4.2 * few


def test_secret_with_a_known_value_is_added_in_place() -> None:
    secrets = [secret("n1"), secret("n2")]
    needles = SecretSearch(lambda: secrets, lambda key: SecretOrigin(key.namespace))
    needles.update_index()
    owners = needles._origins[VALUE.encode()]
    needles.on_change(key("n3"), secret("n3"))
    needles.update_index()
    assert needles._origins[VALUE.encode()] is owners, "a copy of the owners for each Secret is quadratic"
    assert needles.list_origins(VALUE.encode(), ["n3"]) == [SecretOrigin("n3")]


def shared_by(number: int) -> SecretMask:
    return build_mask(StillLookout([secret(f"n{index}") for index in range(number)]), "argocd")


@pytest.mark.parametrize(("namespace", "is_hidden"), [("n7", True), ("elsewhere", False)])
def test_masking_a_shared_value_costs_the_same_for_any_number_of_secrets(namespace: str, is_hidden: bool) -> None:
    counts = set()
    for number in (10, 400):
        mask = shared_by(number).for_scope(SecretScope("team", frozenset({namespace})))
        hidden = mask.mask_text(f"login with {VALUE}")
        assert (VALUE not in hidden) is is_hidden
        counts.add(calls_of(mask.mask_text, f"login with {VALUE}"))
    assert len(counts) == 1, "work by number of Secrets"


def test_shared_value_of_repositories_has_one_origin_per_project() -> None:
    repositories = [secret("argocd", f"repo-{number}", project=f"p{number % 3}") for number in range(90)]
    mask = build_mask(StillLookout(repositories), "argocd")
    origins = mask.search.list_origins(VALUE.encode(), [])
    assert sorted(origin.project for origin in origins if origin) == ["p0", "p1", "p2"]


def test_value_is_masked_until_its_last_secret_in_the_namespace_is_gone() -> None:
    lookout = StillLookout([secret("web"), secret("web", "copy"), secret("other")])
    mask = build_mask(lookout, "argocd")
    web = mask.for_scope(SecretScope("team", frozenset({"web"})))
    for name, is_hidden in (("pull", True), ("copy", False)):
        mask.search.on_change(key("web", name), None)
        assert (VALUE not in web.mask_text(VALUE)) is is_hidden
    assert VALUE not in mask.for_scope(SecretScope("team", frozenset({"other"}))).mask_text(VALUE)


def test_password_in_an_application_url_moves_with_its_project() -> None:
    def application(project: str) -> dict[str, Any]:
        source = {"repoURL": f"https://bot:{VALUE}@git.example.com/r"}
        metadata = {"name": "shop", "namespace": "argocd"}
        return {
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
            "spec": {"project": project, "source": source},
        }  # fmt: skip

    lookout = StillLookout([application("before")])
    mask = build_mask(lookout, "argocd")
    assert VALUE not in mask.for_scope(SecretScope("before")).mask_text(VALUE)
    lookout.put(application("after"))
    assert VALUE not in mask.for_scope(SecretScope("after")).mask_text(VALUE)
    assert VALUE in mask.for_scope(SecretScope("before")).mask_text(VALUE)


def tokens(number: int) -> Iterator[dict[str, Any]]:
    return (secret("web", f"t{index}", f"eyJhbGciOiJSUzI1NiJ9.{index:06}") for index in range(number))


def test_index_is_empty_after_all_tokens_with_a_common_prefix_are_gone() -> None:
    needles = SecretSearch(lambda: tokens(50))
    needles.update_index()
    for index in range(50):
        needles.on_change(key("web", f"t{index}"), None)
    assert len(needles) == 0 and needles._by_word == {}
