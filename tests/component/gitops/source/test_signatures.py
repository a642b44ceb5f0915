"""Signed revisions, with keys made here: what counts, what does not, and what is said."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.errors import (
    BadSignature,
    CannotVerify,
    ExpiredSigner,
    SignatureError,
    SignerNotAllowed,
    UnknownSigner,
    Unsigned,
)
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.signatures import SignatureRule, build_signature_rule, short_key_id

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")]
Opened = Callable[..., Repositories]
LONG_AGO = "20200101T000000"


class Keys:
    """A home of gpg with the private keys of a few people."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(mode=0o700)
        self.ids = {name: self.make(name) for name in ("alice", "bob", "carol", "rita")}
        self.ids["olga"] = self.make("olga", "1d", "--faked-system-time", LONG_AGO)
        self.gpg("--quick-add-key", self.fingerprint("carol"), "ed25519", "sign", "never")
        revocation = (home / "openpgp-revocs.d" / f"{self.fingerprint('rita')}.rev").read_text()
        self.revocation = revocation.replace(":-----BEGIN", "-----BEGIN")

    def gpg(self, *arguments: str, input: str = "") -> str:
        command = ["gpg", "--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""]
        env = {"PATH": os.environ["PATH"], "GNUPGHOME": str(self.home), "LC_ALL": "C"}
        done = subprocess.run([*command, *arguments], env=env, input=input, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self, name: str, lasts: str = "never", *more: str) -> str:
        self.gpg(*more, "--quick-gen-key", f"{name} <{name}@example.com>", "ed25519", "cert,sign", lasts)
        return self.fingerprint(name)[-16:]

    def fingerprint(self, name: str) -> str:
        listing = self.gpg("--with-colons", "--list-keys", f"{name}@example.com")
        return re.findall(r"^fpr:+([0-9A-F]{40}):", listing, re.MULTILINE)[0]

    def public(self, *names: str) -> dict[str, str]:
        """As argocd-gpg-keys-cm holds them."""
        return {self.ids[name]: self.gpg("--armor", "--export", self.fingerprint(name)) for name in names}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    keyring = Keys(tmp_path_factory.mktemp("k") / "h")
    yield keyring
    subprocess.run(
        ["gpgconf", "--kill", "all"], env={"PATH": os.environ["PATH"], "GNUPGHOME": str(keyring.home)}, check=False
    )


@pytest.fixture
def rule(keys: Keys) -> SignatureRule:
    return SignatureRule((keys.ids["alice"],), keys.public("alice", "bob"))


@pytest.fixture
def signer(repository, keys: Keys, monkeypatch: pytest.MonkeyPatch):
    """Commits to main, signed by a person; the environment leads to their keys, which argosy must not use."""
    monkeypatch.setenv("GNUPGHOME", str(keys.home))

    def sign(name: str, text: str = "x", program: str = "gpg") -> str:
        tree = repository.tree(("100644", repository.blob(text.encode()), "a"))
        key = f"-S{keys.ids[name]}"
        commit = repository.git("-c", f"gpg.program={program}", "commit-tree", key, tree, "-m", "signed")
        repository.git("update-ref", "refs/heads/main", commit)
        return commit

    return sign


async def test_a_commit_signed_by_a_key_of_the_project_is_checked_out(
    repository, signer, rule: SignatureRule, keys: Keys, opened: Opened
) -> None:
    commit = signer("alice")
    repositories, url = opened(), str(repository.path)
    for ref in ("main", commit, "HEAD"):
        assert (await repositories.checkout(url, ref, signatures=rule)).revision == commit
    for allowed in (keys.fingerprint("alice"), keys.ids["alice"].lower(), f"0x{keys.ids['alice']}"):
        other = SignatureRule((keys.ids["bob"], allowed), rule.public_keys)
        assert (await repositories.checkout(url, "main", signatures=other)).revision == commit


async def test_an_unsigned_commit_is_an_error_and_the_last_good_one_stays_usable(
    repository, signer, rule: SignatureRule, opened: Opened
) -> None:
    good = signer("alice", "good")
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "main", signatures=rule)
    unsigned = repository.commit({"a": "bad"})
    with pytest.raises(Unsigned, match=r"is not signed.*git commit -S") as raised:
        await repositories.checkout(url, "main", signatures=rule)
    assert raised.value.last_good_revision == good
    assert (await repositories.checkout(url, good, signatures=rule)).tree.read_file("a") == b"good"
    # Others do not ask for signatures: what is good for them is not for a project that does.
    assert (await repositories.checkout(url, "main")).revision == unsigned
    with pytest.raises(Unsigned) as again:
        await repositories.checkout(url, "main", signatures=rule)
    assert again.value.last_good_revision == good


@pytest.mark.tier("all")
async def test_what_was_good_without_a_rule_is_no_last_good_revision_with_one(
    repository, rule: SignatureRule, opened: Opened
) -> None:
    repository.commit({"a": "x"})
    repositories = opened()
    await repositories.checkout(str(repository.path), "main")
    with pytest.raises(Unsigned) as raised:
        await repositories.checkout(str(repository.path), "main", signatures=rule)
    assert raised.value.last_good_revision == ""


async def test_a_key_that_is_known_but_not_of_the_project_is_not_allowed(
    repository, signer, rule: SignatureRule, keys: Keys, opened: Opened
) -> None:
    signer("bob")
    with pytest.raises(SignerNotAllowed, match=keys.ids["bob"]):
        await opened().checkout(str(repository.path), "main", signatures=rule)


@pytest.mark.tier("all")
async def test_a_key_that_nobody_knows_is_named_though_the_user_of_this_machine_has_it(
    repository, signer, rule: SignatureRule, keys: Keys, opened: Opened
) -> None:
    signer("rita")
    allowed = SignatureRule((keys.ids["rita"],), rule.public_keys)
    with pytest.raises(UnknownSigner, match=f"{keys.ids['rita']}.*argocd-gpg-keys-cm"):
        await opened().checkout(str(repository.path), "main", signatures=allowed)


@pytest.mark.tier("all")
async def test_a_part_of_a_key_signs_for_the_whole(repository, signer, keys: Keys, opened: Opened) -> None:
    commit = signer("carol")
    rule = SignatureRule((keys.ids["carol"],), keys.public("carol"))
    assert (await opened().checkout(str(repository.path), "main", signatures=rule)).revision == commit


async def test_a_signature_that_was_taken_to_another_commit_is_bad(
    repository, signer, rule: SignatureRule, opened: Opened
) -> None:
    signed = repository.git("cat-file", "-p", signer("alice"))
    other = repository.tree(("100644", repository.blob(b"evil"), "a"))
    forged = re.sub("^tree .*", f"tree {other}", signed) + "\n"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", input=forged.encode())
    repository.git("update-ref", "refs/heads/main", commit)
    with pytest.raises(BadSignature, match="does not match its content"):
        await opened().checkout(str(repository.path), "main", signatures=rule)


async def test_a_signature_of_another_kind_is_not_taken(repository, rule: SignatureRule, opened: Opened) -> None:
    plain = repository.git("cat-file", "-p", repository.commit({"a": "x"}))
    for kind in ("SSH SIGNATURE", "SIGNED MESSAGE", "PGP SIGNATURE"):
        signature = f"gpgsig -----BEGIN {kind}-----\n U1NIU0lH\n -----END {kind}-----\n\n"
        forged = plain.replace("\n\n", f"\n{signature}", 1) + "\n"
        commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", input=forged.encode())
        repository.git("update-ref", "refs/heads/main", commit)
        with pytest.raises(BadSignature, match="sign it with GnuPG"):
            await opened().checkout(str(repository.path), "main", signatures=rule)


async def test_an_expired_key_and_a_revoked_one_do_not_count(
    repository, signer, keys: Keys, opened: Opened, tmp_path: Path
) -> None:
    then = tmp_path / "then"
    then.write_text(f'#!/bin/sh\nexec gpg --faked-system-time {LONG_AGO} "$@"\n')
    then.chmod(0o700)
    signer("olga", program=str(then))
    rule = SignatureRule((keys.ids["olga"], keys.ids["rita"]), keys.public("olga", "rita"))
    with pytest.raises(ExpiredSigner, match="which has expired"):
        await opened().checkout(str(repository.path), "main", signatures=rule)
    commit = signer("rita")
    assert (await opened().checkout(str(repository.path), "main", signatures=rule)).revision == commit
    revoked = SignatureRule(rule.allowed_keys, rule.public_keys | {"revocation": keys.revocation})
    with pytest.raises(ExpiredSigner, match="which was revoked"):
        await opened().checkout(str(repository.path), "main", signatures=revoked)


@pytest.mark.tier("all")
async def test_an_annotated_tag_is_verified_itself_and_a_plain_one_by_its_commit(
    repository, signer, rule: SignatureRule, keys: Keys, opened: Opened
) -> None:
    repositories, url = opened(), str(repository.path)
    unsigned = repository.commit({"a": "tagged"})
    await repositories.checkout(url, "main")  # so that the commit is there before its tag
    repository.git("tag", "-s", "-u", keys.ids["alice"], "-m", "signed", "v1.0.0", "main")
    repository.tag("plain")
    for ref in ("v1.0.0", "1.x", "refs/tags/v1.0.0"):
        assert (await repositories.checkout(url, ref, signatures=rule)).revision == unsigned
    with pytest.raises(Unsigned, match="the commit"):
        await repositories.checkout(url, "plain", signatures=rule)
    signer("alice")
    repository.git("tag", "-a", "-m", "not signed", "v2.0.0", "main")
    repository.tag("light")
    await repositories.checkout(url, "light", signatures=rule)
    with pytest.raises(Unsigned, match=r"the tag .* is not signed.*git tag -s") as raised:
        await repositories.checkout(url, "v2.0.0", signatures=rule)
    assert raised.value.last_good_revision == ""


@pytest.mark.tier("all")
async def test_the_last_good_revision_of_a_signed_tag_can_be_had_by_its_id(
    repository, rule: SignatureRule, keys: Keys, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNUPGHOME", str(keys.home))
    repositories, url = opened(), str(repository.path)
    commit = repository.commit({"a": "tagged"})
    repository.git("tag", "-s", "-u", keys.ids["alice"], "-m", "signed", "v1.0.0", "main")
    await repositories.checkout(url, "v1.0.0", signatures=rule)
    repository.git("tag", "-d", "v1.0.0")
    with pytest.raises(Exception, match="there is no branch") as raised:
        await repositories.checkout(url, "v1.0.0", signatures=rule)
    assert raised.value.last_good_revision == commit
    again = opened()
    assert (await again.checkout(url, commit, signatures=rule)).tree.read_file("a") == b"tagged"
    stranger = SignatureRule((keys.ids["bob"],), rule.public_keys)
    with pytest.raises(SignatureError):
        await again.checkout(url, commit, signatures=stranger)


async def test_a_tag_that_the_host_lies_about_is_refused(
    repository, rule: SignatureRule, keys: Keys, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNUPGHOME", str(keys.home))
    repository.commit({"a": "good"})
    repository.git("tag", "-s", "-u", keys.ids["alice"], "-m", "signed", "v1.0.0", "main")
    evil = repository.commit({"a": "evil"})
    mirror = opened().mirror(str(repository.path))
    refs = await mirror.list_refs()
    lying = type(refs)({**refs.commits, "refs/tags/v1.0.0": evil}, refs.tag_objects)
    mirror._listed_refs = (mirror._clock() + 1e6, lying)
    with pytest.raises(BadSignature, match="does not point to"):
        await mirror.checkout("v1.0.0", signatures=rule)


async def test_nothing_of_the_keys_is_left_on_the_disk(
    repository, signer, rule: SignatureRule, opened: Opened, tmp_path: Path
) -> None:
    signer("alice")
    await opened().checkout(str(repository.path), "main", signatures=rule)
    assert [path.name for path in (tmp_path / "mirrors").iterdir() if path.name.startswith("keys-")] == []


async def test_without_gpg_the_error_names_it(
    repository, rule: SignatureRule, opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository.commit({"a": "x"})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(CannotVerify, match="gpg is not installed"):
        await opened().checkout(str(repository.path), "main", signatures=rule)


@pytest.mark.tier("all")
async def test_keys_that_are_no_keys_let_nobody_in(repository, signer, keys: Keys, opened: Opened) -> None:
    signer("alice")
    for bad in ({}, {"x": ""}, {keys.ids["alice"]: "not a key"}, {keys.ids["alice"]: keys.public("bob").popitem()[1]}):
        with pytest.raises(UnknownSigner):
            await opened().checkout(str(repository.path), "main", signatures=SignatureRule((keys.ids["alice"],), bad))


@pytest.mark.parametrize("allowed", ["", "alice", "A" * 8, "*", "0x"])
async def test_an_id_that_is_none_allows_nobody(repository, signer, keys: Keys, opened: Opened, allowed: str) -> None:
    signer("alice")
    rule = build_signature_rule([allowed], keys.public("alice"))
    assert rule is not None and short_key_id(allowed) == ""
    with pytest.raises(SignerNotAllowed):
        await opened().checkout(str(repository.path), "main", signatures=rule)


def test_a_project_without_signature_keys_asks_for_nothing(keys: Keys) -> None:
    assert build_signature_rule([], keys.public("alice")) is None
