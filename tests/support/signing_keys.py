"""GnuPG keys of several people, generated for a test.

In: a folder. Out: Keys. Never: touches the user's keys.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

LONG_AGO = "20200101T000000"


class Keys:
    """A GnuPG home with the private keys of several people."""

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
        """Return public keys as in the ConfigMap argocd-gpg-keys-cm."""
        return {self.ids[name]: self.gpg("--armor", "--export", self.fingerprint(name)) for name in names}


@contextlib.contextmanager
def open_keys(home: Path) -> Iterator[Keys]:
    if not shutil.which("gpg"):
        pytest.skip("gpg is not installed")
    yield Keys(home)
    subprocess.run(["gpgconf", "--kill", "all"], env={"PATH": os.environ["PATH"], "GNUPGHOME": str(home)}, check=False)
