"""Copies what `argosy init` and `argosy demo` hand out into the package, so that both stay the same.

In: llmops-via-argocd/, examples/stages/. Out: templates/{shared,folder,stages}/ of src/argosy/features/init; with
--check the names of files that differ and exit code 1.
Development only. Run after a change in one of them: python tools/copy_templates.py
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "src/argosy/features/init/templates"
TAKEN = {
    "shared": (
        "llmops-via-argocd",
        (
            "argocd-apps/*.yaml",
            "argocd-custom-healthcheck/*.md",
            "argocd-custom-healthcheck/*.sh",
            "deploy_model/**/*.yaml",
            "deploy_model/**/*.md",
            "pipelines/expectations.yaml",
            "pipelines/requirements.txt",
            "pipelines/scripts/*.py",
            "pipelines/scripts/*.sh",
            "setup_scripts/*.sh",
        ),
    ),
    "folder": (
        "llmops-via-argocd",
        ("*.md", "CODEOWNERS", "pipelines/README.md", "pipelines/github/*", "pipelines/tekton/*.yaml"),
    ),
    "stages": ("examples/stages", ("gitops/**/*.yaml",)),
}


def read_sources() -> dict[str, bytes]:
    """Path in the package → bytes. Python gets an ending that no tool takes for a module of ours."""
    contents = {}
    for copy, (tree, patterns) in TAKEN.items():
        for path in sorted(path for pattern in patterns for path in (ROOT / tree).glob(pattern) if path.is_file()):
            name = f"{copy}/{path.relative_to(ROOT / tree).as_posix()}"
            contents[f"{name}.template" if name.endswith(".py") else name] = path.read_bytes()
    return contents


def present() -> dict[str, bytes]:
    files = (path for copy in TAKEN for path in (TEMPLATES / copy).rglob("*") if path.is_file())
    return {path.relative_to(TEMPLATES).as_posix(): path.read_bytes() for path in files}


def main(arguments: list[str]) -> int:
    new, old = read_sources(), present()
    differing = sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))
    if arguments == ["--check"]:
        print("".join(f"{name} differs: run python tools/copy_templates.py\n" for name in differing), end="")
        return 1 if differing else 0
    for copy in TAKEN:
        shutil.rmtree(TEMPLATES / copy, ignore_errors=True)
    for name, text in new.items():
        (TEMPLATES / name).parent.mkdir(parents=True, exist_ok=True)
        (TEMPLATES / name).write_bytes(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
