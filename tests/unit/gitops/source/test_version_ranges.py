"""Version ranges over tags."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as some

from argosy.gitops.source.version_ranges import find_newest_tag, parse_range, parse_version

TAGS = ["v0.1.0", "v0.1.5", "v0.2.0", "1.0.0", "1.2.3", "1.2.9", "1.3.0-rc.1", "1.3.0", "2.0.0-alpha", "2.0.0", "notes"]

NEWEST = [
    ("1.2.x", "1.2.9"),
    ("1.2.*", "1.2.9"),
    ("1.x", "1.3.0"),
    ("1.*", "1.3.0"),
    ("v1.2.x", "1.2.9"),
    ("*", "2.0.0"),
    (">=1.0.0", "2.0.0"),
    (">=1.0.0 <2.0.0", "1.3.0"),
    (">=1.0.0, <1.3.0", "1.2.9"),
    (">= 1.0.0 , < 1.3.0", "1.2.9"),
    ("=>1.0 =<1.2", "1.2.9"),
    ("~1.2.3", "1.2.9"),
    ("~>1.2", "1.2.9"),
    ("~1", "1.3.0"),
    ("^1.2.3", "1.3.0"),
    ("^0.1.0", "v0.1.5"),
    ("^0.1", "v0.1.5"),
    ("^0", "v0.2.0"),
    ("^0.0.3", None),
    ("<1", "v0.2.0"),
    ("<=1", "1.3.0"),
    (">1", "2.0.0"),
    (">1.2", "2.0.0"),
    (">1.2 <2", "1.3.0"),
    ("!=2.0.0", "1.3.0"),
    ("!=2", "1.3.0"),
    ("1.0 - 1.2", "1.2.9"),
    ("1.0.0 - 1.2.5", "1.2.3"),
    ("<0.2 || >=1.2 <1.3", "1.2.9"),
    (">=1.3.0-0 <1.3.0", "1.3.0-rc.1"),
    ("<2.0.0", "1.3.0"),
    ("<2.0.0-0", "1.3.0"),
    ("<2.0.0-beta", "2.0.0-alpha"),
    (">=3", None),
    ("main", None),
    ("feature/1.x", None),
    ("1.2.x,", None),
    ("", None),
    ("1.2.3", "1.2.3"),
    ("v9.9.9", "v9.9.9"),
    ("1.2", "1.2"),
]


@pytest.mark.parametrize(("ref", "tag"), NEWEST)
def test_range_resolves_to_its_newest_tag(ref: str, tag: str | None) -> None:
    assert find_newest_tag(ref, TAGS) == tag


def test_pre_releases_are_excluded_unless_the_range_names_one() -> None:
    tags = ["1.0.0", "1.1.0-rc.1"]
    assert find_newest_tag(">=1.0.0", tags) == "1.0.0"
    assert find_newest_tag(">=1.0.0-0", tags) == "1.1.0-rc.1"


def test_tag_prefix_selects_among_the_tags_of_a_shared_repository() -> None:
    tags = ["llm/v1.0.0", "llm/v1.1.0", "embedder/v1.9.0", "v1.5.0"]
    assert find_newest_tag("1.x", tags, "llm/") == "llm/v1.1.0"
    assert find_newest_tag("v1.0.0", tags, "llm/") == "llm/v1.0.0"
    assert find_newest_tag("1.x", tags) == "v1.5.0"


def test_pre_releases_are_ordered_by_semantic_versioning() -> None:
    order = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0"]
    versions = [parse_version(text) for text in order]
    for one, other in itertools.pairwise(versions):
        assert one is not None and other is not None and one < other


@given(some.text(max_size=60))
def test_arbitrary_text_as_a_range_raises_no_error(text: str) -> None:
    parse_range(text)
    find_newest_tag(text, TAGS)


@given(some.tuples(*[some.integers(0, 30)] * 3))
def test_version_is_in_exactly_the_inclusive_ranges_built_from_it(numbers: tuple[int, int, int]) -> None:
    text = ".".join(map(str, numbers))
    for sign in ("=", ">=", "<=", "~", "^"):
        assert find_newest_tag(f"{sign}{text}", [text]) == text, sign
    for sign in ("!=", ">", "<"):
        assert find_newest_tag(f"{sign}{text}", [text]) is None, sign
