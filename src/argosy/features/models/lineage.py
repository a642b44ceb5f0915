"""Lineage of a served model: its file, the notebook run that wrote the file, and the commit of that run.

In: an InferenceService, the notebook jobs of its namespace, its Pods. Out: a Lineage. Never: I/O; guesses:
two files are the same only if their digests are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, join, normpath, relpath
from typing import Any, Final

from argosy.gitops.live.inference_service import read_served_model
from argosy.kube.objects import Manifest

VOLUME_SCHEME: Final = "pvc://"
# Files that notebooks write in addition to a model; they count as the model only if there is no other file.
REPORT_SUFFIXES: Final = (
    ".json", ".yaml", ".yml", ".txt", ".md", ".csv", ".html", ".png", ".svg", ".log", ".ipynb",
)  # fmt: skip


@dataclass(frozen=True)
class RunArtefact:
    """A file that a run wrote to a PersistentVolumeClaim."""

    path: str  # in the notebook's container
    place: str  # pvc://CLAIM/PATH
    digest: str


@dataclass(frozen=True)
class LineageRun:
    job: str
    attempt: int
    generation: int
    repository: str
    notebook: str
    commit: str
    ended: str
    files: tuple[RunArtefact, ...]
    started: str = ""

    def to_wire(self) -> dict[str, Any]:
        files = [{"path": file.path, "place": file.place, "digest": file.digest} for file in self.files]
        return {
            "job": self.job, "attempt": self.attempt, "generation": self.generation, "repository": self.repository,
            "notebook": self.notebook, "commit": self.commit, "completionTime": self.ended, "files": files,
        }  # fmt: skip


@dataclass(frozen=True)
class ServingPod:
    """A Pod that serves the model. It loaded the file when it started."""

    name: str
    revision: str
    started: str
    is_current: bool  # started after the file was written


@dataclass(frozen=True)
class StorageUriOrigin:
    """The line in Git that sets the storage URI, and the commit that wrote that line."""

    place: str  # FILE:LINE
    revision: str
    commit: str  # display text with author and subject
    is_served: bool  # the storage URI in the cluster is the one in Git

    def to_wire(self) -> dict[str, Any]:
        return {"place": self.place, "commit": self.revision, "served": self.is_served}


@dataclass(frozen=True)
class Lineage:
    name: str
    namespace: str
    source: str
    app: str
    runs: tuple[LineageRun, ...]  # oldest first, all with the same file; the last one wrote it to the served path
    copies: tuple[ServingPod, ...]
    troubles: tuple[str, ...]  # reasons why this lineage may be incomplete
    address: StorageUriOrigin | None = None  # only for models that are not on a volume

    @property
    def trained(self) -> LineageRun | None:
        """The run that wrote the model: the first that wrote it to another path (later copied), else the last."""
        if not self.runs:
            return None
        digests = _model_digests(self.runs[-1], self.source)
        return next((run for run in self.runs[:-1] if _wrote_elsewhere(run, digests, self.source)), self.runs[-1])

    @property
    def is_current(self) -> bool:
        if self.address is not None:
            return self.address.is_served and bool(self.copies)
        return bool(self.runs) and bool(self.copies) and all(serving_pod.is_current for serving_pod in self.copies)

    def with_storage_uri_origin(self, address: StorageUriOrigin) -> Lineage:
        """Return this lineage with the Git origin of the storage URI, for a model that no notebook wrote."""
        troubles = () if address.is_served else ("Git has another storage URI; sync the Application to serve that one",)
        return replace(self, address=address, troubles=troubles)

    def to_wire(self) -> dict[str, Any]:
        serving_pods = [
            {"pod": item.name, "revision": item.revision, "startTime": item.started, "current": item.is_current}
            for item in self.copies
        ]
        return {
            "name": self.name, "namespace": self.namespace, "source": self.source, "application": self.app,
            "runs": [item.to_wire() for item in self.runs], "servedBy": serving_pods, "current": self.is_current,
            "troubles": list(self.troubles), **({"written": self.address.to_wire()} if self.address else {}),
        }  # fmt: skip


def trace_model(service: Manifest, jobs: Sequence[Manifest], pods: Iterable[Manifest]) -> Lineage:
    model = read_served_model(service)
    source = model.source.rstrip("/")
    all_runs = (run for job in jobs for run in read_runs(job))
    runs = sorted(all_runs, key=lambda item: (item.ended, item.started, item.attempt))
    publishing_runs = _find_publishing_runs(runs, source)
    last = publishing_runs[-1] if publishing_runs else None
    chain: tuple[LineageRun, ...] = ()
    if last is not None:
        chain = (*_find_source_runs(runs, last, _model_digests(last, source)), last)
    live_pods = (pod for pod in pods if not pod["metadata"].get("deletionTimestamp"))
    copies = tuple(_read_serving_pod(pod, last.ended if last else "") for pod in live_pods)
    return Lineage(
        model.name, model.namespace, source, model.app, chain, copies, tuple(_list_troubles(source, last, jobs))
    )


def read_runs(job: Manifest) -> Iterator[LineageRun]:
    """Runs with artefacts, as far back as the job's status goes."""
    metadata, status = job["metadata"], job.get("status") or {}
    notebook = (job.get("spec") or {}).get("notebook") or {}
    for attempt in status.get("attempts") or ():
        files = tuple(_read_artefact(job, file) for file in attempt.get("artefacts") or ())
        if files:
            yield LineageRun(
                str(metadata["name"]), int(attempt.get("number") or 0), int(attempt.get("generation") or 0),
                str((notebook.get("git") or {}).get("url") or ""), str(notebook.get("path") or ""),
                str(attempt.get("gitCommit") or ""), str(attempt.get("completionTime") or ""), files,
                str(attempt.get("startTime") or ""),
            )  # fmt: skip


def _find_publishing_runs(runs: Sequence[LineageRun], source: str) -> list[LineageRun]:
    """Runs that wrote a model to the source path; if there are none, runs that wrote any file there."""
    runs_at_source = [run for run in runs if any(_is_below(file, source) for file in run.files)]
    return [
        run for run in runs_at_source if any(_is_below(file, source) and not _is_report(file) for file in run.files)
    ] or runs_at_source


def _model_digests(run: LineageRun, source: str) -> set[str]:
    files_at_source = [file for file in run.files if _is_below(file, source)]
    return {file.digest for file in files_at_source if not _is_report(file)} or {
        file.digest for file in files_at_source
    }


def _wrote_elsewhere(run: LineageRun, digests: Collection[str], source: str) -> bool:
    return any(file.digest in digests and not _is_below(file, source) for file in run.files)


def _is_report(file: RunArtefact) -> bool:
    name = basename(file.path).lower()
    return name.endswith(REPORT_SUFFIXES) and not name.startswith("model")


def _find_source_runs(runs: Sequence[LineageRun], last: LineageRun, digests: Collection[str]) -> Iterator[LineageRun]:
    """For every other job: the last run before `last` that wrote a file with one of the digests."""
    earlier = (run for run in runs[: runs.index(last)] if run.job != last.job)
    newest_by_job = {run.job: run for run in earlier if any(file.digest in digests for file in run.files)}
    return (run for run in runs if newest_by_job.get(run.job) is run)


def _read_artefact(job: Manifest, file: dict[str, str]) -> RunArtefact:
    pod = job["spec"].get("podConfig") or {}
    volumes = (*(pod.get("volumes") or ()), *(job["spec"].get("volumes") or ()))
    claims = {item.get("name"): (item.get("persistentVolumeClaim") or {}).get("claimName") for item in volumes}
    path = str(file.get("path") or "")
    volume_uri = ""
    mounts = sorted(pod.get("volumeMounts") or (), key=lambda item: len(str(item.get("mountPath") or "")))
    for mount in mounts:  # longest path last, so that the most specific mount wins
        mount_path, claim = str(mount.get("mountPath") or "").rstrip("/"), claims.get(mount.get("name"))
        if claim and path.startswith(f"{mount_path}/"):
            volume_uri = VOLUME_SCHEME + normpath(
                join(claim, str(mount.get("subPath") or ""), relpath(path, mount_path))
            )
    return RunArtefact(path, volume_uri, str(file.get("digest") or ""))


def _is_below(file: RunArtefact, source: str) -> bool:
    normalized_source = VOLUME_SCHEME + normpath(source.removeprefix(VOLUME_SCHEME))
    return source.startswith(VOLUME_SCHEME) and f"{file.place}/".startswith(f"{normalized_source}/")


def _read_serving_pod(pod: Manifest, last_run_ended: str) -> ServingPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    started = str(status.get("startTime") or metadata.get("creationTimestamp") or "")
    labels = metadata.get("labels") or {}
    revision = str(labels.get("serving.knative.dev/revision") or labels.get("pod-template-hash") or "")
    return ServingPod(str(metadata["name"]), revision, started, bool(last_run_ended) and started >= last_run_ended)


def _list_troubles(source: str, last: LineageRun | None, jobs: Sequence[Manifest]) -> Iterator[str]:
    if not source.startswith(VOLUME_SCHEME):
        yield f"{source or 'the container image'} is not on a volume, so it cannot be traced to a notebook run"
    elif last is None:
        yield f"no notebook run in this namespace wrote a file to {source}"
    for job in jobs:
        status = job.get("status") or {}
        is_writer = any(_is_below(file, source) for run in read_runs(job) for file in run.files)
        if is_writer and status.get("phase") == "Failed":
            reason = status.get("message") or "no reason given"
            yield f"{job['metadata']['name']}: the last run failed ({reason}); an earlier file is served"
