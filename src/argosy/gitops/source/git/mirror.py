"""Bare mirror of one repository: resolves refs, fetches, verifies signatures.

In: a ref. Out: Checkout, or a SourceError with the last good revision. Never: leaves the mirror damaged by an update;
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

from argosy.errors import BadSignature, CorruptSource, SourceError, SourceTimeout, UnknownRef
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.git.blame import Blame, blame, last_change
from argosy.gitops.source.git.command import GitFailed, environment, run_git
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.commits import Commit, read_commit
from argosy.gitops.source.git.fetch_locks import locked
from argosy.gitops.source.git.git_errors import source_error
from argosy.gitops.source.git.mirror_folder import (
    count_packs,
    has_plain_refs,
    is_there,
    read_ref,
    replacing,
    sweep,
    write_ref,
    written_at,
)
from argosy.gitops.source.git.object_reader import SUSPECT, ObjectReader
from argosy.gitops.source.git.refs import COMMIT, SHORT_COMMIT, Refs
from argosy.gitops.source.git.remote import FETCH, Remote
from argosy.gitops.source.signatures import SignatureRule, Signed, verify

EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
SAVED = "+refs/argosy/*:refs/argosy/*"
BY_DIGITS = ("refs/argosy/commits", "refs/argosy/wanted")  # one per commit requested by id
LOCAL_SECONDS = 30.0
MOST_PACKS = 50
MOST_PINS = 1000  # refs of commits requested by id: many Applications share a mirror, each with its history
VERIFIED_SECONDS = 600.0  # then a signature is verified again: keys expire
MOST_VERIFIED = 10_000
MOST_FOUND = 200  # refs with a cached commit; asking git again takes a millisecond
ASKS, ASKS_SECONDS = 8, 1.0  # rate limit of requests to a host: this many in this many seconds


class Mirror:
    """One folder on disk, shared by all processes that use it."""

    def __init__(self, folder: Path, remote: Remote, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.remote = remote
        self._clock = clock
        self._asking = asyncio.Lock()
        self._told: tuple[float, Refs] | None = None  # time and result of the last ls-remote
        self._failed: tuple[float, SourceError] | None = None
        self._asks: deque[float] = deque(maxlen=ASKS)  # times of requests to the host
        self.objects = ObjectReader(folder, remote.limits, remote.shown)
        self._last: dict[str, str] = {}
        self._found: dict[tuple[str, str], tuple[Refs | None, Checkout]] = {}
        self._verified: dict[tuple[str, str, str], float] = {}

    async def checkout(
        self, ref: str, *, tag_prefix: str = "", max_age: float = 0.0, signatures: SignatureRule | None = None
    ) -> Checkout:
        """Resolve the ref and return its tree. A full commit id that is in the mirror needs no network."""
        if signatures is None and (known := self._known(ref, tag_prefix, max_age)) is not None:
            return known
        try:
            revision, tag, said = await self._resolve(ref, tag_prefix, max_age)
            if signatures is not None:
                await self._verify(ref, revision, tag, signatures)
            tree = await asyncio.to_thread(self._tree, revision)
        except SourceError as error:
            error.last_good = await self.last_good(ref, tag_prefix=tag_prefix, signatures=signatures)
            raise
        with contextlib.suppress(CorruptSource):  # the tree was verified by its id; the next refresh repairs the mirror
            await self._remember(_pin(ref, tag_prefix, signatures), revision)
        found = Checkout(tree, revision)
        self._found.pop((ref, tag_prefix), None)
        if len(self._found) >= MOST_FOUND:
            del self._found[next(iter(self._found))]
        self._found[ref, tag_prefix] = said, found  # with the refs used here: newer ones may resolve differently
        return found

    def _known(self, ref: str, tag_prefix: str, max_age: float) -> Checkout | None:
        """Return the cached checkout if its list of refs is recent enough and the mirror is intact."""
        said, found = self._found.get((ref, tag_prefix), (None, None))
        if found is None or not self._is_sound():
            return None
        if COMMIT.fullmatch(ref):
            return found
        is_young = self._told is not None and self._told[1] is said and self._told[0] >= self._clock() - max_age
        return found if is_young else None

    async def refs(self, *, max_age: float = 0.0) -> Refs:
        """List the refs of the host, at most `max_age` seconds old. Concurrent callers share one request."""
        arrived = self._clock()
        async with self._asking:
            if self._told and self._told[0] >= arrived - max_age:
                return self._told[1]
            if self._failed and self._failed[0] >= arrived:
                raise copy.copy(self._failed[1])  # each caller sets its own last good revision
            await self._pause()
            asked = self._clock()
            try:
                refs = await self.remote.refs(self._scratch())
            except SourceError as error:
                self._failed = (asked, error)
                raise
            if self._told and self._told[1] == refs:
                refs = self._told[1]
            self._told = (asked, refs)
            return refs

    async def _pause(self) -> None:
        """Delay requests above the rate limit, so that waiting callers share the next answer."""
        if len(self._asks) == ASKS:
            await asyncio.sleep(max(0.0, self._asks[0] + ASKS_SECONDS - self._clock()))
        self._asks.append(self._clock())

    async def commit(self, revision: str, *, max_age: float = 0.0) -> Commit:
        """Return the commit for a full or short id; it is fetched if it is not in the mirror yet."""
        whole, _, _ = await self._resolve(revision, "", max_age)
        found = await asyncio.to_thread(self.objects.read, whole)
        return read_commit(found.content)

    async def blame(self, revision: str, file: str, line: int) -> Blame | None:
        """Return who wrote a line, as of a revision in the mirror; None if unknown."""
        return await blame(self.folder, revision, file, line) if await self._has(revision) else None

    async def last_change(self, since: str, until: str, file: str) -> Blame | None:
        """Return who changed a file last, between two revisions in the mirror."""
        are_here = await self._has(since) and await self._has(until)
        return await last_change(self.folder, since, until, file) if are_here else None

    async def last_good(self, ref: str, *, tag_prefix: str = "", signatures: SignatureRule | None = None) -> str:
        """Return the revision of the last checkout of this ref; empty if there was none, or if it is damaged."""
        pin = _pin(ref, tag_prefix, signatures)
        try:
            revision = self._last.get(pin) or await self._id_of(pin)
            return revision if revision and await self._has(revision) else ""
        except SourceError:
            return ""

    async def compact(self) -> None:
        """Repack the mirror, and delete objects that no ref has reached for two weeks."""
        async with self._lock() as held:
            await self._compact(held)

    def close(self) -> None:
        """Stop the git process that reads objects; the next read starts a new one."""
        self.objects.close()

    # -- resolving refs --------------------------------------------------------------------------------------------

    async def _resolve(self, ref: str, tag_prefix: str, max_age: float) -> tuple[str, str, Refs | None]:
        """Return the commit, the id of the annotated tag that points to it or "", and the refs that were used."""
        if COMMIT.fullmatch(ref):
            return await self._whole_commit(ref.lower()), "", None
        refs = await self.refs(max_age=max_age)
        revision = refs.find(ref, tag_prefix)
        if revision is None and SHORT_COMMIT.fullmatch(ref):
            revision = await self._short_commit(ref.lower(), refs)
        if revision is None:
            raise refs.unknown(ref, tag_prefix, self.remote.shown)
        if not (self._is_sound() and await self._has(revision)):
            await self._fetch(refs, revision)
        if not await self._has(revision):
            raise UnknownRef(
                f"{ref!r} points to {revision[:12]}, which is not a commit, or it just moved; use another, or wait",
                where=self.remote.shown,
            )
        return revision, refs.notes.get(refs.full_name(ref, tag_prefix), ""), refs

    async def _whole_commit(self, revision: str) -> str:
        if await self._has(revision):
            return revision
        await self._fetch(await self.refs(), revision)
        if not await self._has(revision):
            raise UnknownRef(f"commit {revision} not found; push it first", where=self.remote.shown)
        return revision

    async def _short_commit(self, short: str, refs: Refs) -> str | None:
        found = await self._id_of(short)
        if not found and refs.commits:
            await self._fetch(refs, "")
            found = await self._id_of(short)
        return found or None

    async def _id_of(self, name: str, kind: str = "commit") -> str:
        """Resolve an internal ref or a short id in the mirror; empty if it does not exist."""
        if not is_there(self.folder):
            return ""
        try:
            return await self._local("rev-parse", "--verify", "--quiet", f"{name}^{{{kind}}}")
        except SourceError:
            return ""

    def _tree(self, revision: str) -> GitTree:
        header = self.objects.read(revision).content.partition(b"\n")[0]
        if not header.startswith(b"tree "):
            raise CorruptSource(f"{revision} is not a commit; run `git fsck` there", where=self.remote.shown)
        return GitTree(self.objects, header.removeprefix(b"tree ").decode("ascii", "replace"))

    async def _has(self, revision: str) -> bool:
        if not is_there(self.folder):
            return False
        try:
            found = await asyncio.to_thread(self.objects.find, revision)
        except CorruptSource:
            return False  # the mirror is marked as suspect, and the next fetch recreates it
        return found is not None and found.kind == "commit"

    def _is_sound(self) -> bool:
        return is_there(self.folder) and not os.path.exists(f"{self.folder}/{SUSPECT}")

    # -- signatures ------------------------------------------------------------------------------------------------

    async def _verify(self, ref: str, revision: str, tag: str, rule: SignatureRule) -> None:
        """argo: an annotated tag must be signed itself; for a branch, commit or plain tag, the commit must be."""
        pin = f"refs/argosy/signed/{rule.digest}/{revision}"
        if COMMIT.fullmatch(ref):  # a last good revision may have been verified through a signed tag
            tag = await self._id_of(pin, "tag")
        signed = Signed(self.folder, tag or revision, bool(tag), self.remote.shown)
        known = (signed.id, revision, rule.digest)
        verified = self._verified.get(known)
        if verified is None or verified < self._clock() - VERIFIED_SECONDS:
            if tag and not await self._id_of(tag, "tag"):
                await self._fetch(await self.refs(max_age=LOCAL_SECONDS), "")
            await verify(signed, rule, self._scratch())
            # The host claims where the tag points; only the signed content counts.
            if tag and await self._id_of(tag) != revision:
                raise BadSignature(
                    f"{signed.name} does not point to {revision[:12]}, as the host claims; find out why",
                    where=self.remote.shown,
                )
            if len(self._verified) > MOST_VERIFIED:
                self._verified.clear()
            self._verified[known] = self._clock()
        if tag:
            await self._remember(pin, tag)

    # -- fetching --------------------------------------------------------------------------------------------------

    async def _fetch(self, refs: Refs, wanted: str) -> None:
        """Fetch all branches and tags, and the wanted commit if none of them contains it and the host serves it."""
        async with self._lock() as held:
            if wanted and self._is_sound() and await self._has(wanted):
                return  # the previous holder of the lock fetched it
            sweep(self.folder)
            if self._is_sound():
                await self._update(refs, held)
            else:
                await self._make_anew(refs, held)
            if wanted and not await self._has(wanted):
                await self._fetch_one(wanted, held)
            if count_packs(self.folder) > MOST_PACKS:
                with contextlib.suppress(SourceError):  # the fetch succeeded; compaction can wait for the next one
                    await self._compact(held)

    async def _update(self, refs: Refs, held: int) -> None:
        try:
            await self.remote.fetch(self.folder, EVERYTHING, scratch=self._scratch(), held=held)
        except CorruptSource:
            # The mirror or the host is corrupt. A new mirror shows which; the old one stays until that is complete.
            await self._make_anew(refs, held)

    async def _make_anew(self, refs: Refs, held: int) -> None:
        wide = any(len(commit) == 64 for commit in refs.commits.values())
        with replacing(self.folder) as fresh:
            form = f"--object-format={'sha256' if wide else 'sha1'}"
            await self._local("init", "--quiet", "--bare", "--template=", form, folder=fresh)
            await self.remote.fetch(fresh, EVERYTHING, scratch=self._scratch(), held=held)
            with contextlib.suppress(SourceError):  # save the last good revisions of the old mirror
                await self._local(*FETCH, "--", str(self.folder), SAVED, folder=fresh, protocol="file", held=held)
            self.close()

    async def _fetch_one(self, commit: str, held: int) -> None:
        try:
            what = [f"+{commit}:refs/argosy/wanted/{commit}"]
            await self.remote.fetch(self.folder, what, scratch=self._scratch(), held=held)
        except UnknownRef:
            return  # the caller reports it

    async def _compact(self, held: int) -> None:
        self.close()
        await self._let_go(held)
        await self._local("gc", "--quiet", "--prune=2.weeks.ago", held=held, seconds=10 * LOCAL_SECONDS)
        self._last.clear()  # all refs are packed now; those in use are rewritten and so sort first the next time
        self._found.clear()

    async def _let_go(self, held: int) -> None:
        """Delete all but the newest refs of commits requested by id, by use since the last compaction, then by age."""
        form = ("--sort=-committerdate", f"--count={5 * MOST_PINS}", "--format=%(refname)")
        pins = (await self._local("for-each-ref", *form, *BY_DIGITS, held=held)).split()
        pins.sort(key=lambda pin: written_at(self.folder, pin), reverse=True)
        for pin in pins[MOST_PINS:]:
            await self._local("update-ref", "-d", pin, held=held)

    async def _remember(self, pin: str, revision: str) -> None:
        if self._last.get(pin) == revision:
            return
        if read_ref(self.folder, pin) != revision:
            async with self._lock() as held:
                if has_plain_refs(self.folder):
                    await asyncio.to_thread(write_ref, self.folder, pin, revision)
                else:
                    await self._local("update-ref", pin, revision, held=held)
        self._last.pop(pin, None)
        if len(self._last) >= MOST_FOUND:
            del self._last[next(iter(self._last))]
        self._last[pin] = revision

    # -- local git -------------------------------------------------------------------------------------------------

    def _scratch(self) -> Path:
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.folder.parent

    @contextlib.asynccontextmanager
    async def _lock(self) -> AsyncIterator[int]:
        path = self._scratch() / f"{self.folder.name}.lock"
        # Another process may be fetching, and a third may be next in line.
        taking = contextlib.AsyncExitStack()
        try:
            held = await taking.enter_async_context(locked(path, seconds=2 * self.remote.limits.fetch_seconds))
        except TimeoutError:
            raise SourceTimeout(
                "another fetch of it is still running; argosy will retry; if it persists, kill the hanging git process",
                where=self.remote.shown,
            ) from None
        async with taking:
            yield held

    async def _local(
        self,
        *arguments: str,
        folder: Path | None = None,
        held: int | None = None,
        seconds: float = LOCAL_SECONDS,
        protocol: str = "none",
    ) -> str:
        env = environment({}, {"GIT_ALLOW_PROTOCOL": protocol})
        try:
            printed = await run_git(folder or self.folder, arguments, env=env, seconds=seconds, held=held)
        except GitFailed as failed:
            error = source_error(failed, self.remote.shown, folder or self.folder)
            if isinstance(error, CorruptSource) and folder is None and self.folder.is_dir():
                (self.folder / SUSPECT).touch()
            raise error from None
        except TimeoutError:
            raise SourceTimeout("local git command timed out", where=self.remote.shown) from None
        return printed.decode().strip()


def _pin(ref: str, tag_prefix: str, signatures: SignatureRule | None = None) -> str:
    """Return the internal ref that protects the last good revision from garbage collection; the user's ref is hashed.

    A revision accepted without a signature rule is not the last good one of a rule.
    """
    rule = f"\0{signatures.digest}" if signatures else ""
    words = f"{tag_prefix}\0{ref}{rule}".encode(errors="surrogateescape")
    kind = "commits" if COMMIT.fullmatch(ref) else "last"
    return f"refs/argosy/{kind}/{hashlib.sha256(words).hexdigest()[:32]}"
