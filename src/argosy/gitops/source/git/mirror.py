"""A bare mirror of one repository.

In: a ref. Out: Checkout, or a SourceError that names the last good revision. Never: an update that leaves the
mirror worse than it was; two fetches at once.
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
BY_DIGITS = ("refs/argosy/commits", "refs/argosy/wanted")  # one for each commit that was asked for so
LOCAL_SECONDS = 30.0
MOST_PACKS = 50
MOST_PINS = 1000  # of commits asked for by their digits: many Applications share a mirror, each with its history
VERIFIED_SECONDS = 600.0  # after which a signature is looked at again: keys expire
MOST_VERIFIED = 10_000
MOST_FOUND = 200  # refs whose commit is remembered; to ask git again takes a millisecond
ASKS, ASKS_SECONDS = 8, 1.0  # so many questions to a host in so many seconds are not held up


class Mirror:
    """One folder on disk, shared by all processes that name it."""

    def __init__(self, folder: Path, remote: Remote, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.remote = remote
        self._clock = clock
        self._asking = asyncio.Lock()
        self._told: tuple[float, Refs] | None = None  # when the host was asked last, and what it said
        self._failed: tuple[float, SourceError] | None = None
        self._asks: deque[float] = deque(maxlen=ASKS)  # when the host was asked
        self.objects = ObjectReader(folder, remote.limits, remote.shown)
        self._last: dict[str, str] = {}
        self._found: dict[tuple[str, str], tuple[Refs | None, Checkout]] = {}
        self._verified: dict[tuple[str, str, str], float] = {}

    async def checkout(
        self, ref: str, *, tag_prefix: str = "", max_age: float = 0.0, signatures: SignatureRule | None = None
    ) -> Checkout:
        """A whole commit id that the mirror has needs no network: so the last good revision can always be had."""
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
        with contextlib.suppress(CorruptSource):  # what was read is what its id says; the next refresh heals the rest
            await self._remember(_pin(ref, tag_prefix, signatures), revision)
        found = Checkout(tree, revision)
        self._found.pop((ref, tag_prefix), None)
        if len(self._found) >= MOST_FOUND:
            del self._found[next(iter(self._found))]
        self._found[ref, tag_prefix] = said, found  # not with what it has said since: that may lead elsewhere
        return found

    def _known(self, ref: str, tag_prefix: str, max_age: float) -> Checkout | None:
        """The last answer, where the host's word that it came from is still young enough and the mirror is whole."""
        said, found = self._found.get((ref, tag_prefix), (None, None))
        if found is None or not self._is_sound():
            return None
        if COMMIT.fullmatch(ref):
            return found
        is_young = self._told is not None and self._told[1] is said and self._told[0] >= self._clock() - max_age
        return found if is_young else None

    async def refs(self, *, max_age: float = 0.0) -> Refs:
        """What the host has, as of now or as of so many seconds ago. Those who ask at once share an answer."""
        arrived = self._clock()
        async with self._asking:
            if self._told and self._told[0] >= arrived - max_age:
                return self._told[1]
            if self._failed and self._failed[0] >= arrived:
                raise copy.copy(self._failed[1])  # each gets its own, to note a last good revision on
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
        """Where many ask one after another, whoever asks meanwhile shares the next answer."""
        if len(self._asks) == ASKS:
            await asyncio.sleep(max(0.0, self._asks[0] + ASKS_SECONDS - self._clock()))
        self._asks.append(self._clock())

    async def commit(self, revision: str, *, max_age: float = 0.0) -> Commit:
        """What the commit says of itself, by its digits or the first of them; fetched where it is not here yet."""
        whole, _, _ = await self._resolve(revision, "", max_age)
        found = await asyncio.to_thread(self.objects.read, whole)
        return read_commit(found.content)

    async def blame(self, revision: str, file: str, line: int) -> Blame | None:
        """Who wrote a line as of a revision that is here; None where nobody knows."""
        return await blame(self.folder, revision, file, line) if await self._has(revision) else None

    async def last_change(self, since: str, until: str, file: str) -> Blame | None:
        """Who changed a file last, between two revisions that are here."""
        are_here = await self._has(since) and await self._has(until)
        return await last_change(self.folder, since, until, file) if are_here else None

    async def last_good(self, ref: str, *, tag_prefix: str = "", signatures: SignatureRule | None = None) -> str:
        """The revision of the last checkout of this ref; empty where there was none, or where it is damaged."""
        pin = _pin(ref, tag_prefix, signatures)
        try:
            revision = self._last.get(pin) or await self._id_of(pin)
            return revision if revision and await self._has(revision) else ""
        except SourceError:
            return ""

    async def compact(self) -> None:
        """Packs what many fetches left, and lets go of what no ref has led to for two weeks."""
        async with self._lock() as held:
            await self._compact(held)

    def close(self) -> None:
        """Ends the git that reads; the next read starts another."""
        self.objects.close()

    # -- from a ref to a commit that is here -----------------------------------------------------------------------

    async def _resolve(self, ref: str, tag_prefix: str, max_age: float) -> tuple[str, str, Refs | None]:
        """The commit; the annotated tag that leads to it, empty where there is none; and the host's word for that."""
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
                f"{ref!r} leads to {revision[:12]}, which is no commit, or moved a moment ago; name another, or wait",
                where=self.remote.shown,
            )
        return revision, refs.notes.get(refs.full_name(ref, tag_prefix), ""), refs

    async def _whole_commit(self, revision: str) -> str:
        if await self._has(revision):
            return revision
        await self._fetch(await self.refs(), revision)
        if not await self._has(revision):
            raise UnknownRef(f"there is no commit {revision}; push it first", where=self.remote.shown)
        return revision

    async def _short_commit(self, short: str, refs: Refs) -> str | None:
        found = await self._id_of(short)
        if not found and refs.commits:
            await self._fetch(refs, "")
            found = await self._id_of(short)
        return found or None

    async def _id_of(self, name: str, kind: str = "commit") -> str:
        """What a name of ours or a few digits lead to in the mirror; empty where to nothing."""
        if not is_there(self.folder):
            return ""
        try:
            return await self._local("rev-parse", "--verify", "--quiet", f"{name}^{{{kind}}}")
        except SourceError:
            return ""

    def _tree(self, revision: str) -> GitTree:
        header = self.objects.read(revision).content.partition(b"\n")[0]
        if not header.startswith(b"tree "):
            raise CorruptSource(f"{revision} is no commit; run `git fsck` there", where=self.remote.shown)
        return GitTree(self.objects, header.removeprefix(b"tree ").decode("ascii", "replace"))

    async def _has(self, revision: str) -> bool:
        if not is_there(self.folder):
            return False
        try:
            found = await asyncio.to_thread(self.objects.find, revision)
        except CorruptSource:
            return False  # the mirror is marked, and the next fetch makes it anew
        return found is not None and found.kind == "commit"

    def _is_sound(self) -> bool:
        return is_there(self.folder) and not os.path.exists(f"{self.folder}/{SUSPECT}")

    # -- signatures ------------------------------------------------------------------------------------------------

    async def _verify(self, ref: str, revision: str, tag: str, rule: SignatureRule) -> None:
        """argo: an annotated tag must be signed itself; the commit, where a branch, commit or plain tag led to it."""
        pin = f"refs/argosy/signed/{rule.digest}/{revision}"
        if COMMIT.fullmatch(ref):  # as a last good revision is asked for, to which a signed tag has led
            tag = await self._id_of(pin, "tag")
        signed = Signed(self.folder, tag or revision, bool(tag), self.remote.shown)
        known = (signed.id, revision, rule.digest)
        verified = self._verified.get(known)
        if verified is None or verified < self._clock() - VERIFIED_SECONDS:
            if tag and not await self._id_of(tag, "tag"):
                await self._fetch(await self.refs(max_age=LOCAL_SECONDS), "")
            await verify(signed, rule, self._scratch())
            # The host said where the tag leads; what counts is what was signed.
            if tag and await self._id_of(tag) != revision:
                raise BadSignature(
                    f"{signed.name} does not lead to {revision[:12]}, as the host says; find out why",
                    where=self.remote.shown,
                )
            if len(self._verified) > MOST_VERIFIED:
                self._verified.clear()
            self._verified[known] = self._clock()
        if tag:
            await self._remember(pin, tag)

    # -- fetching --------------------------------------------------------------------------------------------------

    async def _fetch(self, refs: Refs, wanted: str) -> None:
        """All branches and tags, and the wanted commit where it is in none of them and the host gives it out."""
        async with self._lock() as held:
            if wanted and self._is_sound() and await self._has(wanted):
                return  # whoever had the lock before has fetched it
            sweep(self.folder)
            if self._is_sound():
                await self._update(refs, held)
            else:
                await self._make_anew(refs, held)
            if wanted and not await self._has(wanted):
                await self._fetch_one(wanted, held)
            if count_packs(self.folder) > MOST_PACKS:
                with contextlib.suppress(
                    SourceError
                ):  # what was asked for is here; packing can wait for the next fetch
                    await self._compact(held)

    async def _update(self, refs: Refs, held: int) -> None:
        try:
            await self.remote.fetch(self.folder, EVERYTHING, scratch=self._scratch(), held=held)
        except CorruptSource:
            # It is either the mirror or the host. A new mirror tells; the old one stays until that one is whole.
            await self._make_anew(refs, held)

    async def _make_anew(self, refs: Refs, held: int) -> None:
        wide = any(len(commit) == 64 for commit in refs.commits.values())
        with replacing(self.folder) as fresh:
            form = f"--object-format={'sha256' if wide else 'sha1'}"
            await self._local("init", "--quiet", "--bare", "--template=", form, folder=fresh)
            await self.remote.fetch(fresh, EVERYTHING, scratch=self._scratch(), held=held)
            with contextlib.suppress(SourceError):  # what can be saved of the old: the last good revisions
                await self._local(*FETCH, "--", str(self.folder), SAVED, folder=fresh, protocol="file", held=held)
            self.close()

    async def _fetch_one(self, commit: str, held: int) -> None:
        try:
            what = [f"+{commit}:refs/argosy/wanted/{commit}"]
            await self.remote.fetch(self.folder, what, scratch=self._scratch(), held=held)
        except UnknownRef:
            return  # the caller says what that means

    async def _compact(self, held: int) -> None:
        self.close()
        await self._let_go(held)
        await self._local("gc", "--quiet", "--prune=2.weeks.ago", held=held, seconds=10 * LOCAL_SECONDS)
        self._last.clear()  # all refs are packed now; what is in use is written anew, and so comes first the next time
        self._found.clear()

    async def _let_go(self, held: int) -> None:
        """Unpins commits asked for by their digits, but not the last: by use since the last time, then by their age."""
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

    # -- on this machine -------------------------------------------------------------------------------------------

    def _scratch(self) -> Path:
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.folder.parent

    @contextlib.asynccontextmanager
    async def _lock(self) -> AsyncIterator[int]:
        path = self._scratch() / f"{self.folder.name}.lock"
        # A fetch of another process may be under way, and before it one of a third.
        taking = contextlib.AsyncExitStack()
        try:
            held = await taking.enter_async_context(locked(path, seconds=2 * self.remote.limits.fetch_seconds))
        except TimeoutError:
            raise SourceTimeout(
                "another fetch of it has not ended; it is tried again; if it goes on, end the git process that hangs",
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
            raise SourceTimeout("git did not end in time on this machine", where=self.remote.shown) from None
        return printed.decode().strip()


def _pin(ref: str, tag_prefix: str, signatures: SignatureRule | None = None) -> str:
    """A ref of ours that keeps the last good revision from being packed away; the user's words are no part of it.

    What was good without a signature is not for those who ask for one.
    """
    rule = f"\0{signatures.digest}" if signatures else ""
    words = f"{tag_prefix}\0{ref}{rule}".encode(errors="surrogateescape")
    kind = "commits" if COMMIT.fullmatch(ref) else "last"
    return f"refs/argosy/{kind}/{hashlib.sha256(words).hexdigest()[:32]}"
