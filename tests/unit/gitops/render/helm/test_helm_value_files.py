"""Helm value files of an Application: which are read, in which order, and which are refused."""

from __future__ import annotations

import pytest

from argosy.errors import RenderError
from argosy.gitops.render.helm import escape_commas
from argosy.gitops.render.helm.value_files import ValueFileReader
from support.file_trees import TextTree
from support.helm_engines import a_chart

FILES = {
    "values.yaml": "chart", "b.yaml": "b", "a.yaml": "a", "env/prod.yaml": "prod", "env/eu/west.yaml": "west",
    "env/eu/east.yaml": "east", "env/notes.txt": "notes", "/shared.yaml": "shared", "/charts/other.yaml": "other",
}  # fmt: skip
LINKS = {"linked.yaml": "../../shared.yaml", "folder": "env/eu"}
ESCAPES = {
    "outside.yaml": "../../../etc/passwd", "absolute.yaml": "/etc/passwd", "ring.yaml": "ring.yaml", "out": "../../..",
}  # fmt: skip
OTHER = TextTree({"prod/values.yaml": "other prod", "x.yaml": "x"}, {"up.yaml": "../charts/shop/values.yaml"})


def read(*names: str, ignore_missing: bool = False, links: dict[str, str] = LINKS) -> list[str]:
    files = ValueFileReader(
        a_chart(FILES, links), "charts/shop", lambda text: text.replace("$ENV", "prod"), {"other": OTHER}
    )
    return [file.content.decode() for file in files.read(names, ignore_missing)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["b.yaml", "a.yaml"], ["b", "a"]),
        (["a.yaml", "./env/../a.yaml"], ["a"]),
        (["/shared.yaml", "../other.yaml"], ["shared", "other"]),
        (["linked.yaml", "folder/east.yaml"], ["shared", "east"]),
        (["env/$ENV.yaml"], ["prod"]),
        (["$other/prod/values.yaml", "$other/$ENV/values.yaml"], ["other prod"]),
        (["[ab].yaml"], ["a", "b"]),
        (["env/*.yaml"], ["prod"]),
        (["env/**/*.yaml"], ["east", "west", "prod"]),
        (["env/eu/**"], ["east", "west"]),
        (["env/{eu/east,prod}.y*l"], ["east", "prod"]),
        (["env/eu/{e,w}?st.yaml"], ["east", "west"]),
        (["[a-z]*.yaml", "a.yaml"], ["b", "shared", "chart", "a"]),
        (["$other/x*.yaml"], ["x"]),
        (["/*.yaml"], ["shared"]),
    ],
)
def test_value_files_are_found_and_ordered(names: list[str], expected: list[str]) -> None:
    assert read(*names) == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "nothing.yaml",
            "charts/shop: valueFiles[0]: Error: open charts/shop/nothing.yaml: no such file or directory; add it",
        ),
        ("no*.yaml", 'valueFiles[0]: values file glob "no*.yaml" matched no files; add it'),
        ("env", "is a folder"),
        ("../../../etc/passwd", "leads out of the repository"),
        ("/../etc/passwd", "leads out of the repository"),
        ("a/../../../../x", "leads out of the repository"),
        ("$other/../x", "leads out of the repository"),
        ("$other/up.yaml", "leads out of the repository"),
        ("outside.yaml", "leads out of the repository"),
        ("absolute.yaml", "absolute path"),
        ("out/x.yaml", "leads out of the repository"),
        ("outs*.yaml", "leads out of the repository"),
        ("ring.yaml", "too many links"),
        ("https://user:hush@host.example/x.yaml?token=hush", "https://host.example is not in the repository"),
        ("file:///etc/passwd", "file:// is not in the repository"),
        ("secrets+gpg://etc/x.yaml", "is not in the repository"),
        ("%2e%2e/x.yaml", "no such file or directory"),
        ("~/.ssh/id_rsa", "no such file or directory"),
        ("a\0b.yaml", "no such file or directory"),
        ("[a", "is not a valid glob"),
    ],
)
def test_value_file_outside_the_repository_is_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(RenderError) as refused:
        read(name, links=ESCAPES)
    assert said in str(refused.value)
    assert "valueFiles[0]" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_missing_value_files_can_be_ignored_but_refused_ones_cannot() -> None:
    assert read("nothing.yaml", "no*.yaml", "a.yaml", ignore_missing=True) == ["a"]
    with pytest.raises(RenderError, match="leads out"):
        read("../../../x.yaml", ignore_missing=True)


@pytest.mark.parametrize(
    ("value", "escaped"), [("a,b", "a\\,b"), ("a\\,b,c", "a\\,b\\,c"), ("{a,b}", "{a,b}"), ("{a,b", "{a\\,b"), ("", "")]
)
def test_commas_are_escaped_like_argocd(value: str, escaped: str) -> None:
    assert escape_commas(value) == escaped


@pytest.mark.parametrize(
    ("name", "refs", "many", "said"),
    [
        ("$vals/shared.yaml", {"other": OTHER}, True, r"\$vals is not the ref of a source \(known refs: \$other\)"),
        ("$vals/shared.yaml", {}, True, r"\$vals is not the ref of a source \(no source has a ref\)"),
        ("$vals/shared.yaml", {}, False, "and not a build variable"),
        ("$ENV/shared.yaml", {"other": OTHER}, True, r"\$ENV is not the ref of a source"),
    ],
)
def test_unknown_source_ref_is_never_a_file_of_the_repository_itself(
    name: str, refs: dict[str, TextTree], many: bool, said: str
) -> None:
    def substitute(text: str) -> str:
        return text.replace("$ENV", "prod").replace("$vals", "")

    files = ValueFileReader(a_chart(FILES), "charts/shop", substitute, refs, has_many_sources=many)
    with pytest.raises(RenderError, match=said):
        files.read([name], ignore_missing=True)
    with pytest.raises(RenderError, match=said):
        files.read_one("fileParameters[0]", name)


def test_source_ref_wins_over_a_build_variable() -> None:
    files = ValueFileReader(a_chart(FILES), "charts/shop", lambda text: text.replace("$other", "env"), {"other": OTHER})
    assert [file.content for file in files.read(["$other/x.yaml"])] == [b"x"]
    alone = ValueFileReader(a_chart(FILES), "charts/shop", lambda text: text.replace("$other", "env"))
    assert [file.content for file in alone.read(["$other/prod.yaml"])] == [b"prod"]
