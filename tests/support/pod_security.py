"""An independent implementation of the Pod Security Standard `restricted` and of OpenShift's restricted SCC.

In: the spec of a Pod. Out: a message for each violation. Never: accepts a missing field that the standard requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SECCOMP = ("RuntimeDefault", "Localhost")
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
}  # fmt: skip
SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
LISTS = ("containers", "initContainers", "ephemeralContainers")
Spec = Mapping[str, Any]


def refused(spec: Spec) -> list[str]:
    """Return the violations of the Pod Security Standard `restricted`."""
    return [
        *_of_pod(spec),
        *(message for name, container in _containers(spec) for message in _of_container(name, container, spec)),
    ]


def refused_by_scc(spec: Spec) -> list[str]:
    """Return the violations of the SCC: OpenShift assigns user and group from a range that is not known in advance."""
    contexts = [("pod", spec.get("securityContext") or {})]
    contexts += [(name, container.get("securityContext") or {}) for name, container in _containers(spec)]
    assigned_fields = ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions")
    messages = [
        f"{name}: {field} is chosen by the cluster"
        for name, context in contexts
        for field in assigned_fields
        if field in context
    ]
    for name, container in _containers(spec):
        if not (container.get("securityContext") or {}).get("readOnlyRootFilesystem"):
            messages.append(f"{name}: the root can be written to")
    return messages


def _containers(spec: Spec) -> Iterator[tuple[str, Spec]]:
    for kind in LISTS:
        for container in spec.get(kind) or ():
            yield f"{kind}/{container['name']}", container


def _of_pod(spec: Spec) -> Iterator[str]:
    context = spec.get("securityContext") or {}
    for field in ("hostNetwork", "hostPID", "hostIPC", "hostUsers"):
        if spec.get(field):
            yield f"pod: {field}"
    for item in spec.get("volumes") or ():
        for kind in item.keys() - {"name"} - VOLUMES:
            yield f"volume {item['name']}: {kind}"
    for item in context.get("sysctls") or ():
        if item["name"] not in SYSCTLS:
            yield f"pod: sysctl {item['name']}"
    yield from _of_either("pod", context)


def _of_either(name: str, context: Mapping[str, Any]) -> Iterator[str]:
    """Check the fields that both a Pod and a container can have."""
    if context.get("runAsUser") == 0:
        yield f"{name}: runs as root"
    if context.get("runAsNonRoot") is False:
        yield f"{name}: may run as root"
    options = context.get("seLinuxOptions") or {}
    if options.get("type", "") not in SELINUX or options.get("user") or options.get("role"):
        yield f"{name}: SELinux options"
    if (context.get("appArmorProfile") or {}).get("type", "RuntimeDefault") == "Unconfined":
        yield f"{name}: AppArmor is off"
    if (context.get("seccompProfile") or {}).get("type", SECCOMP[0]) not in SECCOMP:
        yield f"{name}: seccomp is off"
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield f"{name}: a process of the host"


def _of_container(name: str, container: Spec, pod: Spec) -> Iterator[str]:
    context, pod_context = container.get("securityContext") or {}, pod.get("securityContext") or {}
    yield from _of_either(name, context)
    if context.get("privileged"):
        yield f"{name}: privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{name}: privileges may escalate"
    if context.get("runAsNonRoot", pod_context.get("runAsNonRoot")) is not True:
        yield f"{name}: does not say that it is not root"
    if "seccompProfile" not in context and "seccompProfile" not in pod_context:
        yield f"{name}: says nothing of seccomp"
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or ()):
        yield f"{name}: keeps capabilities"
    if set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}:
        yield f"{name}: adds capabilities"
    if context.get("procMount", "Default") != "Default":
        yield f"{name}: sees more of /proc"
    for port in container.get("ports") or ():
        if port.get("hostPort"):
            yield f"{name}: a port of the host"
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(kind) or {}
        if any((probe.get(how) or {}).get("host") for how in ("httpGet", "tcpSocket")):
            yield f"{name}: a {kind} of another host"
