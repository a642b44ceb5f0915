"""Gathers the evidence for why fields of an Application's objects differ; `argosy.gitops.analysis` assesses it.

In: a reader, an Application, its compared state. Out: causes by object and pointer. Never: changes anything; fails
because one piece of evidence is unavailable (forbidden, or a host that does not answer).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from argosy.annotations import FIELD_MANAGER
from argosy.errors import ArgosyError, ClusterError, ManifestError, UserError
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.analysis.causes import causes
from argosy.gitops.analysis.evidence import Evidence, pointer_in, refused_fields
from argosy.gitops.application import Application, Source
from argosy.gitops.application.operations import Outcome
from argosy.gitops.application.step_results import Origin, Pair
from argosy.gitops.application_client.differences import Differing
from argosy.gitops.application_client.reader import LOCAL, Reader
from argosy.gitops.application_client.removal_commits import removed
from argosy.gitops.application_client.summary import revisions, short
from argosy.gitops.diff.typed_manifests import kept, shape_for
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.desired_state import Assembled
from argosy.gitops.source.git.blame import Blame
from argosy.gitops.source.git.refs import SHORT_COMMIT, Refs
from argosy.kube.client import Catalog
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

AT_ONCE: Final = 8  # concurrent dry runs
MOST: Final = 100  # objects with a dry-run apply
Causes = Mapping[str, Cause]  # by pointer; "" is the whole object


class Said(NamedTuple):
    """Result of a dry-run apply."""

    after: Manifest | None = None
    refused: Mapping[str, str] = {}


@dataclass(frozen=True)
class Elsewhere:
    """Desired state on the default branch, for an Application that follows another branch."""

    branch: str = ""
    ref: str = ""
    desired: Mapping[ResourceKey, Manifest] = field(default_factory=dict)


async def explained(
    reader: Reader,
    app: Application,
    look: Look,
    found: Sequence[Differing],
    refs: Sequence[str] = (),
    *,
    is_brief: bool = False,
) -> dict[ResourceKey, Causes]:
    """Explain every differing field of each object. `is_brief`: without commits and other branches."""
    pairs = {pair.key: pair for pair in look.comparison.pairs if pair.differs}
    asked = [(pairs[each.key], [field.pointer for field in each.fields]) for each in found]
    known = await evidence(reader, app, look, asked, refs, is_brief=is_brief)
    told: dict[ResourceKey, Causes] = {}
    for each in found:
        made = causes(known[each.key], each.fields)
        told[each.key] = {field.pointer: cause for field, cause in zip(each.fields, made, strict=True)}
    return told if is_brief else await signed(reader, app, look.assembled, told)


async def evidence(
    reader: Reader,
    app: Application,
    look: Look,
    asked: Sequence[tuple[Pair, Sequence[str]]],
    refs: Sequence[str] = (),
    *,
    is_brief: bool = False,
) -> dict[ResourceKey, Evidence]:
    """Gather the evidence for these objects, with the origins of the given pointers."""
    instead = another(app, refs, look.assembled.revisions)
    kinds = await reader.kinds()
    said = await _asked(reader, [pair for pair, _ in asked])
    is_alone = is_brief or bool(instead) or not any(pair.differs for pair, _ in asked)
    elsewhere = Elsewhere() if is_alone else await default_branch(reader, app, look.assembled, refs)
    found: dict[ResourceKey, Evidence] = {}
    for pair, pointers in asked:
        known = _evidence(reader, app, look, pair, pointers, kinds)
        found[pair.key] = replace(
            known,
            after=said[pair.key].after,
            refused=said[pair.key].refused or known.refused,
            default_branch=elsewhere.branch,
            ref=elsewhere.ref,
            elsewhere=elsewhere.desired.get(pair.key),
            instead=instead,
        )
    return found


def another(app: Application, refs: Sequence[str], found: Sequence[str] = ()) -> str:
    """Return the compared refs if the Application does not track them. `compared_revisions`: their revisions."""
    asked = [short(each) for each, source in zip(refs, app.sources) if each and each != (source.ref or "HEAD")]
    return ", ".join(asked) if list(found) != revisions(app) else ""


def _evidence(
    reader: Reader, app: Application, look: Look, pair: Pair, pointers: Iterable[str], kinds: Catalog
) -> Evidence:
    result = next((each for each in app.state.results if each.key == pair.key), None) if app.state else None
    synced = app.state.revisions or (app.state.revision,) if app.state else ()
    return Evidence(
        app.name,
        pair,
        is_served=pair.key.group_kind in kinds,
        refused=refused_fields(result.message) if result and result.outcome is Outcome.SYNC_FAILED else {},
        filled=_filled(reader, pair.desired),
        was_applied=bool(
            result and result.outcome is Outcome.SYNCED and tuple(synced) == tuple(look.assembled.revisions)
        ),
        origins=_origins(look.assembled, pair, pointers),
    )


def _filled(reader: Reader, desired: Manifest | None) -> Manifest | None:
    try:
        return kept(desired, shape_for(desired, reader.looker.shape_of)) if desired is not None else None
    except ManifestError:
        return None


def _origins(assembled: Assembled, pair: Pair, pointers: Iterable[str]) -> dict[str, Origin]:
    if pair.desired is None:
        return {}
    like = pair.compared or pair.live or pair.desired
    # Live lists may be in another order than in Git.
    wanted = [(each, pointer_in(pair.desired, each, like)) for each in pointers]
    places = ((each, part.origins.find(pair.key, there)) for each, there in wanted for part in assembled.rendered)
    return {pointer: origin for pointer, origin in places if origin is not None}


async def _asked(reader: Reader, pairs: Sequence[Pair]) -> dict[ResourceKey, Said]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(pair: Pair) -> Said:
        if pair.desired is None or pair.live is None or not pair.differs:
            return Said()
        async with gate:
            try:
                return Said(await reader.cluster.apply(pair.desired, manager=FIELD_MANAGER, force=True, dry_run=True))
            except ClusterError as error:
                # k8s: a dry run needs permission to write
                return Said(refused=refused_fields(error.message, error.details) if error.code != 403 else {})
            except ArgosyError:
                return Said()

    said = await asyncio.gather(*(ask(pair) for pair in pairs[:MOST]))
    return {pair.key: Said() for pair in pairs} | {pair.key: each for pair, each in zip(pairs, said)}


# -- the default branch ------------------------------------------------------------------------------------------------


async def default_branch(
    reader: Reader, app: Application, assembled: Assembled | None = None, refs: Sequence[str] = ()
) -> Elsewhere:
    """Render the default branch; empty if the Application tracks it, a tag or a commit, which are chosen on purpose.

    A ref that no longer exists counts as a branch.
    """
    source = app.sources[0] if len(app.sources) == 1 else None
    if source is None or source.chart or (assembled and assembled.revisions == (LOCAL,)):
        return Elsewhere()
    ref = (refs[0] if refs else "") or source.ref
    try:
        there = await _refs(reader, app, source)
        branch, mine = there.default_branch, ref.removeprefix("refs/heads/")
        is_chosen = mine not in there.branches and (there.find(mine) is not None or SHORT_COMMIT.fullmatch(mine))
        if not branch or is_chosen or there.find(branch) == there.find(mine):
            return Elsewhere()
        found = await reader.assemble(app, (branch,))
    except ArgosyError:
        return Elsewhere()
    return Elsewhere(branch, mine, {key_of(each): each for each in found.desired if each["metadata"].get("name")})


async def unrendered(reader: Reader, app: Application, error: UserError, refs: Sequence[str] = ()) -> Cause:
    """Explain a render error: perhaps only the tracked branch fails to render."""
    elsewhere = await default_branch(reader, app, refs=refs) if not another(app, refs) else Elsewhere()
    what, _, advice = str(error).partition("; ")
    if not elsewhere.branch:
        return Cause(CauseKind.UNKNOWN, what, advice)
    text = f"{elsewhere.ref} cannot be rendered, and {elsewhere.branch} can: {what}"
    return Cause(CauseKind.STALE_BRANCH, text, f"argosy app set {app.name} --revision {elsewhere.branch}")


async def _refs(reader: Reader, app: Application, source: Source) -> Refs:
    return await reader.rules.repositories.mirror(source.repo_url, project=app.project).refs(max_age=60.0)


# -- authors -----------------------------------------------------------------------------------------------------------


async def signed(
    reader: Reader, app: Application, assembled: Assembled, told: Mapping[ResourceKey, Causes]
) -> dict[ResourceKey, Causes]:
    """Add the commits that wrote, or removed, each value in Git."""
    return await removed(reader, app, assembled, await _blamed(reader, app, assembled, told))


async def _blamed(
    reader: Reader, app: Application, assembled: Assembled, told: Mapping[ResourceKey, Causes]
) -> dict[ResourceKey, Causes]:
    lines = {(each.file, each.line) for found in told.values() for each in found.values() if _has_line(each)}
    said = await asyncio.gather(*(_commit(reader, app, assembled, *each) for each in lines))
    commits = {line: each for line, each in zip(lines, said, strict=True) if each is not None}
    return {
        key: {pointer: _signed(each, commits.get((each.file, each.line))) for pointer, each in found.items()}
        for key, found in told.items()
    }


def _signed(cause: Cause, commit: Blame | None) -> Cause:
    if commit is None or not _has_line(cause):
        return cause
    return replace(cause, revision=commit.revision, author=commit.author, subject=commit.subject)


def _has_line(cause: Cause) -> bool:
    return bool(cause.file and cause.line and not cause.repository)


async def _commit(reader: Reader, app: Application, assembled: Assembled, file: str, line: int) -> Blame | None:
    """Blame a line; None if several sources have such a line, or for a local folder."""
    found: set[Blame] = set()
    for source, revision in zip(assembled.sources, assembled.revisions):
        if revision == LOCAL or source.chart:
            continue
        try:
            mirror = reader.rules.repositories.mirror(source.repo_url, project=app.project)
            commit = await mirror.blame(revision, file, line)
        except ArgosyError:
            continue
        found |= {commit} if commit else set()
    return found.pop() if len(found) == 1 else None


__all__ = ["Causes", "Elsewhere", "another", "default_branch", "evidence", "explained", "signed", "unrendered"]
