"""File trees that argosy creates from its templates: they are complete, and no page names a missing file."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from argosy.features.init.template_files import NewRepository, list_llmops_via_argocd_files, list_stages_example_files
from argosy.gitops.workspace.git_repository_creation import RepositoryFile
from support.paths import ROOT

TREE = ROOT / "llmops-via-argocd"
MADE_TREES = {
    "init": NewRepository("fraud", "https://github.com/acme/fraud.git").build_files(),
    "demo": list_llmops_via_argocd_files(),
    "stages": list_stages_example_files(),
}
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGE_NAME = re.compile(r"(?<![\w/.<>*-])((?:[\w.-]+/)*[\w-]+\.md)\b")


def resolve(folder: PurePosixPath, link: str) -> str:
    return Path("/", folder, link).resolve().relative_to("/").as_posix()


def anchors(text: str) -> set[str]:
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_dead_links(tree: list[RepositoryFile]) -> list[str]:
    """List relative links in Markdown pages, and page names in other files, that the tree does not contain."""
    texts = {file.path: file.content.decode() for file in tree}
    existing_paths = {*texts, *(parent.as_posix() for path in texts for parent in PurePosixPath(path).parents)}
    dead = []
    for path, text in texts.items():
        folder = PurePosixPath(path).parent
        for link in LINK.findall(text) if path.endswith(".md") else ():
            target, _, anchor = link.partition("#")
            page = resolve(folder, target) if target else path
            if re.match(r"[a-z]+:", link):
                continue
            if page not in existing_paths or (anchor and anchor not in anchors(texts.get(page, ""))):
                dead.append(f"{path}: {link}")
        for name in () if path.endswith(".md") else PAGE_NAME.findall(text):
            top = path.partition("/")[0]
            if not existing_paths & {resolve(folder, name), name, f"{top}/{name}"}:
                dead.append(f"{path}: {name}")
    return dead


@pytest.mark.parametrize("tree", MADE_TREES)
def test_template_tree_has_no_dead_links(tree: str) -> None:
    assert find_dead_links(MADE_TREES[tree]) == []


def test_find_dead_links_reports_missing_files_anchors_and_pages() -> None:
    page = RepositoryFile(
        "a/page.md", b"[x](gone.md) [y](#gone) [z](other.md#gone) [ok](other.md#there) [web](https://x.example/y)"
    )
    script = RepositoryFile("a/run.sh", b"# See gone.md and other.md\n")
    assert find_dead_links([page, script, RepositoryFile("a/other.md", b"# There\n")]) == [
        "a/page.md: gone.md",
        "a/page.md: #gone",
        "a/page.md: other.md#gone",
        "a/run.sh: gone.md",
    ]


def test_demo_repository_has_every_file_of_the_llmops_tree() -> None:
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in TREE.rglob("*") if path.is_file()}
    files = {path: content for path, content in files.items() if not re.search(r"_cache|__pycache__", path)}
    assert {file.path: file.content for file in list_llmops_via_argocd_files()} == files
    assert "llmops-via-argocd/IMPLEMENTATION-SUMMARY.md" in files


def read_drawing(page: str) -> set[str]:
    """The paths of a drawn file tree: files, and folders whose files are not drawn (with a slash at the end)."""
    drawn: list[tuple[int, str]] = []
    for line in re.findall(r"^([│ ]*[├└]── \S+)", page, re.MULTILINE):
        indent, _, name = line.replace("└", "├").partition("├── ")
        drawn.append((len(indent) // 4, name))
    paths, parents = set(), [""]
    for number, (depth, name) in enumerate(drawn):
        path = parents[depth] + name
        parents = [*parents[: depth + 1], path]
        has_children = number + 1 < len(drawn) and drawn[number + 1][0] > depth
        if not has_children:
            paths.add(path)
    return paths


@pytest.mark.parametrize(("tree", "folder"), [("init", ""), ("demo", "llmops-via-argocd/")])
def test_implementation_summary_draws_every_file_of_its_tree(tree: str, folder: str) -> None:
    files = {file.path.removeprefix(folder): file.content.decode() for file in MADE_TREES[tree]}
    drawn = read_drawing(files["IMPLEMENTATION-SUMMARY.md"])
    folders = tuple(path for path in drawn if path.endswith("/"))
    assert {path for path in files if not path.startswith(folders)} == drawn - set(folders)
    assert [path for path in folders if not any(file.startswith(path) for file in files)] == []
