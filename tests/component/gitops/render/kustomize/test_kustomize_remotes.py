"""Remote bases of kustomize: URL parsing, one fetch per repository and ref, and confinement to their repository."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import LimitError, RenderError, SourceUnreachable
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize import build
from argosy.gitops.render.kustomize.remote_url_parser import RemoteBase, parse_remote
from argosy.gitops.render.kustomize.source_and_remote_trees import split_display_path
from argosy.kube.objects import YamlDialect, read_yaml_documents
from support.file_trees import TextTree
from support.paths import VENV

KUBECTL = VENV / "kubectl-1.32" / "kubectl"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
URL = "https://github.com/org/repo"
A, B = "a/kustomization.yaml", "b/kustomization.yaml"


class Fetched:
    """A fake fetch function with repositories by URL; records its calls."""

    def __init__(self, trees: Mapping[str, Mapping[str, str]], links: Mapping[str, str] | None = None) -> None:
        self.trees = {url: TextTree(files, links) for url, files in trees.items()}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, url: str, ref: str) -> FileTree:
        self.asked.append((url, ref))
        if url not in self.trees:
            raise SourceUnreachable("gives no answer: try again later", where=url)
        return self.trees[url]


def rendered(kustomization: str, remote: Mapping[str, str], path: str = "app") -> tuple[list[Any], Fetched]:
    fetch = Fetched({URL: remote})
    return build(TextTree({f"{path}/kustomization.yaml": kustomization}), path, fetch=fetch), fetch


def refusal(kustomization: str, remote: Mapping[str, str], links: Mapping[str, str] | None = None) -> str:
    with pytest.raises((RenderError, LimitError)) as caught:
        build(TextTree({"app/kustomization.yaml": kustomization}), "app", fetch=Fetched({URL: remote}, links))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://github.com/org/repo//a/b?ref=v1", RemoteBase(URL, "v1", "a/b")),
        ("https://github.com/org/repo/a/b?ref=v1", RemoteBase(URL, "v1", "a/b")),
        ("github.com/org/repo/a?ref=v1", RemoteBase(URL, "v1", "a")),
        ("github.com/org/repo", RemoteBase(URL, "HEAD", "")),
        ("GitHub.com/org/repo", RemoteBase(URL, "HEAD", "")),
        ("http://github.com/org/repo", RemoteBase(URL, "HEAD", "")),
        ("https://github.com/org/repo.git?ref=v1", RemoteBase(f"{URL}.git", "v1", "")),
        ("https://github.com/org/repo.git//a/b/", RemoteBase(f"{URL}.git", "HEAD", "a/b")),
        ("https://github.com/org/repo.git/a/b", RemoteBase(f"{URL}.git", "HEAD", "a/b")),
        ("https://github.com/org/repo//a?timeout=90s&submodules=false&ref=v1", RemoteBase(URL, "v1", "a")),
        ("https://github.com/org/repo//a?version=v2", RemoteBase(URL, "v2", "a")),
        ("https://github.com/org/repo//a?version=v2&ref=v1", RemoteBase(URL, "v1", "a")),
        ("git::https://github.com/org/repo//a?ref=v1", RemoteBase(URL, "v1", "a")),
        ("git@github.com:org/repo.git//a?ref=v1", RemoteBase("git@github.com:org/repo.git", "v1", "a")),
        ("git@github.com:org/repo//a", RemoteBase("git@github.com:org/repo", "HEAD", "a")),
        ("github.com:org/repo//a", RemoteBase(URL, "HEAD", "a")),
        ("ssh://git@github.com/org/repo//a", RemoteBase("git@github.com:org/repo", "HEAD", "a")),
        ("git@gitlab.com:one/two/three.git//a", RemoteBase("git@gitlab.com:one/two/three.git", "HEAD", "a")),
        ("ssh://git@host:22/org/repo//a", RemoteBase("ssh://git@host:22/org/repo", "HEAD", "a")),
        ("https://host/one/two/three//a?ref=x", RemoteBase("https://host/one/two/three", "x", "a")),
        ("https://host/one/two/three", RemoteBase("https://host/one/two", "HEAD", "three")),
        (
            "https://dev.azure.com/o/p/_git/repo/a/b?ref=x",
            RemoteBase("https://dev.azure.com/o/p/_git/repo", "x", "a/b"),
        ),
        ("file:///srv/repo//a", RemoteBase("file:///srv/repo", "HEAD", "a")),
        ("file:///srv/repo.git/a", RemoteBase("file:///srv/repo.git", "HEAD", "a")),
        ("https://raw.githubusercontent.com/org/repo/v1/a/b.yaml", RemoteBase(URL, "v1", "a/b.yaml", True)),
        (
            "https://raw.githubusercontent.com/org/repo/refs/heads/main/b.yaml",
            RemoteBase(URL, "refs/heads/main", "b.yaml", True),
        ),
        ("https://github.com/org/repo/raw/v1/b.yaml", RemoteBase(URL, "v1", "b.yaml", True)),
        ("https://github.com/org/repo/blob/v1/b.yaml", RemoteBase(URL, "v1", "b.yaml", True)),
        (
            "https://gitlab.com/o/g/repo/-/raw/v1/b.yaml",
            RemoteBase("https://gitlab.com/o/g/repo", "v1", "b.yaml", True),
        ),
        ("../base", None),
        ("base", None),
        ("a@b", None),
        ("host/org/repo.git//a", None),
        ("https://host/one", None),
    ],
)
def test_parse_remote_parses_urls_like_kustomize(text: str, expected: RemoteBase | None) -> None:
    assert parse_remote(text) == expected


def test_remote_base_reads_its_own_folders_and_is_fetched_once() -> None:
    kustomization = (
        "namePrefix: my-\nresources:\n- https://github.com/org/repo//over?ref=v1\n"
        "- https://raw.githubusercontent.com/org/repo/v1/b.yaml\n"
    )
    remote = {
        "over/kustomization.yaml": "resources: [../a]\nnameSuffix: -x\n",
        "a/kustomization.yaml": "resources: [a.yaml]\n",
        "a/a.yaml": CONFIG_MAP,
        "b.yaml": CONFIG_MAP.replace("name: a", "name: b"),
    }
    manifests, fetch = rendered(kustomization, remote)
    assert [manifest["metadata"]["name"] for manifest in manifests] == ["my-a-x", "my-b"]
    assert fetch.asked == [(URL, "v1")]


def test_components_patches_configurations_and_generator_files_may_be_remote() -> None:
    raw = "https://raw.githubusercontent.com/org/repo/v1"
    kustomization = (
        f"resources: ['{raw}/a.yaml']\ncomponents: ['{URL}//part?ref=v1']\n"
        f"patches: [{{path: '{raw}/patch.yaml'}}]\nconfigurations: ['{raw}/config.yaml']\n"
        f"configMapGenerator: [{{name: made, files: ['k={raw}/a.yaml'], options: {{disableNameSuffixHash: true}}}}]\n"
    )
    remote = {
        "a.yaml": CONFIG_MAP,
        "patch.yaml": CONFIG_MAP.replace("x: '1'", "y: '2'"),
        "config.yaml": "namePrefix: []\n",
        "part/kustomization.yaml": f"{COMPONENT}commonAnnotations: {{from: afar}}\n",
    }
    manifests, _ = rendered(kustomization, remote)
    assert manifests[0]["data"] == {"x": "1", "y": "2"}
    assert [manifest["metadata"].get("annotations") for manifest in manifests] == [{"from": "afar"}, {"from": "afar"}]
    assert manifests[1]["data"] == {"k": CONFIG_MAP}


def test_remote_base_may_refer_to_another_remote_base() -> None:
    other = "https://github.com/org/other"
    fetch = Fetched(
        {
            URL: {"a/kustomization.yaml": f"resources: ['{other}?ref=x']\n"},
            other: {"kustomization.yaml": "resources: [b.yaml]\n", "b.yaml": CONFIG_MAP},
        }
    )
    [manifest] = build(TextTree({"kustomization.yaml": f"resources: ['{URL}//a']\n"}), "", fetch=fetch)
    assert manifest["metadata"]["name"] == "a"
    assert fetch.asked == [(URL, "HEAD"), (other, "x")]


@pytest.mark.parametrize(
    ("entry", "remote", "said"),
    [
        (f"{URL}//a?ref=v1", {}, "a?ref=v1 does not exist"),
        (f"{URL}//a?ref=v1", {"a/x.yaml": CONFIG_MAP}, f"no kustomization.yaml in {URL}//a?ref=v1"),
        (f"{URL}//a/x.yaml?ref=v1", {"a/x.yaml": CONFIG_MAP}, "is a file"),
        (f"{URL}//../a", {}, "leads out of the repository"),
        (f"{URL}//a", {A: "resources: [../../x]\n"}, "leads out of the repository"),
        (f"{URL}//a", {A: "resources: [../x.yaml]\n", "x.yaml": CONFIG_MAP}, "outside the kust"),
        (f"{URL}//a", {A: "resources: [.]\n"}, "is a cycle"),
        (f"{URL}//a", {A: f"resources: ['{URL}//a']\n"}, "is a cycle"),
        (f"{URL}//a", {A: f"resources: ['{URL}//b']\n", B: f"resources: ['{URL}//a']\n"}, "a cycle"),
        (f"{URL}//a", {A: "foo: 1\n"}, f"{URL}//a/kustomization.yaml?ref=HEAD"),
        (f"{URL}//a", {A: "resources: [x.yaml]\n", "a/x.yaml": "kind: ["}, f"{URL}//a/x.yaml?ref=HEAD"),
        (f"{URL}//a", {A: "patches: [{path: p.yaml}]\n", "a/p.yaml": "- {op: x"}, f"{URL}//a/p.yaml?ref=HEAD"),
        ("https://example.com/x/y.yaml", {}, "only Git repositories are fetched: copy it here"),
        ("https://github.com/org/repo/releases/download/v1/x.yaml", {}, "only Git repositories are fetched"),
        ("https://example.com/x", {}, "but not a repository"),
        ("host/org/repo.git//a?ref=v1", {}, "write https://HOST/OWNER/NAME"),
        ("oci://host/org/repo", {}, "but not a repository"),
    ],
)  # fmt: skip
def test_invalid_remote_base_is_rejected_with_a_reason(entry: str, remote: dict[str, str], said: str) -> None:
    assert said in refusal(f"resources: ['{entry}']\n", remote)


def test_symlink_out_of_a_remote_base_is_rejected() -> None:
    remote = {"a/kustomization.yaml": "resources: [x.yaml]\n"}
    assert "leads out of the repository" in refusal(f"resources: ['{URL}//a']\n", remote, {"a/x.yaml": "../../etc/x"})


def test_url_with_password_is_rejected_without_printing_the_password() -> None:
    message = refusal("resources: ['https://user:geheim@github.com/org/repo//a']\n", {})
    assert "password" in message
    assert "geheim" not in message


def test_remote_base_is_rejected_without_a_fetch_function() -> None:
    tree = TextTree({"app/kustomization.yaml": f"resources: ['{URL}//a?ref=v1']\n"})
    with pytest.raises(RenderError, match=r"^app/kustomization\.yaml.*//a\?ref=v1 is remote"):
        build(tree, "app")


def test_fetch_error_keeps_its_type_and_names_the_kustomization() -> None:
    tree = TextTree({"app/kustomization.yaml": "resources: [github.com/org/gone]\n"})
    with pytest.raises(SourceUnreachable, match=r"app/kustomization\.yaml.*cannot fetch .*org/gone: gives no answer"):
        build(tree, "app", fetch=Fetched({}))


def test_more_than_100_remote_bases_are_rejected() -> None:
    entries = "".join(f"- https://github.com/org/repo//a?ref=v{number}\n" for number in range(101))
    files = {"a/kustomization.yaml": "resources: []\n"}
    assert "more than 100 remote bases" in refusal(f"resources:\n{entries}", files)


def test_origin_annotations_name_repository_and_ref_of_remote_base() -> None:
    kustomization = f"buildMetadata: [originAnnotations, transformerAnnotations]\nresources: ['{URL}//a?ref=v1']\n"
    remote = {"a/kustomization.yaml": "resources: [x.yaml]\nnamePrefix: p-\n", "a/x.yaml": CONFIG_MAP}
    [manifest], _ = rendered(kustomization, remote)
    notes = manifest["metadata"]["annotations"]
    assert notes["config.kubernetes.io/origin"] == f"path: a/x.yaml\nrepo: {URL}\nref: v1\n"
    changes = notes["alpha.config.kubernetes.io/transformations"]
    assert f"repo: {URL}\n  ref: v1\n  configuredIn: a/kustomization.yaml" in changes


def test_split_display_path_returns_url_ref_and_path() -> None:
    assert split_display_path(f"{URL}//a/x.yaml?ref=v1") == (URL, "v1", "a/x.yaml")
    assert split_display_path("a/x.yaml") == ("", "", "a/x.yaml")


def test_existing_file_that_looks_like_a_url_is_read_locally() -> None:
    files = {"kustomization.yaml": "resources: ['me@host/a/b.yaml']\n", "me@host/a/b.yaml": CONFIG_MAP}
    assert build(TextTree(files), "")


@pytest.mark.parametrize(
    "kustomization",
    [
        pytest.param("resources: ['%s//a?ref=v1']\nnameSuffix: -z\n", marks=pytest.mark.tier("all")),
        pytest.param("resources: ['%s//a']\nnamespace: own\n", marks=pytest.mark.tier("all")),
        "resources: ['%s//a?ref=v1']\ncomponents: ['git::%s//part']\n",
        "buildMetadata: [originAnnotations, transformerAnnotations]\n"
        "resources: ['%s//a?ref=v1']\ncomponents: ['%s//part']\nnameSuffix: -z\n",
        pytest.param("resources: ['%s?version=v1']\n", marks=pytest.mark.tier("all")),
    ],
)
def test_remote_bases_match_kubectl_output(kustomization: str, tmp_path: Path) -> None:
    if not KUBECTL.is_file():
        pytest.skip("kubectl 1.32 is not here: make install")
    files = {
        "kustomization.yaml": "resources: [a]\n",
        "a/kustomization.yaml": (
            "resources: [../b, x.yaml]\nnamePrefix: a-\nconfigMapGenerator: [{name: made, literals: [k=v]}]\n"
        ),
        "a/x.yaml": CONFIG_MAP,
        "b/kustomization.yaml": "resources: [y.yaml]\n",
        "b/y.yaml": CONFIG_MAP.replace("name: a", "name: other"),
        "part/kustomization.yaml": f"{COMPONENT}commonAnnotations: {{part: '1'}}\n",
    }
    url = f"file://{committed(files, tmp_path / 'repo')}"
    (tmp_path / "app").mkdir()
    text = kustomization.replace("%s", url)
    (tmp_path / "app" / "kustomization.yaml").write_text(text)
    done = subprocess.run([KUBECTL, "kustomize", tmp_path / "app"], capture_output=True, check=True)
    manifests = build(TextTree({"kustomization.yaml": text}), "", fetch=Fetched({url: files}))
    assert manifests == read_yaml_documents(done.stdout, dialect=YamlDialect.KUSTOMIZE)


def committed(files: Mapping[str, str], folder: Path) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return folder
