"""Verifies that a revision is signed with one of the signatureKeys of its project.

In: a commit or tag of a mirror, public keys, the ids of the allowed keys. Out: the id of the signing key, or a
SignatureError that says what to do. Never: uses the user's own keys or gpg settings; fetches a key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from argosy.errors import (
    BadSignature,
    CannotVerify,
    ExpiredSigner,
    NotVerified,
    SignerNotAllowed,
    UnknownSigner,
    Unsigned,
)
from argosy.gitops.source.git.command import TooMuchOutput, environment, git_argv, run

KEYS = "argocd-gpg-keys-cm"  # argo: the ConfigMap of public keys, by id
SECONDS = 20.0
MOST_KEYS = 4 << 20  # bytes of all keys together
MOST_FILES = 2000
# argo: imported keys are trusted; no keyserver is used.
SETTINGS = "batch no-tty no-autostart no-auto-key-retrieve no-auto-key-locate disable-dirmngr no-permission-warning"
_STATUS = re.compile(r"^\[GNUPG:\] ([A-Z_]+)(?: (.*))?$", re.MULTILINE)
_KEY_ID = re.compile(r"[0-9A-F]{16}|[0-9A-F]{40}")
_VERDICTS = ("GOODSIG", "BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG")


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """The allowed key ids of a project, and the public keys of the installation."""

    allowed: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.allowed, sorted(self.keys.items()))).encode()).hexdigest()[:32]

    def allows(self, key: str) -> bool:
        return key[-16:] in {short for one in self.allowed if (short := short_id(one))}


@dataclass(frozen=True, slots=True)
class Signed:
    """A commit or tag of a mirror to verify."""

    folder: Path
    id: str
    is_tag: bool
    where: str  # the repository

    @property
    def name(self) -> str:
        return f"the {'tag' if self.is_tag else 'commit'} {self.id[:12]}"


def signature_rule(allowed: Sequence[str], keys: Mapping[str, str]) -> SignatureRule | None:
    """Build the rule from a project's signatureKeys and argocd-gpg-keys-cm. None: the project requires no signature."""
    return SignatureRule(tuple(allowed), dict(keys)) if allowed else None


def short_id(key: str) -> str:
    """argo: the last sixteen hex digits of a key id or fingerprint; empty if it is neither."""
    upper = key.strip().upper().removeprefix("0X")
    return upper[-16:] if _KEY_ID.fullmatch(upper) else ""


async def verify(signed: Signed, rule: SignatureRule, scratch: Path) -> str:
    """Return the id of the signing key. Raises SignatureError if the object is not signed as required."""
    program = shutil.which("gpg")
    if program is None:
        raise CannotVerify(
            "the project requires signed revisions, but gpg is not installed or not in PATH; install GnuPG",
            where=signed.where,
        )
    try:
        async with _keyring(program, rule, scratch, signed.where) as env:
            argv = git_argv(signed.folder, [f"verify-{'tag' if signed.is_tag else 'commit'}", "--raw", signed.id])
            done = await run(argv, env=env, seconds=SECONDS)
            found = await run(git_argv(signed.folder, ["cat-file", "-p", signed.id]), env=env, seconds=SECONDS)
    except TimeoutError:
        raise CannotVerify("gpg timed out; argosy will retry", where=signed.where) from None
    except TooMuchOutput:
        raise BadSignature(f"{signed.name} is too large to verify; recreate it", where=signed.where) from None
    head, _, message = found.printed.partition(b"\n\n")
    looks_signed = b"\n-----BEGIN " in message if signed.is_tag else b"\ngpgsig" in head
    return _judged(signed, rule, done.code, _STATUS.findall(done.said), looks_signed)


@contextlib.asynccontextmanager
async def _keyring(program: str, rule: SignatureRule, scratch: Path, where: str) -> AsyncIterator[dict[str, str]]:
    """Yield the environment for a gpg that has only these keys, in a temporary folder."""
    if sum(map(len, rule.keys.values())) > MOST_KEYS or len(rule.keys) > MOST_FILES:
        raise CannotVerify(f"the ConfigMap {KEYS} contains too many keys; remove some", where=where)
    with tempfile.TemporaryDirectory(prefix="keys-", dir=scratch) as name:
        files = _write(Path(name), rule)
        # Other signature formats would make git start other programs.
        config = {"gpg.program": program, "gpg.x509.program": os.devnull, "gpg.ssh.program": os.devnull}
        given = {"GNUPGHOME": name, "TMPDIR": name, "GIT_ALLOW_PROTOCOL": "none"}
        env = environment(config, given)
        await run([program, "--batch", "--quiet", "--import", "--", *files], env=env, seconds=SECONDS)
        yield env


def _write(home: Path, rule: SignatureRule) -> list[str]:
    """Write gpg.conf and one file per key: in one file, a truncated key would swallow the next one."""
    (home / "gpg.conf").write_text("\n".join([*SETTINGS.split(), "trust-model always", ""]))
    files = [home / f"key-{number}" for number in range(len(rule.keys))]
    for file, text in zip(files, rule.keys.values()):
        file.write_text(text, errors="replace")
    return [str(file) for file in files]


def _judged(
    signed: Signed, rule: SignatureRule, code: int, status: Sequence[tuple[str, str]], looks_signed: bool
) -> str:
    verdicts = [(word, rest.split()) for word, rest in status if word in _VERDICTS]
    valid = [rest.split() for word, rest in status if word == "VALIDSIG"]
    if not verdicts:
        raise _without_verdict(signed, looks_signed)
    word, words = verdicts[0]
    key = short_id(words[0]) if words else ""
    if len(verdicts) > 1 or len(valid) > 1:
        raise BadSignature(f"{signed.name} has more than one signature; recreate it with one", where=signed.where)
    if word != "GOODSIG" or code or not valid:
        raise _refusal(signed, word, key)
    # The signing key may be a subkey; the id of its primary key comes last.
    signers = [short for part in (valid[0][0], valid[0][-1]) if (short := short_id(part))]
    if not any(rule.allows(signer) for signer in signers):
        raise SignerNotAllowed(
            f"{signed.name} is signed with key {key}, which is not in the signatureKeys of the project; "
            "sign it with one of them, or add the key there",
            where=signed.where,
        )
    return next(signer for signer in signers if rule.allows(signer))


def _without_verdict(signed: Signed, looks_signed: bool) -> NotVerified:
    if looks_signed:
        return BadSignature(
            f"{signed.name} has a signature that gpg cannot read, such as an ssh signature; sign it with GnuPG",
            where=signed.where,
        )
    how = "git tag -s" if signed.is_tag else "git commit -S"
    return Unsigned(
        f"{signed.name} is not signed, but the project requires it; sign it with `{how}` and push, or remove "
        "signatureKeys from the project",
        where=signed.where,
    )


def _refusal(signed: Signed, word: str, key: str) -> NotVerified:
    if word == "ERRSIG":
        return UnknownSigner(
            f"{signed.name} is signed with key {key}, whose public key is unknown; add it to the ConfigMap "
            f"{KEYS}, or sign with a known key",
            where=signed.where,
        )
    expired = {"EXPSIG": "a signature that has expired", "EXPKEYSIG": f"key {key}, which has expired"}
    expired["REVKEYSIG"] = f"key {key}, which was revoked"
    if word in expired:
        return ExpiredSigner(
            f"{signed.name} is signed with {expired[word]}; sign it again with a valid key, or renew the key in the "
            f"ConfigMap {KEYS}",
            where=signed.where,
        )
    return BadSignature(
        f"the signature of {signed.name} (key {key or 'unknown'}) does not match its content; do not use it, and find "
        "out who pushed it",
        where=signed.where,
    )
