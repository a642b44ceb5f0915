"""Copies what `argosy init` hands out from llmops-via-argocd/ into the package, so that both stay the same.

In: nothing. Out: src/argosy/setup/repository/templates/shared/, or with --check the names of files that differ and exit
code 1.
Development only. Run after a change in llmops-via-argocd/: python tools/copy_templates.py
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREE = ROOT / "llmops-via-argocd"
COPY = ROOT / "src/argosy/setup/repository/templates/shared"
TAKEN = (
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
)


def wanted() -> dict[str, bytes]:
    """Path in the package → bytes. Python gets an ending that no tool takes for a module of ours."""
    found = sorted(path for pattern in TAKEN for path in TREE.glob(pattern) if path.is_file())
    named = {path.relative_to(TREE).as_posix(): path.read_bytes() for path in found}
    return {f"{name}.template" if name.endswith(".py") else name: text for name, text in named.items()}


def present() -> dict[str, bytes]:
    return {path.relative_to(COPY).as_posix(): path.read_bytes() for path in COPY.rglob("*") if path.is_file()}


def main(arguments: list[str]) -> int:
    new, old = wanted(), present()
    differing = sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))
    if arguments == ["--check"]:
        print("".join(f"{name} differs: run python tools/copy_templates.py\n" for name in differing), end="")
        return 1 if differing else 0
    shutil.rmtree(COPY, ignore_errors=True)
    for name, text in new.items():
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        (COPY / name).write_bytes(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
