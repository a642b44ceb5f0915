"""Files of a new repository. In: its name and URL. Out: paths and bytes. Never: writes a file.

`templates/shared` and `templates/folder` are llmops-via-argocd/, `templates/stages` is examples/stages/, byte for byte
(tools/copy_templates.py). A new repository consists of `shared` and of `own`, which only it has; `folder` has the pages
that only llmops-via-argocd/ has. Nothing of the checkout is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from argosy.errors import UserError
from argosy.gitops.application.url_credentials import PLACEHOLDER, address_with_secret
from argosy.gitops.workspace.new_repository import File
from argosy.kube.schema.name_syntax import dns_label

NAME: Final = "llmops"
REPO_URL: Final = PLACEHOLDER
LONGEST_NAME: Final = 63 - len("-production")
_FOLDER: Final = "llmops-via-argocd/"  # what the shared files call the place where they are
_NAMED: Final = re.compile(rf"\b{NAME}\b(?!-via-argocd|-demo)")
_GUIDE: Final = re.compile(r"^ *# .*step-by-step-guide\.md.*\n", re.MULTILINE)  # a page that stays behind
# The documents show this rule. It has no effect, since status is not compared, and `argosy check` says so.
_STATUS_RULE: Final = re.compile(
    r"^  ignoreDifferences:\n    - group: serving\.kserve\.io\n      kind: InferenceService\n"
    r"      jsonPointers:\n        - /status\n",
    re.MULTILINE,
)
_ADDRESS: Final = re.compile(r"(?:(?:https?|ssh|git|file)://|git@)[\w.~%/@:+-]+")


@dataclass(frozen=True)
class NewRepository:
    name: str = NAME
    url: str = REPO_URL

    def check(self) -> None:
        if complaints := dns_label(self.name):
            raise UserError(f"--name {self.name!r} is not a valid Kubernetes name: {complaints[0]}; choose another")
        if len(self.name) > LONGEST_NAME:
            raise UserError(f"--name {self.name!r} is too long; use at most {LONGEST_NAME} characters")
        if address_with_secret(self.url):
            raise UserError("--repo-url contains credentials, which would be committed; remove them")
        if not _ADDRESS.fullmatch(self.url):
            known = "https://, ssh://, git://, file:// or git@HOST:PATH"
            raise UserError(f"--repo-url {self.url!r} is not a valid repository URL; use {known}")

    def files(self) -> list[File]:
        """Build all files, sorted by path."""
        templates = files("argosy.features.init") / "templates"
        shared = {path: self._from_shared(text) for path, text in _read(templates / "shared")}
        own = {path: self._from_own(text) for path, text in _read(templates / "own")}
        return [File(path, text.encode()) for path, text in sorted({**shared, **own}.items())]

    def _from_shared(self, text: str) -> str:
        text = _STATUS_RULE.sub("", _GUIDE.sub("", text)).replace(REPO_URL, self.url).replace(_FOLDER, "")
        return text if self.name == NAME else _NAMED.sub(self.name, text)

    def _from_own(self, text: str) -> str:
        return text.replace("__NAME__", self.name).replace("__REPO_URL__", self.url)


def delivery_files() -> list[File]:
    """List every file of llmops-via-argocd/, below a folder of that name."""
    templates = files("argosy.features.init") / "templates"
    texts = {path: text for part in ("shared", "folder") for path, text in _read(templates / part, _FOLDER)}
    return [File(path, text.encode()) for path, text in sorted(texts.items())]


def stage_files() -> list[File]:
    """List the files of examples/stages/ on its branch main."""
    stages = files("argosy.features.init") / "templates" / "stages"
    return [File(path, text.encode()) for path, text in sorted(_read(stages))]


def _read(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for each in folder.iterdir():
        name = re.sub(r"^dot-", ".", each.name).removesuffix(".template")
        if each.is_dir():
            yield from _read(each, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", each.read_text(encoding="utf-8")
