"""The examples of `argosy demo`, by name.

In: a name, or a folder of an earlier demo. Out: a DemoExample. Never: starts a demo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.cli.data_folder import DataFolder
from argosy.errors import UserError
from argosy.features.demo.content import REPOSITORY, make_repository
from argosy.features.demo.initial_state import Arranger
from argosy.features.demo.stages import StagesArranger
from argosy.features.demo.stages_content import REPOSITORY as STAGES_REPOSITORY
from argosy.features.demo.stages_content import make_stages
from argosy.gitops.workspace.bare_repository import BareRepository


@dataclass(frozen=True)
class Example:
    name: str
    repository: str  # its folder below `repositories`
    make: Callable[[Path], BareRepository]
    arranger: type[Arranger]
    simulators: str  # the add-on that simulates its cluster
    applications: int
    delivered: str  # description of the ready state
    model: str  # a model to query
    looks: tuple[str, ...]  # commands to try first
    has_accidents: bool = False
    is_arranged: bool = False  # needs the operator and the engine


LLMOPS: Final = Example(
    "llmops",
    REPOSITORY,
    make_repository,
    Arranger,
    "simulators",
    3,
    "3 applications, 1 model in 2 environments",
    "dev-qwen25-05b-instruct",
    ("argosy app list", "argosy app diff llmops-staging", "argosy app sync llmops-staging"),
    has_accidents=True,
)
STAGES: Final = Example(
    "stages",
    STAGES_REPOSITORY,
    make_stages,
    StagesArranger,
    "simulators=ai",
    8,
    "8 applications, all healthy, and 3 of them synced",
    "mistral-24b",
    ("argosy app list", "argosy doctor", "argosy align"),
    is_arranged=True,
)
EXAMPLES: Final[Mapping[str, Example]] = {each.name: each for each in (LLMOPS, STAGES)}


def example_in(folder: DataFolder, asked: str | None) -> Example:
    """The example of an existing folder, else the requested one, else the default. Raises UserError on a mismatch."""
    known = next((each for each in EXAMPLES.values() if shown_in(folder.root, each)), None)
    if known and asked is not None and known.name != asked:
        message = f"this folder has the example {known.name}; omit --example, or choose another --data-dir"
        raise UserError(message, where=str(folder.root))
    return known or EXAMPLES[asked or LLMOPS.name]


def shown_in(root: Path, example: Example) -> bool:
    return BareRepository(root / "repositories" / example.repository).is_there


def example_of(repository: str) -> Example:
    """The example of a running demo."""
    name = Path(repository).name
    return next((each for each in EXAMPLES.values() if each.repository == name), LLMOPS)
