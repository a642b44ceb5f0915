"""Lineage of a served model: its file, the notebook run that wrote the file, and the commit of that run.

In: an InferenceService, the notebook jobs of its namespace, its Pods. Out: a Lineage. Never: I/O; guesses:
two files are the same only if their digests are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, join, normpath, relpath
from typing import Any, Final

from argosy.gitops.live.inference_service import read_model
from argosy.kube.objects import Manifest

VOLUME: Final = "pvc://"
# Files that notebooks write in addition to a model; they count as the model only if there is no other file.
REPORT_SUFFIXES: Final = (
    ".json", ".yaml", ".yml", ".txt", ".md", ".csv", ".html", ".png", ".svg", ".log", ".ipynb",
)  # fmt: skip


@dataclass(frozen=True)
class Left:
    """A file that a run wrote to a PersistentVolumeClaim."""

    path: str  # in the notebook's container
    place: str  # pvc://CLAIM/PATH
    digest: str


@dataclass(frozen=True)
class Run:
    job: str
    attempt: int
    generation: int
    repository: str
    notebook: str
    commit: str
    ended: str
    files: tuple[Left, ...]
    started: str = ""

    def document(self) -> dict[str, Any]:
        files = [{"path": each.path, "place": each.place, "digest": each.digest} for each in self.files]
        return {
            "job": self.job, "attempt": self.attempt, "generation": self.generation, "repository": self.repository,
            "notebook": self.notebook, "commit": self.commit, "completionTime": self.ended, "files": files,
        }  # fmt: skip


@dataclass(frozen=True)
class Copy:
    """A Pod that serves the model. It loaded the file when it started."""

    name: str
    revision: str
    started: str
    is_current: bool  # started after the file was written


@dataclass(frozen=True)
class Address:
    """The line in Git that sets the storage URI, and the commit that wrote that line."""

    place: str  # FILE:LINE
    revision: str
    commit: str  # display text with author and subject
    is_served: bool  # the storage URI in the cluster is the one in Git

    def document(self) -> dict[str, Any]:
        return {"place": self.place, "commit": self.revision, "served": self.is_served}


@dataclass(frozen=True)
class Lineage:
    name: str
    namespace: str
    source: str
    app: str
    runs: tuple[Run, ...]  # oldest first, all with the same file; the last one wrote it to the served path
    copies: tuple[Copy, ...]
    troubles: tuple[str, ...]  # reasons why this lineage may be incomplete
    address: Address | None = None  # only for models that are not on a volume

    @property
    def trained(self) -> Run | None:
        """The run that wrote the model: the first that wrote it to another path (later copied), else the last."""
        if not self.runs:
            return None
        digests = _model_digests(self.runs[-1], self.source)
        return next((run for run in self.runs[:-1] if _has_elsewhere(run, digests, self.source)), self.runs[-1])

    @property
    def is_current(self) -> bool:
        if self.address is not None:
            return self.address.is_served and bool(self.copies)
        return bool(self.runs) and bool(self.copies) and all(each.is_current for each in self.copies)

    def written(self, address: Address) -> Lineage:
        """Return this lineage with the Git origin of the storage URI, for a model that no notebook wrote."""
        troubles = () if address.is_served else ("Git has another storage URI; sync the Application to serve that one",)
        return replace(self, address=address, troubles=troubles)

    def document(self) -> dict[str, Any]:
        copies = [
            {"pod": each.name, "revision": each.revision, "startTime": each.started, "current": each.is_current}
            for each in self.copies
        ]
        return {
            "name": self.name, "namespace": self.namespace, "source": self.source, "application": self.app,
            "runs": [each.document() for each in self.runs], "servedBy": copies, "current": self.is_current,
            "troubles": list(self.troubles), **({"written": self.address.document()} if self.address else {}),
        }  # fmt: skip


def trace(service: Manifest, jobs: Sequence[Manifest], pods: Iterable[Manifest]) -> Lineage:
    model = read_model(service)
    source = model.source.rstrip("/")
    known = (run for job in jobs for run in runs_of(job))
    runs = sorted(known, key=lambda each: (each.ended, each.started, each.attempt))
    published = _publishers(runs, source)
    last = published[-1] if published else None
    chain: tuple[Run, ...] = ()
    if last is not None:
        chain = (*_before(runs, last, _model_digests(last, source)), last)
    living = (pod for pod in pods if not pod["metadata"].get("deletionTimestamp"))
    copies = tuple(_copy(pod, last.ended if last else "") for pod in living)
    return Lineage(model.name, model.namespace, source, model.app, chain, copies, tuple(_troubles(source, last, jobs)))


def runs_of(job: Manifest) -> Iterator[Run]:
    """Runs with artefacts, as far back as the job's status goes."""
    metadata, status = job["metadata"], job.get("status") or {}
    notebook = (job.get("spec") or {}).get("notebook") or {}
    for each in status.get("attempts") or ():
        files = tuple(_left(job, file) for file in each.get("artefacts") or ())
        if files:
            yield Run(
                str(metadata["name"]), int(each.get("number") or 0), int(each.get("generation") or 0),
                str((notebook.get("git") or {}).get("url") or ""), str(notebook.get("path") or ""),
                str(each.get("gitCommit") or ""), str(each.get("completionTime") or ""), files,
                str(each.get("startTime") or ""),
            )  # fmt: skip


def _publishers(runs: Sequence[Run], source: str) -> list[Run]:
    """Runs that wrote a model to the source path; if there are none, runs that wrote any file there."""
    found = [run for run in runs if any(_is_at(each, source) for each in run.files)]
    return [run for run in found if any(_is_at(each, source) and not _is_report(each) for each in run.files)] or found


def _model_digests(run: Run, source: str) -> set[str]:
    served = [each for each in run.files if _is_at(each, source)]
    return {each.digest for each in served if not _is_report(each)} or {each.digest for each in served}


def _has_elsewhere(run: Run, digests: Collection[str], source: str) -> bool:
    return any(each.digest in digests and not _is_at(each, source) for each in run.files)


def _is_report(file: Left) -> bool:
    name = basename(file.path).lower()
    return name.endswith(REPORT_SUFFIXES) and not name.startswith("model")


def _before(runs: Sequence[Run], last: Run, digests: Collection[str]) -> Iterator[Run]:
    """For every other job: the last run before `last` that wrote a file with one of the digests."""
    earlier = (each for each in runs[: runs.index(last)] if each.job != last.job)
    newest = {each.job: each for each in earlier if any(file.digest in digests for file in each.files)}
    return (each for each in runs if newest.get(each.job) is each)


def _left(job: Manifest, file: dict[str, str]) -> Left:
    pod = job["spec"].get("podConfig") or {}
    volumes = (*(pod.get("volumes") or ()), *(job["spec"].get("volumes") or ()))
    claims = {each.get("name"): (each.get("persistentVolumeClaim") or {}).get("claimName") for each in volumes}
    path = str(file.get("path") or "")
    found = ""
    mounts = sorted(pod.get("volumeMounts") or (), key=lambda each: len(str(each.get("mountPath") or "")))
    for mount in mounts:  # longest path last, so that the most specific mount wins
        at, claim = str(mount.get("mountPath") or "").rstrip("/"), claims.get(mount.get("name"))
        if claim and path.startswith(f"{at}/"):
            found = VOLUME + normpath(join(claim, str(mount.get("subPath") or ""), relpath(path, at)))
    return Left(path, found, str(file.get("digest") or ""))


def _is_at(file: Left, source: str) -> bool:
    whole = VOLUME + normpath(source.removeprefix(VOLUME))
    return source.startswith(VOLUME) and f"{file.place}/".startswith(f"{whole}/")


def _copy(pod: Manifest, ended: str) -> Copy:
    metadata, status = pod["metadata"], pod.get("status") or {}
    started = str(status.get("startTime") or metadata.get("creationTimestamp") or "")
    labels = metadata.get("labels") or {}
    revision = str(labels.get("serving.knative.dev/revision") or labels.get("pod-template-hash") or "")
    return Copy(str(metadata["name"]), revision, started, bool(ended) and started >= ended)


def _troubles(source: str, last: Run | None, jobs: Sequence[Manifest]) -> Iterator[str]:
    if not source.startswith(VOLUME):
        yield f"{source or 'the container image'} is not on a volume, so it cannot be traced to a notebook run"
    elif last is None:
        yield f"no notebook run in this namespace wrote a file to {source}"
    for job in jobs:
        status = job.get("status") or {}
        is_writer = any(_is_at(each, source) for run in runs_of(job) for each in run.files)
        if is_writer and status.get("phase") == "Failed":
            why = status.get("message") or "no reason given"
            yield f"{job['metadata']['name']}: the last run failed ({why}); an earlier file is served"
