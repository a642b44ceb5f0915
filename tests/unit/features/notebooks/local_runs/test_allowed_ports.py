"""Ports that the setting notebooks.network allows to local notebook runs and Pods."""

from __future__ import annotations

import pytest

from argosy.annotations import NETWORK
from argosy.features.notebooks.local_runs.run_limits_config_map import LocalRunSettings, read_settings
from argosy.kube.client import Cluster
from argosy.sandbox.simulators.pod_processes.runner import load_allowed_outbound_ports


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("true", (80, 443)), (" TRUE", (80, 443)), ("443, 5432", (443, 5432)), ("80 443", (80, 443)),
        ("", ()), ("false", ()), ("nonsense", ()), ("443, 99999", ()), ("0", ()), ("-1", ()), ("443, x", ()),
    ],
)  # fmt: skip
async def test_network_setting_is_parsed_and_invalid_values_allow_no_port(
    cluster: Cluster, text: str, ports: tuple[int, ...]
) -> None:
    assert read_settings({"notebooks.network": text}) == LocalRunSettings(ports=ports)
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    metadata = {"name": "argosy-cm", "namespace": "argocd"}
    data = {"notebooks.network": text}
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "run", "annotations": {NETWORK: "on"}}}
    assert await load_allowed_outbound_ports(pod, cluster) == ports
