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
from argosy.gitops.application.url_credential_detection import PLACEHOLDER_URL, has_credentials
from argosy.gitops.workspace.git_repository_creation import RepositoryFile
from argosy.kube.schema.name_label_address_syntax import check_dns_label

DEFAULT_NAME: Final = "llmops"
DEFAULT_REPO_URL: Final = PLACEHOLDER_URL
MAX_NAME_CHARACTERS: Final = 63 - len("-production")
_SOURCE_FOLDER: Final = "llmops-via-argocd/"  # what the shared files call the place where they are
_NAME_PATTERN: Final = re.compile(rf"\b{DEFAULT_NAME}\b(?!-via-argocd|-demo)")
# Comments about a page that is not copied.
_GUIDE_COMMENT_PATTERN: Final = re.compile(r"^ *# .*step-by-step-guide\.md.*\n", re.MULTILINE)
# The documents show this rule. It has no effect, since status is not compared, and `argosy check` says so.
_STATUS_RULE_PATTERN: Final = re.compile(
    r"^  ignoreDifferences:\n    - group: serving\.kserve\.io\n      kind: InferenceService\n"
    r"      jsonPointers:\n        - /status\n",
    re.MULTILINE,
)
_URL_PATTERN: Final = re.compile(r"(?:(?:https?|ssh|git|file)://|git@)[\w.~%/@:+-]+")


@dataclass(frozen=True)
class NewRepository:
    name: str = DEFAULT_NAME
    url: str = DEFAULT_REPO_URL

    def validate(self) -> None:
        if complaints := check_dns_label(self.name):
            raise UserError(f"--name {self.name!r} is not a valid Kubernetes name: {complaints[0]}; choose another")
        if len(self.name) > MAX_NAME_CHARACTERS:
            raise UserError(f"--name {self.name!r} is too long; use at most {MAX_NAME_CHARACTERS} characters")
        if has_credentials(self.url):
            raise UserError("--repo-url contains credentials, which would be committed; remove them")
        if not _URL_PATTERN.fullmatch(self.url):
            url_forms = "https://, ssh://, git://, file:// or git@HOST:PATH"
            raise UserError(f"--repo-url {self.url!r} is not a valid repository URL; use {url_forms}")

    def build_files(self) -> list[RepositoryFile]:
        """Build all files, sorted by path."""
        templates = files("argosy.features.init") / "templates"
        shared = {path: self._render_shared(text) for path, text in _list_templates(templates / "shared")}
        own = {path: self._render_own(text) for path, text in _list_templates(templates / "own")}
        return [RepositoryFile(path, text.encode()) for path, text in sorted({**shared, **own}.items())]

    def _render_shared(self, text: str) -> str:
        text = (
            _STATUS_RULE_PATTERN.sub("", _GUIDE_COMMENT_PATTERN.sub("", text))
            .replace(DEFAULT_REPO_URL, self.url)
            .replace(_SOURCE_FOLDER, "")
        )
        return text if self.name == DEFAULT_NAME else _NAME_PATTERN.sub(self.name, text)

    def _render_own(self, text: str) -> str:
        return text.replace("__NAME__", self.name).replace("__REPO_URL__", self.url)


def list_llmops_via_argocd_files() -> list[RepositoryFile]:
    """List every file of llmops-via-argocd/, below a folder of that name."""
    templates = files("argosy.features.init") / "templates"
    texts = {
        path: text for part in ("shared", "folder") for path, text in _list_templates(templates / part, _SOURCE_FOLDER)
    }
    return [RepositoryFile(path, text.encode()) for path, text in sorted(texts.items())]


def list_stages_example_files() -> list[RepositoryFile]:
    """List the files of examples/stages/ on its branch main."""
    stages = files("argosy.features.init") / "templates" / "stages"
    return [RepositoryFile(path, text.encode()) for path, text in sorted(_list_templates(stages))]


def _list_templates(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        name = re.sub(r"^dot-", ".", entry.name).removesuffix(".template")
        if entry.is_dir():
            yield from _list_templates(entry, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", entry.read_text(encoding="utf-8")
