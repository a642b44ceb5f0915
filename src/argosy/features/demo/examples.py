"""The examples of `argosy demo`, by name.

In: a name, or a folder of an earlier demo. Out: a DemoExample. Never: starts a demo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.cli.sandbox_data_folder_and_lock import DataFolder
from argosy.errors import UserError
from argosy.features.demo.content import REPOSITORY, create_demo_repository
from argosy.features.demo.initial_demo_state import InitialStateSetup
from argosy.features.demo.stages_example_cluster_setup import StagesInitialState
from argosy.features.demo.stages_example_repository import REPOSITORY_NAME as STAGES_REPOSITORY
from argosy.features.demo.stages_example_repository import create_stages_repository
from argosy.gitops.workspace.hosted_bare_repository import BareRepository


@dataclass(frozen=True)
class DemoExample:
    name: str
    repository: str  # its folder below `repositories`
    create_repository: Callable[[Path], BareRepository]
    arranger_class: type[InitialStateSetup]
    simulators: str  # the add-on that simulates its cluster
    applications: int
    ready_description: str  # description of the ready state
    model: str  # a model to query
    first_commands: tuple[str, ...]  # commands to try first
    has_failure_drills: bool = False
    needs_operator_and_engine: bool = False  # needs the operator and the engine


LLMOPS: Final = DemoExample(
    "llmops",
    REPOSITORY,
    create_demo_repository,
    InitialStateSetup,
    "simulators",
    3,
    "3 applications, 1 model in 2 environments",
    "dev-qwen25-05b-instruct",
    ("argosy app list", "argosy app diff llmops-staging", "argosy app sync llmops-staging"),
    has_failure_drills=True,
)
STAGES: Final = DemoExample(
    "stages",
    STAGES_REPOSITORY,
    create_stages_repository,
    StagesInitialState,
    "simulators=ai",
    8,
    "8 applications, all healthy, and 3 of them synced",
    "mistral-24b",
    ("argosy app list", "argosy doctor", "argosy align"),
    needs_operator_and_engine=True,
)
EXAMPLES: Final[Mapping[str, DemoExample]] = {example.name: example for example in (LLMOPS, STAGES)}


def choose_example(folder: DataFolder, requested_name: str | None) -> DemoExample:
    """The example of an existing folder, else the requested one, else the default. Raises UserError on a mismatch."""
    existing = next((example for example in EXAMPLES.values() if is_example_in_folder(folder.root, example)), None)
    if existing and requested_name is not None and existing.name != requested_name:
        message = f"this folder has the example {existing.name}; omit --example, or choose another --data-dir"
        raise UserError(message, where=str(folder.root))
    return existing or EXAMPLES[requested_name or LLMOPS.name]


def is_example_in_folder(root: Path, example: DemoExample) -> bool:
    return BareRepository(root / "repositories" / example.repository).exists


def find_example(repository: str) -> DemoExample:
    """The example of a running demo."""
    name = Path(repository).name
    return next((example for example in EXAMPLES.values() if example.repository == name), LLMOPS)
