"""Charts of Helm repositories, and dependencies that are not in Git, give the same status and the same objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from support.argocd.story import Story
from support.chart_server import ChartServer, chart_server

pytestmark = pytest.mark.tier("argocd")


@pytest.fixture
def host() -> Iterator[ChartServer]:
    with chart_server() as server:
        for version in ("1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "2.0.0"):
            server.publish("shop", version)
        yield server


def chart(host: ChartServer, version: str, **more: Any) -> dict[str, Any]:
    return {"repoURL": host.url, "chart": "shop", "targetRevision": version, **more}


def deliver(story: Story, source: dict[str, Any]) -> None:
    application = story.build_application(automated={})
    application["spec"]["source"] = source
    story.pair.apply(application)
    story.pair.wait_until_settled(story.name)


VERSIONS = ["1.0.0", "^1.0", "*", ">=1.0.0-0", "1.x", "v1.9.0", "1.9", "3.x", "4.0.0", "latest"]


@pytest.mark.parametrize("version", VERSIONS)
def test_version_of_a_chart(story: Story, host: ChartServer, version: str) -> None:
    deliver(story, chart(host, version))
    story.check()


def test_chart_that_gets_a_newer_version(story: Story, host: ChartServer) -> None:
    deliver(story, chart(host, "1.x", helm={"valuesObject": {"size": "big"}, "releaseName": "other"}))
    story.check()
    host.publish("shop", "1.11.0")
    story.refresh("hard")
    story.check()


def test_chart_with_values_from_git(story: Story, host: ChartServer) -> None:
    story.push({"values.yaml": "size: huge\n"})
    values = {"repoURL": story.repository.url, "targetRevision": "HEAD", "ref": "values"}
    source = chart(host, "1.0.0", helm={"valueFiles": ["$values/app/values.yaml"]})
    story.deliver(sources=[source, values])
    story.sync()
    story.check()


@pytest.mark.parametrize("version", ["~1.9", "v1.0.0", "*", "5.x"])
def test_dependency_that_is_not_in_git(story: Story, host: ChartServer, version: str) -> None:
    dependency = {"name": "shop", "version": version, "repository": host.url, "alias": "store"}
    fields = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": [dependency]}
    story.push({"Chart.yaml": yaml.safe_dump(fields), "values.yaml": "store: {size: big}\n"})
    story.deliver(automated={})
    story.check()
