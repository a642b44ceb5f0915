"""Verifies that a revision is signed with one of the keys that its project allows.

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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from argosy.errors import (
    BadSignature,
    CannotVerify,
    ExpiredSigner,
    SignatureError,
    SignerNotAllowed,
    UnknownSigner,
    Unsigned,
)
from argosy.gitops.source.git.command import TooMuchOutput, build_environment, build_git_argv, run_command

KEYS_CONFIG_MAP = "argocd-gpg-keys-cm"  # argo: the ConfigMap of public keys, by id
GPG_TIMEOUT_SECONDS = 20.0
MAX_KEYS_BYTES = 4 << 20  # bytes of all keys together
MAX_KEYS = 2000
# argo: imported keys are trusted; no keyserver is used.
GPG_OPTIONS = "batch no-tty no-autostart no-auto-key-retrieve no-auto-key-locate disable-dirmngr no-permission-warning"
_STATUS_LINE = re.compile(r"^\[GNUPG:\] ([A-Z_]+)(?: (.*))?$", re.MULTILINE)
_KEY_ID = re.compile(r"[0-9A-F]{16}|[0-9A-F]{40}")
_AUTHOR_LINE = re.compile(rb"^(?:author|tagger) (.*>)", re.MULTILINE)
MAX_AUTHOR_LENGTH = 200
_EXPIRED_RESULTS = {  # argo: the same words
    "EXPSIG": "expired signature",
    "EXPKEYSIG": "signed with expired key",
    "REVKEYSIG": "signed with revoked key",
}
_RESULT_KEYWORDS = ("GOODSIG", "BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG")


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """The allowed key ids of a project, and the public keys of the installation."""

    allowed_keys: tuple[str, ...]
    public_keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.allowed_keys, sorted(self.public_keys.items()))).encode()).hexdigest()[:32]

    def allows(self, key: str) -> bool:
        return key[-16:] in {
            allowed_id for allowed_key in self.allowed_keys if (allowed_id := short_key_id(allowed_key))
        }


@dataclass(frozen=True, slots=True)
class SignedObject:
    """A commit or tag of a mirror to verify."""

    folder: Path
    id: str
    is_tag: bool
    where: str  # the repository
    revision: str = ""  # the name of the tag, or the commit

    @property
    def name(self) -> str:
        return f"the {'tag' if self.is_tag else 'commit'} {self.id[:12]}"

    def describe_failure(self, author: str, result: str, key: str = "") -> str:
        """argo: the same sentence, for conditions."""
        return f"Failed verifying revision {self.revision or self.id} by '{author}': {result} (key_id={key})"


def build_signature_rule(allowed_keys: Sequence[str] | None, public_keys: Mapping[str, str]) -> SignatureRule | None:
    """Build the rule from a project's keys and argocd-gpg-keys-cm. None: the project requires no signature."""
    return None if allowed_keys is None else SignatureRule(tuple(allowed_keys), dict(public_keys))


def short_key_id(key: str) -> str:
    """argo: the last sixteen hex digits of a key id or fingerprint; empty if it is neither."""
    upper = key.strip().upper().removeprefix("0X")
    return upper[-16:] if _KEY_ID.fullmatch(upper) else ""


@contextlib.contextmanager
def add_rejected_revision(revision: str) -> Iterator[None]:
    """Add the commit to a SignatureError, so that it can be compared."""
    try:
        yield
    except SignatureError as error:
        error.rejected_revision = revision
        raise


async def verify_signature(signed: SignedObject, rule: SignatureRule, scratch: Path) -> str:
    """Return the id of the signing key. Raises SignatureError if the object is not signed as required."""
    program = shutil.which("gpg")
    if program is None:
        raise CannotVerify(
            "the project requires signed revisions, but gpg is not installed or not in PATH; install GnuPG",
            where=signed.where,
        )
    try:
        async with _open_keyring(program, rule, scratch, signed.where) as env:
            argv = build_git_argv(signed.folder, [f"verify-{'tag' if signed.is_tag else 'commit'}", "--raw", signed.id])
            verification = await run_command(argv, env=env, seconds=GPG_TIMEOUT_SECONDS)
            object_dump = await run_command(
                build_git_argv(signed.folder, ["cat-file", "-p", signed.id]), env=env, seconds=GPG_TIMEOUT_SECONDS
            )
    except TimeoutError:
        raise CannotVerify("gpg timed out; argosy will retry", where=signed.where) from None
    except TooMuchOutput:
        raise BadSignature(f"{signed.name} is too large to verify; recreate it", where=signed.where) from None
    header, _, message = object_dump.stdout.partition(b"\n\n")
    looks_signed = b"\n-----BEGIN " in message if signed.is_tag else b"\ngpgsig" in header
    checked = _CheckedObject(signed, _read_author(header), looks_signed)
    return _read_result(checked, rule, verification.code, _STATUS_LINE.findall(verification.stderr))


@dataclass(frozen=True, slots=True)
class _CheckedObject:
    """A commit or tag with what its content says about itself."""

    signed: SignedObject
    author: str
    looks_signed: bool


def _read_author(header: bytes) -> str:
    """Return the name and address of the author or tagger, as printable text of limited length."""
    match = _AUTHOR_LINE.search(header)
    text = match[1].decode(errors="replace") if match else "unknown"
    return "".join(char if char.isprintable() else "?" for char in text)[:MAX_AUTHOR_LENGTH]


@contextlib.asynccontextmanager
async def _open_keyring(program: str, rule: SignatureRule, scratch: Path, where: str) -> AsyncIterator[dict[str, str]]:
    """Yield the environment for a gpg that has only these keys, in a temporary folder."""
    if sum(map(len, rule.public_keys.values())) > MAX_KEYS_BYTES or len(rule.public_keys) > MAX_KEYS:
        raise CannotVerify(f"the ConfigMap {KEYS_CONFIG_MAP} contains too many keys; remove some", where=where)
    with tempfile.TemporaryDirectory(prefix="keys-", dir=scratch) as name:
        files = _write_keyring(Path(name), rule)
        # Other signature formats would make git start other programs.
        config = {"gpg.program": program, "gpg.x509.program": os.devnull, "gpg.ssh.program": os.devnull}
        variables = {"GNUPGHOME": name, "TMPDIR": name, "GIT_ALLOW_PROTOCOL": "none"}
        env = build_environment(config, variables)
        await run_command(
            [program, "--batch", "--quiet", "--import", "--", *files], env=env, seconds=GPG_TIMEOUT_SECONDS
        )
        yield env


def _write_keyring(home: Path, rule: SignatureRule) -> list[str]:
    """Write gpg.conf and one file per key: in one file, a truncated key would swallow the next one."""
    (home / "gpg.conf").write_text("\n".join([*GPG_OPTIONS.split(), "trust-model always", ""]))
    files = [home / f"key-{number}" for number in range(len(rule.public_keys))]
    for file, text in zip(files, rule.public_keys.values()):
        file.write_text(text, errors="replace")
    return [str(file) for file in files]


def _read_result(checked: _CheckedObject, rule: SignatureRule, code: int, status: Sequence[tuple[str, str]]) -> str:
    signed = checked.signed
    results = [(keyword, details.split()) for keyword, details in status if keyword in _RESULT_KEYWORDS]
    valid = [details.split() for keyword, details in status if keyword == "VALIDSIG"]
    if not results:
        raise _no_result_error(checked)
    keyword, fields = results[0]
    key = short_key_id(fields[0]) if fields else ""
    if len(results) > 1 or len(valid) > 1:
        failure = signed.describe_failure(checked.author, "bad signature", key)
        raise BadSignature(f"{failure}; it has more than one signature; recreate it with one", where=signed.where)
    if keyword != "GOODSIG" or code or not valid:
        raise _signature_error(checked, keyword, key)
    # The signing key may be a subkey; the id of its primary key comes last.
    signers = [short for part in (valid[0][0], valid[0][-1]) if (short := short_key_id(part))]
    if not any(rule.allows(signer) for signer in signers):
        failure = signed.describe_failure(checked.author, "signed with unallowed key", key)
        raise SignerNotAllowed(
            f"{failure}; sign it with a key that the project allows, or add this key to sourceIntegrity or "
            "signatureKeys of the project",
            where=signed.where,
        )
    return next(signer for signer in signers if rule.allows(signer))


def _no_result_error(checked: _CheckedObject) -> SignatureError:
    signed = checked.signed
    if checked.looks_signed:
        failure = signed.describe_failure(checked.author, "bad signature")
        return BadSignature(
            f"{failure}; gpg cannot read its signature, such as an ssh signature; sign it with GnuPG",
            where=signed.where,
        )
    command = "git tag -s" if signed.is_tag else "git commit -S"
    failure = signed.describe_failure(checked.author, "unsigned")
    return Unsigned(f"{failure}; sign it with `{command}` and push", where=signed.where)


def _signature_error(checked: _CheckedObject, keyword: str, key: str) -> SignatureError:
    signed = checked.signed
    if keyword == "ERRSIG":
        failure = signed.describe_failure(checked.author, "signed with key not in keyring", key)
        return UnknownSigner(
            f"{failure}; add the public key to the ConfigMap {KEYS_CONFIG_MAP}, or sign with a known key",
            where=signed.where,
        )
    if result := _EXPIRED_RESULTS.get(keyword):
        failure = signed.describe_failure(checked.author, result, key)
        return ExpiredSigner(
            f"{failure}; sign it again with a valid key, or renew the key in the ConfigMap {KEYS_CONFIG_MAP}",
            where=signed.where,
        )
    failure = signed.describe_failure(checked.author, "bad signature", key)
    return BadSignature(
        f"{failure}; the signature does not match its content; do not use it, and find out who pushed it",
        where=signed.where,
    )
