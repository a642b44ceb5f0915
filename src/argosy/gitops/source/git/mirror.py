"""Bare mirror of one repository: resolves refs, fetches, verifies signatures.

In: a ref. Out: Checkout, or a SourceError. Never: leaves the mirror damaged by an update;
runs two fetches at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from argosy.errors import BadSignature, CorruptSource, SourceError, SourceTimeout, UnknownRef, UserError
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.git.blame import Blame, blame, find_last_change
from argosy.gitops.source.git.command import GitFailed, build_environment, run_git
from argosy.gitops.source.git.commit_metadata import GitCommit, read_commit
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.fetch_locks import hold_lock
from argosy.gitops.source.git.git_errors import build_source_error
from argosy.gitops.source.git.mirror_folder_file_operations import (
    count_packs,
    delete_leftovers,
    has_plain_refs,
    is_repository,
    read_ref,
    ref_mtime,
    replace_folder,
    write_ref,
)
from argosy.gitops.source.git.mirror_remote import FETCH_ARGUMENTS, MirrorRemote
from argosy.gitops.source.git.object_reader import SUSPECT_MARKER, ObjectReader
from argosy.gitops.source.git.refs import COMMIT_ID, SHORT_COMMIT_ID, TAGS_PREFIX, Refs
from argosy.gitops.source.signatures import SignatureRule, SignedObject, add_rejected_revision, verify_signature

ALL_REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
INTERNAL_REFS = "+refs/argosy/*:refs/argosy/*"
COMMIT_PIN_PREFIXES = ("refs/argosy/commits", "refs/argosy/wanted")  # one per commit requested by id
LOCAL_TIMEOUT_SECONDS = 30.0
MAX_PACKS = 50
MAX_COMMIT_PINS = 1000  # refs of commits requested by id: many Applications share a mirror, each with its history
VERIFICATION_TTL_SECONDS = 600.0  # then a signature is verified again: keys expire
MAX_VERIFIED_ENTRIES = 10_000
MAX_CACHED_REFS = 200  # refs with a cached commit; asking git again takes a millisecond
RATE_LIMIT_REQUESTS, RATE_LIMIT_SECONDS = 8, 1.0  # rate limit of requests to a host: this many in this many seconds


class Mirror:
    """One folder on disk, shared by all processes that use it."""

    def __init__(self, folder: Path, remote: MirrorRemote, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.remote = remote
        self._clock = clock
        self._refs_lock = asyncio.Lock()
        self._listed_refs: tuple[float, Refs] | None = None  # time and result of the last ls-remote
        self._last_failure: tuple[float, SourceError] | None = None
        self._request_times: deque[float] = deque(maxlen=RATE_LIMIT_REQUESTS)  # times of requests to the host
        self.objects = ObjectReader(folder, remote.limits, remote.display_url)
        self._pinned_revisions: dict[str, str] = {}
        self._checkout_cache: dict[tuple[str, str], tuple[Refs | None, Checkout]] = {}
        self._verified_at: dict[tuple[str, str, str], float] = {}

    async def checkout(
        self, ref: str, *, tag_prefix: str = "", max_age: float = 0.0, signatures: SignatureRule | None = None
    ) -> Checkout:
        """Resolve the ref and return its tree. A full commit id that is in the mirror needs no network."""
        if signatures is None and (cached := self._find_cached_checkout(ref, tag_prefix, max_age)) is not None:
            return cached
        revision, tag, refs = await self._resolve(ref, tag_prefix, max_age)
        if signatures is not None:
            name = refs.full_name(ref, tag_prefix).removeprefix(TAGS_PREFIX) if tag and refs else revision
            with add_rejected_revision(revision):
                await self._verify(ref, revision, tag, signatures, name)
        tree = await asyncio.to_thread(self._load_tree, revision)
        with contextlib.suppress(CorruptSource):  # the tree was verified by its id; the next refresh repairs the mirror
            await self._pin_revision(_pin_name(ref, tag_prefix, signatures), revision)
        checkout = Checkout(tree, revision)
        self._checkout_cache.pop((ref, tag_prefix), None)
        if len(self._checkout_cache) >= MAX_CACHED_REFS:
            del self._checkout_cache[next(iter(self._checkout_cache))]
        self._checkout_cache[ref, tag_prefix] = (
            refs,
            checkout,
        )  # with the refs used here: newer ones may resolve differently
        return checkout

    def _find_cached_checkout(self, ref: str, tag_prefix: str, max_age: float) -> Checkout | None:
        """Return the cached checkout if its list of refs is recent enough and the mirror is intact."""
        refs, checkout = self._checkout_cache.get((ref, tag_prefix), (None, None))
        if checkout is None or not self._is_intact():
            return None
        if COMMIT_ID.fullmatch(ref):
            return checkout
        is_recent = (
            self._listed_refs is not None
            and self._listed_refs[1] is refs
            and self._listed_refs[0] >= self._clock() - max_age
        )
        return checkout if is_recent else None

    async def list_refs(self, *, max_age: float = 0.0) -> Refs:
        """List the refs of the host, at most `max_age` seconds old. Concurrent callers share one request."""
        called_at = self._clock()
        async with self._refs_lock:
            if self._listed_refs and self._listed_refs[0] >= called_at - max_age:
                return self._listed_refs[1]
            if self._last_failure and self._last_failure[0] >= called_at:
                raise copy.copy(self._last_failure[1])  # each caller has its own traceback
            await self._wait_for_rate_limit()
            requested_at = self._clock()
            try:
                refs = await self.remote.list_refs(self._scratch_folder())
            except SourceError as error:
                self._last_failure = (requested_at, error)
                raise
            if self._listed_refs and self._listed_refs[1] == refs:
                refs = self._listed_refs[1]
            self._listed_refs = (requested_at, refs)
            return refs

    async def _wait_for_rate_limit(self) -> None:
        """Delay requests above the rate limit, so that waiting callers share the next answer."""
        if len(self._request_times) == RATE_LIMIT_REQUESTS:
            await asyncio.sleep(max(0.0, self._request_times[0] + RATE_LIMIT_SECONDS - self._clock()))
        self._request_times.append(self._clock())

    async def load_commit(self, revision: str, *, max_age: float = 0.0) -> GitCommit:
        """Return the commit for a full or short id; it is fetched if it is not in the mirror yet."""
        commit_id, _, _ = await self._resolve(revision, "", max_age)
        commit_object = await asyncio.to_thread(self.objects.read, commit_id)
        return read_commit(commit_object.content)

    async def blame(self, revision: str, file: str, line: int) -> Blame | None:
        """Return who wrote a line, as of a revision in the mirror; None if unknown."""
        return await blame(self.folder, revision, file, line) if await self._has_commit(revision) else None

    async def find_last_change(self, since: str, until: str, file: str) -> Blame | None:
        """Return who changed a file last, between two revisions in the mirror."""
        are_present = await self._has_commit(since) and await self._has_commit(until)
        return await find_last_change(self.folder, since, until, file) if are_present else None

    async def compact(self) -> None:
        """Repack the mirror, and delete objects that no ref has reached for two weeks."""
        async with self._hold_lock() as lock_fd:
            await self._compact(lock_fd)

    def close(self) -> None:
        """Stop the git process that reads objects; the next read starts a new one."""
        self.objects.close()

    # -- resolving refs --------------------------------------------------------------------------------------------

    async def _resolve(self, ref: str, tag_prefix: str, max_age: float) -> tuple[str, str, Refs | None]:
        """Return the commit, the id of the annotated tag that points to it or "", and the refs that were used."""
        if COMMIT_ID.fullmatch(ref):
            return await self._resolve_full_id(ref.lower()), "", None
        refs = await self.list_refs(max_age=max_age)
        revision = refs.find_commit(ref, tag_prefix)
        if revision is None and SHORT_COMMIT_ID.fullmatch(ref):
            revision = await self._resolve_short_id(ref.lower(), refs)
        if revision is None:
            raise refs.unknown_ref_error(ref, tag_prefix, self.remote.display_url)
        if not (self._is_intact() and await self._has_commit(revision)):
            await self._fetch(refs, revision)
        if not await self._has_commit(revision):
            raise UnknownRef(
                f"{ref!r} points to {revision[:12]}, which is not a commit, or it just moved; use another, or wait",
                where=self.remote.display_url,
            )
        return revision, refs.tag_objects.get(refs.full_name(ref, tag_prefix), ""), refs

    async def _resolve_full_id(self, revision: str) -> str:
        if await self._has_commit(revision):
            return revision
        await self._fetch(await self.list_refs(), revision)
        if not await self._has_commit(revision):
            raise UnknownRef(f"commit {revision} not found; push it first", where=self.remote.display_url)
        return revision

    async def _resolve_short_id(self, short: str, refs: Refs) -> str | None:
        commit_id = await self._resolve_local(short)
        if not commit_id and refs.commits:
            await self._fetch(refs, "")
            commit_id = await self._resolve_local(short)
        return commit_id or None

    async def _resolve_local(self, name: str, kind: str = "commit") -> str:
        """Resolve an internal ref or a short id in the mirror; empty if it does not exist."""
        if not is_repository(self.folder):
            return ""
        try:
            return await self._run_local_git("rev-parse", "--verify", "--quiet", f"{name}^{{{kind}}}")
        except SourceError:
            return ""

    def _load_tree(self, revision: str) -> GitTree:
        header = self.objects.read(revision).content.partition(b"\n")[0]
        if not header.startswith(b"tree "):
            raise CorruptSource(f"{revision} is not a commit; run `git fsck` there", where=self.remote.display_url)
        tree = GitTree(self.objects, header.removeprefix(b"tree ").decode("ascii", "replace"))
        with contextlib.suppress(UserError):  # raised again when they are added
            tree.load_submodules()
        return tree

    async def _has_commit(self, revision: str) -> bool:
        if not is_repository(self.folder):
            return False
        try:
            commit_object = await asyncio.to_thread(self.objects.find, revision)
        except CorruptSource:
            return False  # the mirror is marked as suspect, and the next fetch recreates it
        return commit_object is not None and commit_object.kind == "commit"

    def _is_intact(self) -> bool:
        return is_repository(self.folder) and not os.path.exists(f"{self.folder}/{SUSPECT_MARKER}")

    # -- signatures ------------------------------------------------------------------------------------------------

    async def _verify(self, ref: str, revision: str, tag: str, rule: SignatureRule, name: str) -> None:
        """argo: an annotated tag must be signed itself; for a branch, commit or plain tag, the commit must be."""
        pin = f"refs/argosy/signed/{rule.digest}/{revision}"
        if COMMIT_ID.fullmatch(ref):  # it may have been verified through a signed tag
            tag = await self._resolve_local(pin, "tag")
        signed = SignedObject(self.folder, tag or revision, bool(tag), self.remote.display_url, name)
        cache_key = (signed.id, revision, rule.digest)
        verified_at = self._verified_at.get(cache_key)
        if verified_at is None or verified_at < self._clock() - VERIFICATION_TTL_SECONDS:
            if tag and not await self._resolve_local(tag, "tag"):
                await self._fetch(await self.list_refs(max_age=LOCAL_TIMEOUT_SECONDS), "")
            await verify_signature(signed, rule, self._scratch_folder())
            # The host claims where the tag points; only the signed content counts.
            if tag and await self._resolve_local(tag) != revision:
                raise BadSignature(
                    f"{signed.name} does not point to {revision[:12]}, as the host claims; find out why",
                    where=self.remote.display_url,
                )
            if len(self._verified_at) > MAX_VERIFIED_ENTRIES:
                self._verified_at.clear()
            self._verified_at[cache_key] = self._clock()
        if tag:
            await self._pin_revision(pin, tag)

    # -- fetching --------------------------------------------------------------------------------------------------

    async def _fetch(self, refs: Refs, wanted_commit: str) -> None:
        """Fetch all branches and tags, and the wanted commit if none of them contains it and the host serves it."""
        async with self._hold_lock() as lock_fd:
            if wanted_commit and self._is_intact() and await self._has_commit(wanted_commit):
                return  # the previous holder of the lock fetched it
            delete_leftovers(self.folder)
            if self._is_intact():
                await self._fetch_or_recreate(refs, lock_fd)
            else:
                await self._recreate(refs, lock_fd)
            if wanted_commit and not await self._has_commit(wanted_commit):
                await self._fetch_commit(wanted_commit, lock_fd)
            if count_packs(self.folder) > MAX_PACKS:
                with contextlib.suppress(SourceError):  # the fetch succeeded; compaction can wait for the next one
                    await self._compact(lock_fd)

    async def _fetch_or_recreate(self, refs: Refs, lock_fd: int) -> None:
        try:
            await self.remote.fetch(self.folder, ALL_REFS, scratch=self._scratch_folder(), lock_fd=lock_fd)
        except CorruptSource:
            # The mirror or the host is corrupt. A new mirror shows which; the old one stays until that is complete.
            await self._recreate(refs, lock_fd)

    async def _recreate(self, refs: Refs, lock_fd: int) -> None:
        is_sha256 = any(len(commit) == 64 for commit in refs.commits.values())
        with replace_folder(self.folder) as new_folder:
            object_format = f"--object-format={'sha256' if is_sha256 else 'sha1'}"
            await self._run_local_git("init", "--quiet", "--bare", "--template=", object_format, folder=new_folder)
            await self.remote.fetch(new_folder, ALL_REFS, scratch=self._scratch_folder(), lock_fd=lock_fd)
            with contextlib.suppress(SourceError):  # keep the checked out revisions of the old mirror
                await self._run_local_git(
                    *FETCH_ARGUMENTS,
                    "--",
                    str(self.folder),
                    INTERNAL_REFS,
                    folder=new_folder,
                    protocol="file",
                    lock_fd=lock_fd,
                )
            self.close()

    async def _fetch_commit(self, commit: str, lock_fd: int) -> None:
        try:
            refspecs = [f"+{commit}:refs/argosy/wanted/{commit}"]
            await self.remote.fetch(self.folder, refspecs, scratch=self._scratch_folder(), lock_fd=lock_fd)
        except UnknownRef:
            return  # the caller reports it

    async def _compact(self, lock_fd: int) -> None:
        self.close()
        await self._delete_old_pins(lock_fd)
        await self._run_local_git(
            "gc", "--quiet", "--prune=2.weeks.ago", lock_fd=lock_fd, seconds=10 * LOCAL_TIMEOUT_SECONDS
        )
        # all refs are packed now; those in use are rewritten and so sort first the next time
        self._pinned_revisions.clear()
        self._checkout_cache.clear()

    async def _delete_old_pins(self, lock_fd: int) -> None:
        """Delete all but the newest refs of commits requested by id, by use since the last compaction, then by age."""
        options = ("--sort=-committerdate", f"--count={5 * MAX_COMMIT_PINS}", "--format=%(refname)")
        pins = (await self._run_local_git("for-each-ref", *options, *COMMIT_PIN_PREFIXES, lock_fd=lock_fd)).split()
        pins.sort(key=lambda pin: ref_mtime(self.folder, pin), reverse=True)
        for pin in pins[MAX_COMMIT_PINS:]:
            await self._run_local_git("update-ref", "-d", pin, lock_fd=lock_fd)

    async def _pin_revision(self, pin: str, revision: str) -> None:
        if self._pinned_revisions.get(pin) == revision:
            return
        if read_ref(self.folder, pin) != revision:
            async with self._hold_lock() as lock_fd:
                if has_plain_refs(self.folder):
                    await asyncio.to_thread(write_ref, self.folder, pin, revision)
                else:
                    await self._run_local_git("update-ref", pin, revision, lock_fd=lock_fd)
        self._pinned_revisions.pop(pin, None)
        if len(self._pinned_revisions) >= MAX_CACHED_REFS:
            del self._pinned_revisions[next(iter(self._pinned_revisions))]
        self._pinned_revisions[pin] = revision

    # -- local git -------------------------------------------------------------------------------------------------

    def _scratch_folder(self) -> Path:
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.folder.parent

    @contextlib.asynccontextmanager
    async def _hold_lock(self) -> AsyncIterator[int]:
        path = self._scratch_folder() / f"{self.folder.name}.lock"
        # Another process may be fetching, and a third may be next in line.
        stack = contextlib.AsyncExitStack()
        try:
            lock_fd = await stack.enter_async_context(hold_lock(path, seconds=2 * self.remote.limits.fetch_seconds))
        except TimeoutError:
            raise SourceTimeout(
                "another fetch of it is still running; argosy will retry; if it persists, kill the hanging git process",
                where=self.remote.display_url,
            ) from None
        async with stack:
            yield lock_fd

    async def _run_local_git(
        self,
        *arguments: str,
        folder: Path | None = None,
        lock_fd: int | None = None,
        seconds: float = LOCAL_TIMEOUT_SECONDS,
        protocol: str = "none",
    ) -> str:
        env = build_environment({}, {"GIT_ALLOW_PROTOCOL": protocol})
        try:
            output = await run_git(folder or self.folder, arguments, env=env, seconds=seconds, lock_fd=lock_fd)
        except GitFailed as failed:
            error = build_source_error(failed, self.remote.display_url, folder or self.folder)
            if isinstance(error, CorruptSource) and folder is None and self.folder.is_dir():
                (self.folder / SUSPECT_MARKER).touch()
            raise error from None
        except TimeoutError:
            raise SourceTimeout("local git command timed out", where=self.remote.display_url) from None
        return output.decode().strip()


def _pin_name(ref: str, tag_prefix: str, signatures: SignatureRule | None = None) -> str:
    """Return the internal ref that protects the last checkout from garbage collection; the user's ref is hashed.

    A checkout without a signature rule does not replace that of a rule.
    """
    rule = f"\0{signatures.digest}" if signatures else ""
    identity = f"{tag_prefix}\0{ref}{rule}".encode(errors="surrogateescape")
    kind = "commits" if COMMIT_ID.fullmatch(ref) else "last"
    return f"refs/argosy/{kind}/{hashlib.sha256(identity).hexdigest()[:32]}"
