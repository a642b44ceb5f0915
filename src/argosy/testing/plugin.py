"""The pytest plug-in: fixtures, options, and Applications as tests.

In: pytest's hooks. Out: `argosy_repo`, `rendered`, `sandbox`, `argosy_app`; with `--argosy`, one item for each check of
an Application. Never: imports more than pytest before it is used; changes a run that does not use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from argosy.testing.rendered_manifest_lookup import Manifests
    from argosy.testing.sandbox import Sandbox
    from argosy.testing.session_resources import Workshop
    from argosy.testing.user_repository_renders import Repo

SHOP: pytest.StashKey[Workshop] = pytest.StashKey()
COLLECTED = (".yaml", ".yml", ".json", ".ipynb")
APP = "argosy_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("argosy", "GitOps repositories")
    help_text = "test every Application: rendering, schemas, policy"
    group.addoption("--argosy", action="store_true", help=help_text)
    help_text = "also sync every Application to its own sandbox"
    group.addoption("--argosy-sync", action="store_true", help=help_text)
    help_text = "the GitOps repository (default: the setting argosy_path, else pytest's rootdir)"
    group.addoption("--argosy-path", default="", metavar="DIR", help=help_text)
    parser.addini("argosy_path", "the GitOps repository, relative to pytest's rootdir", default="")
    parser.addini("argosy_addons", "add-ons of sandboxes, as for argosy sandbox start --addons", default="simulators")


def pytest_configure(config: pytest.Config) -> None:
    if _has_argosy_option(config) and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.args.append(
            str(_resolve_repo_root(config))
        )  # testpaths lists Python tests; the Applications are elsewhere


def pytest_unconfigure(config: pytest.Config) -> None:
    shop = config.stash.get(SHOP, None)
    if shop is not None:
        shop.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(COLLECTED) or not _has_argosy_option(parent.config):
        return None
    from argosy.testing.pytest_application_items import build_file_collector

    return build_file_collector(file_path, parent, _get_workshop(parent.config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `argosy_app`: a test that uses it runs once for each Application."""
    if APP not in metafunc.fixturenames or APP in getattr(metafunc, "_arg2fixturedefs", {}):
        return
    if any(APP in str(mark.args[0]) for mark in metafunc.definition.iter_markers("parametrize") if mark.args):
        return
    names = _get_workshop(metafunc.config).repo.applications
    if not names:
        root = _resolve_repo_root(metafunc.config)
        message = f"there is no Application below {root}; set argosy_path, or give --argosy-path"
        raise pytest.UsageError(message)
    metafunc.parametrize(APP, names)


@pytest.fixture(scope="session")
def argosy_repo(pytestconfig: pytest.Config) -> Repo:
    """The GitOps repository: its Applications, their manifests, the findings of `argosy check`."""
    return _get_workshop(pytestconfig).repo


@pytest.fixture(scope="session")
def rendered(argosy_repo: Repo) -> Callable[[str], Manifests]:
    """Function that renders an Application (by name) or a folder (by path) to manifests."""
    return argosy_repo.render


@pytest.fixture
def sandbox(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox for this test, with simulated Pods, models and Routes; it can sync Applications."""
    test_sandbox = _get_workshop(pytestconfig).sandbox(tmp_path_factory.mktemp("argosy"))
    try:
        yield test_sandbox
    finally:
        test_sandbox.close()


def _has_argosy_option(config: pytest.Config) -> bool:
    return bool(config.getoption("--argosy") or config.getoption("--argosy-sync"))


def _resolve_repo_root(config: pytest.Config) -> Path:
    option = config.getoption("--argosy-path")
    if option:
        return Path(config.invocation_params.dir, str(option)).resolve()
    return Path(config.rootpath, str(config.getini("argosy_path"))).resolve()


def _get_workshop(config: pytest.Config) -> Workshop:
    if SHOP not in config.stash:
        from argosy.errors import UserError
        from argosy.testing.session_resources import Workshop

        try:
            config.stash[SHOP] = Workshop(_resolve_repo_root(config), str(config.getini("argosy_addons")))
        except UserError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[SHOP]
