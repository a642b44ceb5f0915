"""Two sandboxes with the same Applications: on one Argo CD delivers, on the other argosy.

In: an installation of Argo CD, a folder. Out: both sides, changed and read together. Never: changes only one side.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from support.argocd.comparison import Difference, compare_objects, find_differences, normalize_status, normalize_text
from support.argocd.programs import COMPONENTS, EXPORTED_CONDITIONS, ArgoCD, Installation, read_metrics, run_argocd
from support.clusters import ARGOSY, Sandbox, environment, kubectl, sandbox
from support.control_plane import die_with_parent, free_ports
from support.deadlines import HANG_SECONDS, wait_until
from support.failure_report import record_log

CONTROL: Final = "argocd"
ALL_APPLICATIONS: Final = "/apis/argoproj.io/v1alpha1/applications"
APPLICATIONS: Final = f"/apis/argoproj.io/v1alpha1/namespaces/{CONTROL}/applications"
REFRESH: Final = "argocd.argoproj.io/refresh"
QUIET_SECONDS: Final = 10.0  # without a change on either side: longer than a retry of Argo CD's refresh
SETTLE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.5
# The revisions of several sources: commits, or versions of charts. Argo CD leaves them out.
SEVERAL_REVISIONS: Final = re.compile(r"(?<=Sync operation to )[\w.+-]+(, [\w.+-]+)+")
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


@dataclass
class Side:
    """One cluster, and the program that delivers to it."""

    name: str
    server: Sandbox

    def apply(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        text = yaml.safe_dump_all(manifests)
        done = kubectl(self.server.kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
        assert done.code == 0, f"{self.name}: {done.err}"

    def get(self, path: str) -> Any:
        answer = self.server.request("GET", path)
        assert answer.code in (200, 404), f"{self.name}: GET {path}: {answer.body!r}"
        return answer.json() if answer.code == 200 else None

    def patch(self, path: str, patch: Mapping[str, Any]) -> None:
        answer = self.server.request("PATCH", path, patch, MERGE_PATCH)
        assert answer.code == 200, f"{self.name}: PATCH {path}: {answer.body!r}"

    def delete(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        answer = self.server.request("DELETE", path, options or {})
        assert answer.code in (200, 202, 404), f"{self.name}: DELETE {path}: {answer.body!r}"

    def list_applications(self) -> dict[str, Any]:
        """Return the Applications of all namespaces by name: no two stories use the same name."""
        return {item["metadata"]["name"]: item for item in self.get(ALL_APPLICATIONS)["items"]}

    def list_objects(self, namespace: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        """Return the objects of a namespace by `group/kind name`. `kinds` has the list path of each kind.

        Objects with generated names are counted instead: `Job import-#1`.
        """
        objects: dict[str, Any] = {}
        counts: Counter[str] = Counter()
        for kind, path in kinds.items():
            prefix, _, plural = path.rpartition("/")
            listed = self.get(f"{prefix}/namespaces/{namespace}/{plural}")
            for item in listed["items"] if listed else ():
                prefix_of_name = item["metadata"].get("generateName")
                subject = f"{kind} {prefix_of_name or item['metadata']['name']}"
                counts[subject] += 1
                objects[f"{subject}#{counts[subject]}" if prefix_of_name else subject] = item
        return objects

    def list_events(self, name: str) -> dict[str, Any]:
        """Return what differs between the Events about an Application, by reason and message.

        Without changes of health, which both programs sample at their own times, and without the message of a failed
        operation, which is also in the status.
        """
        events: dict[str, Any] = {}
        for event in self.get("/api/v1/events")["items"]:
            text = normalize_text(f"{event['reason']}: {event['message'].partition(' failed: ')[0]}")
            text = SEVERAL_REVISIONS.sub("", text)  # argo: the Event of several sources names no revision
            is_own = (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("Application", name)
            if is_own and "Updated health status" not in text:
                fields = events.setdefault(text, {"type": set(), "component": set(), "annotations": set()})
                fields["type"].add(event["type"])
                fields["component"].add(event["source"]["component"])
                fields["annotations"] |= set((event["metadata"].get("annotations") or {}).items())
        return {text: {name: sorted(fields[name]) for name in fields} for text, fields in events.items()}


@dataclass
class Pair:
    """Both sides; every change is made on both."""

    argocd: Side
    argosy: Side
    programs: ArgoCD
    folder: Path
    controller: subprocess.Popen[bytes] = field(repr=False)
    metrics_port: int  # of argosy's controller

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.argocd, self.argosy

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        for side in self.sides:
            side.apply(manifests)

    def patch(self, path: str, patch: Mapping[str, Any]) -> None:
        for side in self.sides:
            side.patch(path, patch)

    def delete(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        for side in self.sides:
            side.delete(path, options)

    def sync(self, name: str, **operation: Any) -> None:
        """Start a sync as `argocd app sync` does: by the operation field, with the options of the Application."""
        policy = self.argocd.list_applications()[name]["spec"].get("syncPolicy", {})
        options = {"syncOptions": policy["syncOptions"]} if policy.get("syncOptions") else {}
        sync: dict[str, Any] = {"syncStrategy": {"hook": {}}, **options, **operation}
        retry = {"retry": sync.pop("retry")} if "retry" in sync else {}
        self.start_operation(name, {"sync": sync, **retry})

    def start_operation(self, name: str, operation: Mapping[str, Any]) -> None:
        self.patch_application(name, {"operation": {"initiatedBy": {"username": "admin"}, **operation}})

    def terminate_operation(self, name: str) -> None:
        """Terminate an operation as `argocd app terminate-op` does, once it runs on both sides."""
        for side in self.sides:
            wait_until(lambda side=side: _read_phase(side, name) == "Running", f"{side.name} syncs {name}")
        self.patch_application(name, {"status": {"operationState": {"phase": "Terminating"}}})

    def refresh(self, name: str, kind: str = "normal") -> None:
        self.patch_application(name, {"metadata": {"annotations": {REFRESH: kind}}})

    def patch_application(self, name: str, patch: Mapping[str, Any]) -> None:
        self.patch(self.find_path(name), patch)

    def find_path(self, name: str) -> str:
        """Return the path of an Application, whatever its namespace is."""
        namespace = self.argocd.list_applications()[name]["metadata"]["namespace"]
        return f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/{name}"

    def wait_until_settled(self, name: str) -> None:
        """Wait until both sides compared the Application and, if it is synced automatically, have synced it.

        Only until a deadline: a side that never settles is seen by the comparison.
        """
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until:
            applications = [side.list_applications().get(name, {}) for side in self.sides]
            if all(is_settled(application) and not is_sync_due(application) for application in applications):
                return
            time.sleep(POLL_SECONDS)

    def wait_until_quiet(self, names: Sequence[str], is_over: Callable[[Any], bool] | None = None) -> None:
        """Wait until each Application was compared and has no operation, and both sides agree or stop changing.

        Without an end, the comparison that follows shows what differs, so this fails only if a side never settles.
        """
        is_over = is_over or is_settled
        until = time.monotonic() + HANG_SECONDS
        before: Any = None
        changed_at = time.monotonic()
        while time.monotonic() < until:
            listed = [side.list_applications() for side in self.sides]
            current = [
                {name: normalize_status(apps[name]) if name in apps else None for name in names} for apps in listed
            ]
            if current != before:
                before, changed_at = current, time.monotonic()
            settled = all(name not in apps or is_over(apps[name]) for apps in listed for name in names)
            quiet_for = time.monotonic() - changed_at
            if settled and quiet_for >= (2 * POLL_SECONDS if current[0] == current[1] else QUIET_SECONDS):
                return
            time.sleep(POLL_SECONDS)

    def compare_application(self, name: str) -> list[Difference]:
        left, right = (side.list_applications().get(name) for side in self.sides)
        if left is None or right is None:
            return [Difference(f"Application {name}", "(object)", left and "exists", right and "exists")] if (
                left is not right) else []  # fmt: skip
        return list(find_differences(f"Application {name}", normalize_status(left), normalize_status(right)))

    def read_metrics(self) -> tuple[str, str]:
        """Return the metrics of Argo CD's application controller and of argosy's controller, as text."""
        return self.programs.read_metrics("application-controller"), read_metrics(self.metrics_port)

    def compare_events(self, name: str) -> list[Difference]:
        return list(find_differences(f"Events of {name}", *(side.list_events(name) for side in self.sides)))

    def compare_namespace(self, namespace: str, kinds: Mapping[str, str]) -> list[Difference]:
        return list(compare_objects(*(side.list_objects(namespace, kinds) for side in self.sides)))


def _read_phase(side: Side, name: str) -> str:
    status = side.list_applications().get(name, {}).get("status") or {}
    return str((status.get("operationState") or {}).get("phase", ""))


def is_settled(application: Mapping[str, Any]) -> bool:
    """True if the Application was compared, and no refresh or operation is requested or running."""
    if "metadata" not in application:
        return False
    status = application.get("status") or {}
    phase = (status.get("operationState") or {}).get("phase")
    is_idle = "operation" not in application and phase not in ("Running", "Terminating")
    return bool(status.get("sync")) and is_idle and REFRESH not in application["metadata"].get("annotations", {})


def is_sync_due(application: Mapping[str, Any]) -> bool:
    """True if an automated sync of this OutOfSync Application has not started yet."""
    status = application["status"]
    is_automated = "automated" in application["spec"].get("syncPolicy", {})
    return is_automated and status["sync"]["status"] == "OutOfSync" and "operationState" not in status


@contextlib.contextmanager
def run_pair(
    installation: Installation,
    folder: Path,
    components: Sequence[str] = COMPONENTS,
    settings: Mapping[str, str] | None = None,
    *,
    control: str = CONTROL,
    addons: str = "simulators",
) -> Iterator[Pair]:
    """Start both sides. The control namespace of both has Argo CD's settings and the default project.

    Applications may be in every namespace `team-*`: argosy asks the projects, Argo CD has a setting, too.
    """
    settings = {"ARGOCD_APPLICATION_NAMESPACES": "team-*", **(settings or {})}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one").mkdir()
    (folder / "other").mkdir()
    with (
        sandbox(folder / "one/argocd", "--port", "0", "--addons", addons) as one,
        sandbox(folder / "other/argosy", "--port", "0", "--addons", addons) as other,
    ):
        argocd, argosy = Side("argocd", one), Side("argosy", other)
        for side in (argocd, argosy):
            prepare_side(side, installation, control)
        [metrics_port] = free_ports(1)
        with (
            run_argocd(installation, one.kubeconfig, folder / "programs", control, components, settings) as programs,
            run_argosy(
                other,
                folder / "controller",
                installation,
                "--port",
                str(metrics_port),
                *EXPORTED_CONDITIONS,
                control=control,
            ) as controller,
        ):
            yield Pair(argocd, argosy, programs, folder, controller, metrics_port)


def build_default_project(namespace: str) -> dict[str, Any]:
    """Return the project that Argo CD's server creates when it starts."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": namespace},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"namespace": "*", "server": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    }


def prepare_side(side: Side, installation: Installation, control: str = CONTROL) -> None:
    """Create the control namespace with Argo CD's kinds and settings, the default project, and local sources."""
    done = kubectl(side.server.kubeconfig, "create", "namespace", control)
    assert done.code == 0 or "AlreadyExists" in done.err, done.err
    done = kubectl(side.server.kubeconfig, "config", "set-context", "--current", f"--namespace={control}")
    assert done.code == 0, done.err
    for folder in ("crds", "base/config"):
        source = installation.manifests / folder
        done = kubectl(
            side.server.kubeconfig, "apply", "--server-side", "--force-conflicts", "-n", control, "-k", str(source)
        )
        assert done.code == 0, f"{source}: {done.err}"
    server_key = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "argocd-secret", "namespace": control},
        "stringData": {"server.secretkey": "a key of a test, of 32 bytes or more"},
    }
    local_sources = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argosy-cm", "namespace": control},
        "data": {"source.local.roots": tempfile.gettempdir(), "source.protocols": "https, ssh, http"},
    }
    side.apply([build_default_project(control), server_key, local_sources])
    if installation.version < (3, 0):  # the default is another one since then; OpenShift GitOps always sets it
        method = {"application.resourceTrackingMethod": "label"}
        side.patch(f"/api/v1/namespaces/{control}/configmaps/argocd-cm", {"data": method})


@contextlib.contextmanager
def run_argosy(
    server: Sandbox, folder: Path, installation: Installation, *flags: str, control: str = CONTROL
) -> Iterator[subprocess.Popen[bytes]]:
    """Start `argosy controller` in a folder of its own."""
    folder.mkdir()
    with open(record_log(folder / "controller.log"), "ab") as log:
        process = subprocess.Popen(
            [str(ARGOSY), "controller", "--kubeconfig", str(server.kubeconfig), "-n", control, "--no-leader-elect",
             "--mirrors", str(folder / "mirrors"), *flags],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
            env={**environment(folder), "GIT_CONFIG_GLOBAL": os.devnull,
                 "PATH": f"{installation.folder}:{os.environ['PATH']}"},
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it takes no lock that another thread could hold
        )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(HANG_SECONDS)
        finally:
            process.kill()


def print_differences(differences: Sequence[Difference]) -> str:
    return "\n".join(map(str, differences)) or "no difference"


def save_pair(pair: Pair, file: Path) -> None:
    """Write the Applications of both sides to a file, to read after a failure."""
    file.write_text(json.dumps({side.name: side.list_applications() for side in pair.sides}, indent=1))
