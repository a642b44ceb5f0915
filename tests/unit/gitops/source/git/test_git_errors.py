"""Errors built from git output, redaction of that output, and parsing of untrusted bytes."""

from __future__ import annotations

import contextlib
import re
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from argosy.errors import (
    CorruptSource,
    SourceError,
    SourceRefused,
    SourceTooLarge,
    SourceUnreachable,
    UnknownRef,
)
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.source.git.command import GitFailed
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.git_errors import build_source_error, redact
from argosy.gitops.source.git.object_reader import GitObject, ObjectReader
from argosy.gitops.source.git.refs import read_refs
from argosy.gitops.source.repository_access_settings import SourceLimits
from support.examples import examples

CURL = "fatal: unable to access 'https://h/x/'"
UNTRUSTED = "the host's certificate is not trusted"
UNREADABLE = "the certificate of the authority or of the client cannot be read"
# Messages of libcurl with OpenSSL and with GnuTLS, old and new.
CERTIFICATES = [
    (f"{CURL}: server verification failed: certificate signer not trusted. (CAfile: /t/authority)", UNTRUSTED),
    (f"{CURL}: server verification failed: certificate has expired. (CAfile: /t/authority)", "has expired or is not"),
    (f"{CURL}: SSL certificate verify result: self-signed certificate (18)", UNTRUSTED),
    (f"{CURL}: error setting certificate verify locations:  CAfile: /t/authority CApath: none", UNREADABLE),
    (f"{CURL}: error setting certificate file: /t/authority", UNREADABLE),
    (f"{CURL}: error reading ca cert file /t/authority (Error while reading file.)", UNREADABLE),
    (f"{CURL}: error adding trust anchors from file: /t/authority", UNREADABLE),
    (f"{CURL}: error reading X.509 key or certificate file: Base64 decoding error.", UNREADABLE),
    (f"{CURL}: could not load PEM client certificate from /t/certificate, OpenSSL error", UNREADABLE),
    (f"{CURL}: unable to set private key file: '/t/key' type PEM", UNREADABLE),
    (f"{CURL}: SSL: unable to obtain common name from peer certificate", "the host's certificate is not accepted"),
]
SAID = [
    ("fatal: unable to access 'https://h/x/': Could not resolve host: h", SourceUnreachable),
    ("fatal: unable to access 'https://h/x/': Failed to connect to h port 443: Connection refused", SourceUnreachable),
    ("fatal: unable to access 'https://h/x/': The requested URL returned error: 503", SourceUnreachable),
    ("fatal: unable to access 'https://h/x/': The requested URL returned error: 403", SourceRefused),
    (
        "ssh: connect to host h port 22: Connection timed out\nfatal: Could not read from remote repository.",
        SourceUnreachable,
    ),
    (
        "kex_exchange_identification: Connection closed by remote host\nfatal: Could not read from remote",
        SourceUnreachable,
    ),
    ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", SourceRefused),
    ("Host key verification failed.\nfatal: Could not read from remote repository.", SourceRefused),
    ("No ED25519 host key is known for h and you have requested strict checking.", SourceRefused),
    ("remote: Repository not found.\nfatal: repository 'https://h/x/' not found", SourceRefused),
    ("fatal: could not read Username for 'https://h': terminal prompts disabled", SourceRefused),
    ("fatal: Authentication failed for 'https://h/x/'", SourceRefused),
    ("fatal: unable to access 'https://h/x/': server certificate verification failed. CAfile: none", SourceRefused),
    ("fatal: unable to access 'https://h/x/': SSL certificate problem: self-signed certificate", SourceRefused),
    ("fatal: unable to access 'https://h/x/': SSL certificate problem: certificate has expired", SourceRefused),
    ("fatal: unable to access 'https://h/x/': SSL: no alternative certificate subject name matches", SourceRefused),
    ("fatal: unable to access 'https://h/x/': gnutls_handshake() failed: An unexpected TLS packet", SourceRefused),
    ("fatal: unable to access 'https://h/x/': OpenSSL/3: error:0A00010B:SSL routines::wrong version", SourceRefused),
    (
        "fatal: unable to access 'https://h/x/': gnutls_handshake() failed: Error in the pull function.",
        SourceUnreachable,
    ),
    (
        "error: RPC failed; curl 56 GnuTLS recv error (-110): TLS connection was non-properly terminated",
        SourceUnreachable,
    ),
    ("error: RPC failed; curl 56 OpenSSL SSL_read: Connection reset by peer, errno 104", SourceUnreachable),
    ("fatal: unable to access 'https://h/x/': OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection", SourceUnreachable),
    (
        "fatal: unable to access 'https://h/SSL.git/': Failed to connect to h port 443: Connection refused",
        SourceUnreachable,
    ),
    (
        "fatal: unable to access 'https://h/certificate problem/': The requested URL returned error: 503",
        SourceUnreachable,
    ),
    (f"{CURL}: Could not resolve host: certificate.example.com", SourceUnreachable),
    (f"{CURL}: Failed to connect to certificate.example.com port 443: Connection refused", SourceUnreachable),
    *((message, SourceRefused) for message, _ in CERTIFICATES),
    ("fatal: transport 'ext' not allowed", SourceRefused),
    ("fatal: detected dubious ownership in repository at '/srv/x'", SourceRefused),
    ("error: object 1234: hasDotgit: contains '.git'\nfatal: fsck error in packed object", CorruptSource),
    ("fatal: bad object 1234\nerror: h did not send all necessary objects", CorruptSource),
    ("fatal: early EOF\nfatal: fetch-pack: invalid index-pack output", CorruptSource),
    ("error: RPC failed; curl 56 Recv failure: Connection reset by peer", SourceUnreachable),
    ("fatal: write error: No space left on device", SourceUnreachable),
    ("fatal: cannot pwrite: File too large", SourceTooLarge),
    ("fatal: remote error: upload-pack: not our ref 1234", UnknownRef),
    ("something new", SourceError),
    ("", SourceError),
]


@pytest.mark.parametrize(("said", "kind"), SAID)
def test_git_output_becomes_an_error_of_the_right_type(said: str, kind: type[SourceError]) -> None:
    error = build_source_error(GitFailed(128, said), "https://h/x", None)
    assert type(error) is kind
    assert error.where == "https://h/x"
    assert len(error.message) > 20


@pytest.mark.parametrize(("said", "sentence"), CERTIFICATES)
def test_certificate_error_says_which_one_to_fix_and_names_no_local_file(said: str, sentence: str) -> None:
    message = build_source_error(GitFailed(128, said), "https://h/x", None).message
    assert sentence in message
    assert "CAfile" not in message and "/t/" not in message


def test_secrets_and_escape_sequences_are_removed_from_git_output() -> None:
    message = "fatal: https://me:tok-123@h/x Authorization: Basic abcd== \x1b[2Jhunter22 hunter22-long token=xyz9"
    redacted = redact(message, ["hunter22", "hunter22-long"])
    for secret in ("tok-123", "abcd==", "hunter22", "-long", "xyz9", "\x1b"):
        assert secret not in redacted
    assert "https://h/x" in redacted


@pytest.mark.parametrize("guess", ["hunter22", "swordfish"])
@pytest.mark.parametrize(
    "said", ["fatal: repository 'https://h/{}/' not found", "fatal: couldn't find remote ref refs/heads/{}"]
)
def test_guessed_credential_in_a_url_or_ref_is_reported_whether_right_or_wrong(said: str, guess: str) -> None:
    failed, args = GitFailed(128, said.format(guess)), ["fetch", f"+refs/heads/{guess}:refs/a/b"]
    assert guess in build_source_error(failed, f"https://h/{guess}", None, ["hunter22"], args).message
    assert "hunter22" not in build_source_error(failed, "https://h/other", None, ["hunter22"], ["fetch"]).message


@pytest.mark.parametrize("guess", ["hunter22", "swordfi5h"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_encoded_guess_in_a_url_is_reported_encoded_and_decoded(guess: str, depth: int) -> None:
    encoded = "".join(f"%{ord(character):02x}" for character in guess)
    for _ in range(depth - 1):
        encoded = encoded.replace("%", "%25")
    for spelling in (guess, encoded):
        failed = GitFailed(128, f"fatal: repository 'https://h/{spelling}/' not found")
        assert spelling in build_source_error(failed, f"https://h/{encoded}", None, ["hunter22"]).message


@pytest.mark.parametrize("guess", ["hunter22", "swordfi5h"])
def test_guess_as_a_host_name_is_reported_in_lower_case(guess: str) -> None:
    failed = GitFailed(128, f"fatal: Could not resolve host: {guess}.example")
    assert guess in build_source_error(failed, f"https://{guess.upper()}.example/x", None, ["hunter22"]).message


@pytest.mark.parametrize("guess", ["pa/ss wörd", "pa/ss word"])
def test_guess_in_a_url_is_reported_in_every_encoding_of_git(guess: str) -> None:
    for spelling in (quote(guess), quote(guess, safe=""), b64encode(guess.encode()).decode()):
        failed = GitFailed(128, f"fatal: repository 'https://h/{spelling}/' not found")
        assert spelling in build_source_error(failed, f"https://h/{quote(guess)}", None, ["pa/ss wörd"]).message


def test_encoded_credentials_are_removed_from_git_output() -> None:
    secret = "pa/ss+w?rd~~>>"
    raw = secret.encode()
    quoted = quote(secret, safe="")
    forms = [quote(secret), quoted, re.sub("%..", lambda match: match[0].lower(), quoted), b64encode(raw).decode()]
    for form in [*forms, urlsafe_b64encode(raw).decode(), b64encode(raw).decode().rstrip("=")]:
        assert form.rstrip("=") not in redact(f"remote: cannot use <{form}> here", [secret])


def test_redaction_accepts_a_url_that_cannot_be_parsed() -> None:
    assert "hunter22" in redact("no host: http://[hunter22", ["hunter22"], ["http://[hunter22"])


def test_path_of_the_mirror_folder_is_not_in_errors() -> None:
    error = build_source_error(
        GitFailed(128, "fatal: bad config line 1 in file /data/m.git/config"), "url", Path("/data/m.git")
    )
    assert "/data" not in str(error) and "the mirror/config" in str(error)


class _Canned(ObjectReader):
    """A reader that has one tree of arbitrary bytes."""

    def __init__(self, content: bytes) -> None:
        super().__init__(Path("/nonexistent"), SourceLimits(folder_entries=50), "here")
        self.content = content

    def read(self, id: str) -> GitObject:
        return GitObject("tree", self.content)


@given(some.binary(max_size=200))
def test_arbitrary_bytes_are_a_tree_or_a_source_error(content: bytes) -> None:
    with contextlib.suppress(CorruptSource, SourceTooLarge):
        GitTree(_Canned(content), "0" * 40).list_folder("")


@given(some.binary(max_size=200))
def test_arbitrary_bytes_are_a_ref_listing_or_a_source_error(listing: bytes) -> None:
    with contextlib.suppress(CorruptSource):
        read_refs(listing, "here").find_commit("main")


@settings(max_examples=examples())
@given(some.text(max_size=60) | some.from_regex(r"(https|ssh|file)://[ -~]{0,30}", fullmatch=True))
def test_arbitrary_text_is_a_url_or_is_refused(text: str) -> None:
    with contextlib.suppress(SourceRefused):
        url = parse_url(text)
        assert not str(url).startswith("-")
        assert parse_url(str(url)).identity == url.identity
