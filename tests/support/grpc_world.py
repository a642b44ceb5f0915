"""An installation that tests call over gRPC and gRPC-Web, and the services that they call.

In: names of Applications and projects. Out: a World with them, which its cluster view contains. Never: shares an
installation between test modules.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest

from support.rest_api import Whom, World, rest_world

APPS = "/application.ApplicationService"
PROJECTS = "/project.ProjectService"
OPEN_PROJECT = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}


@contextlib.asynccontextmanager
async def grpc_world(
    folders: pytest.TempPathFactory,
    *applications: str,
    projects: Sequence[str] = (),
    whom: Whom | None = None,
) -> AsyncIterator[World]:
    """Open a World with Applications in the project `default`, and with projects that permit everything.

    `whom` creates the authenticator.
    """
    people = (whom,) if whom is not None else ()
    async with rest_world(folders.mktemp("world"), *people) as opened:
        for name in projects:
            await opened.make("AppProject", name, api="argoproj.io/v1alpha1", spec=OPEN_PROJECT)
            await opened.seen("argoproj.io", "AppProject", name)
        await opened.add_applications(*applications)
        yield opened
