"""What pytest knows of argosy: fixtures, flags, and Applications as tests.

In: pytest's hooks. Out: `argosy_repo`, `rendered`, `sandbox`, `argosy_app`; with `--argosy` an item for each thing that
must hold of an Application. Never: imports more than pytest before somebody uses it; changes a run that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from argosy.testing.manifests import Manifests
    from argosy.testing.repository import Repo
    from argosy.testing.sandbox import Sandbox
    from argosy.testing.workshop import Workshop

SHOP: pytest.StashKey[Workshop] = pytest.StashKey()
COLLECTED = (".yaml", ".yml", ".json", ".ipynb")
APP = "argosy_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("argosy", "GitOps repositories")
    about = "test every Application: it renders, fits its schemas, is sound"
    group.addoption("--argosy", action="store_true", help=about)
    about = "with it: deliver every Application to a sandbox of its own, too"
    group.addoption("--argosy-sync", action="store_true", help=about)
    about = "the GitOps repository (default: argosy_path of the settings, else the root of the tests)"
    group.addoption("--argosy-path", default="", metavar="DIR", help=about)
    parser.addini("argosy_path", "the GitOps repository, from the root of the tests", default="")
    parser.addini("argosy_addons", "what plays in sandboxes, as for argosy sandbox start", default="simulators")


def pytest_configure(config: pytest.Config) -> None:
    if _is_collecting(config) and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.args.append(str(_root(config)))  # testpaths name Python's tests; these are elsewhere


def pytest_unconfigure(config: pytest.Config) -> None:
    shop = config.stash.get(SHOP, None)
    if shop is not None:
        shop.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(COLLECTED) or not _is_collecting(parent.config):
        return None
    from argosy.testing.items import file_of

    return file_of(file_path, parent, _shop(parent.config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `argosy_app` runs once for each Application."""
    if APP not in metafunc.fixturenames or APP in getattr(metafunc, "_arg2fixturedefs", {}):
        return
    if any(APP in str(mark.args[0]) for mark in metafunc.definition.iter_markers("parametrize") if mark.args):
        return
    names = _shop(metafunc.config).repo.applications
    if not names:
        message = f"there is no Application below {_root(metafunc.config)}; set argosy_path, or give --argosy-path"
        raise pytest.UsageError(message)
    metafunc.parametrize(APP, names)


@pytest.fixture(scope="session")
def argosy_repo(pytestconfig: pytest.Config) -> Repo:
    """The GitOps repository: its Applications, what they render to, what `argosy check` finds."""
    return _shop(pytestconfig).repo


@pytest.fixture(scope="session")
def rendered(argosy_repo: Repo) -> Callable[[str], Manifests]:
    """Call it with the name of an Application or the path of a folder: the manifests that it renders to."""
    return argosy_repo.render


@pytest.fixture
def sandbox(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A cluster of this test's own, where Pods, models and Routes are played; it can deliver Applications."""
    made = _shop(pytestconfig).sandbox(tmp_path_factory.mktemp("argosy"))
    try:
        yield made
    finally:
        made.close()


def _is_collecting(config: pytest.Config) -> bool:
    return bool(config.getoption("--argosy") or config.getoption("--argosy-sync"))


def _root(config: pytest.Config) -> Path:
    typed = config.getoption("--argosy-path")
    if typed:
        return Path(config.invocation_params.dir, str(typed)).resolve()
    return Path(config.rootpath, str(config.getini("argosy_path"))).resolve()


def _shop(config: pytest.Config) -> Workshop:
    if SHOP not in config.stash:
        from argosy.errors import UserError
        from argosy.testing.workshop import Workshop

        try:
            config.stash[SHOP] = Workshop(_root(config), str(config.getini("argosy_addons")))
        except UserError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[SHOP]
