"""Creates a repository from the bundled templates. In: a folder, a name, a URL. Out: a summary and the next steps.
Never: leaves a partial repository."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from argosy.features.init.template_files import DEFAULT_REPO_URL, NewRepository
from argosy.gitops.workspace.git_repository_creation import DEFAULT_BRANCH, create_repository

PATH_DESCRIPTIONS = {
    "argocd-apps/": "the Applications: dev syncs by itself, staging and production wait for you",
    "argocd-custom-healthcheck/": "tell Argo CD when a model is healthy",
    "deploy_model/": "the model, and what differs in each environment",
    "notebooks/": "a training notebook, and the job that runs it",
    "pipelines/, .github/": "the checks before a merge",
    "setup_scripts/": "prepare a cluster, apply the Applications",
    "argosy.yaml": "the environments and the way between them",
}


@dataclass(frozen=True)
class InitResult:
    folder: Path
    files: int
    commit: str  # empty: not committed
    url: str

    def render_report(self) -> str:
        state = f"commit {self.commit}" if self.commit else "not committed"
        width = max(map(len, PATH_DESCRIPTIONS))
        path_lines = "".join(f"  {name.ljust(width)}  {about}\n" for name, about in PATH_DESCRIPTIONS.items())
        steps = "".join(f"  {step}\n" for step in self.list_next_steps())
        return (
            f"{self.folder}: a new repository, branch {DEFAULT_BRANCH}, {self.files} files, "
            f"{state}\n{path_lines}next:\n{steps}"
        )

    def list_next_steps(self) -> tuple[str, str, str]:
        enter = f"cd {shlex.quote(str(self.folder))}"
        if self.url == DEFAULT_REPO_URL:
            return (
                enter,
                "./pipelines/scripts/check-all.sh",
                f"git grep -l {DEFAULT_REPO_URL}   # put your address there",
            )
        push = f"git push -u origin {DEFAULT_BRANCH}"
        if not self.commit:
            push = f"git add --all && git commit -m 'Begin' && {push}"
        return enter, push, "argosy setup plan -f argosy.yaml"


def initialize(folder: Path, name: str, url: str, *, is_committed: bool) -> InitResult:
    """Create the repository; an empty URL becomes a placeholder."""
    new = NewRepository(name, url or DEFAULT_REPO_URL)
    new.validate()
    content = new.build_files()
    message = f"Begin {name}: a model, three environments, and the checks before a merge"
    commit = create_repository(folder, content, message=message, remote=url, is_committed=is_committed)
    return InitResult(folder, len(content), commit, new.url)
