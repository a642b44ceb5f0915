"""What people are told when a command fails, and the code that scripts read."""

from __future__ import annotations

import pytest

from argosy.cli.error_messages import report_error
from argosy.cli.exit_codes import EXIT_ERROR, EXIT_REFUSED, EXIT_UNREACHABLE
from argosy.errors import (
    ArgosyError,
    ClusterError,
    Conflict,
    Forbidden,
    ManifestError,
    PolicyError,
    TransientError,
    UserError,
)
from argosy.feature_table import COMMANDS
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable
from argosy.kube.resource_key import ResourceKey
from argosy.main import main

KEY = ResourceKey("", "ConfigMap", "team", "a")
NEED_NO_VERB = (
    *("align", "check", "controller", "demo", "doctor", "explain", "init", "kubectl", "oc", "preview", "render"),
    *("install", "open", "serve", "trace", "uninstall", "version"),
)

ROWS = [
    (
        UserError("is no folder; choose another", where="x"),
        EXIT_ERROR,
        "argosy: x: is no folder\nnext: choose another\n",
    ),
    (ManifestError("bad", where="f", line=3), EXIT_ERROR, "argosy: f:3: bad\nnext: correct this and run"),
    (PolicyError("closed; wait"), EXIT_REFUSED, "argosy: closed\nnext: wait\n"),
    (TransientError("no answer; try later"), EXIT_UNREACHABLE, "argosy: no answer\nnext: try later\n"),
    (
        ClusterError("typed (a/b; /v1, Kind=X): .foo", code=500, key=KEY),
        EXIT_ERROR,
        "argosy: ConfigMap/team/a: typed (a/b; /v1, Kind=X): .foo (500)\n"
        "next: correct the object and run the command again\n",
    ),
    (
        ClusterError("Unauthorized", code=401),
        EXIT_REFUSED,
        "argosy: Unauthorized (401)\n"
        "next: log in again, for example with oc login; for a sandbox: argosy sandbox kubeconfig\n",
    ),
    (
        ApiServerUnavailable("api.example.com:6443: cannot be reached: timed out"),
        EXIT_UNREACHABLE,
        "argosy: api.example.com:6443: cannot be reached: timed out\n"
        "next: check that the cluster is running and reachable over the network (VPN, proxy)\n",
    ),
    (
        ApiServerUnavailable("127.0.0.1:6443: cannot be reached: refused"),
        EXIT_UNREACHABLE,
        "argosy: 127.0.0.1:6443: cannot be reached: refused\n"
        "next: check that it is still running: argosy demo status, argosy sandbox status\n",
    ),
    (
        ApiServerNotTrusted("127.0.0.1:6443: the certificate is not trusted by the CA in /ca.crt: self-signed"),
        EXIT_ERROR,
        "argosy: 127.0.0.1:6443: the certificate is not trusted by the CA in /ca.crt: self-signed\n"
        "next: set certificate-authority of this cluster in the kubeconfig",
    ),
    (ApiServerUnavailable("x: busy", retry_after=3), EXIT_UNREACHABLE, "argosy: x: busy\nnext: try again in 3 s\n"),
    (TransientError("no Git host"), EXIT_UNREACHABLE, "argosy: no Git host\nnext: correct this and run"),
    (Forbidden("no", key=KEY), EXIT_REFUSED, "argosy: ConfigMap/team/a: no (403)\nnext: ask an administrator"),
    (Conflict("stale", key=KEY), EXIT_ERROR, "argosy: ConfigMap/team/a: stale (409)\nnext: read the object again"),
]


@pytest.mark.parametrize(("error", "code", "message"), ROWS, ids=lambda value: type(value).__name__)
def test_a_failure_says_what_and_what_next(
    error: ArgosyError, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_error(error) == code
    assert capsys.readouterr().err.startswith(message)


def test_a_mistyped_flag_leads_to_the_help_of_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["argosy", "sandbox", "start", "--prot", "5"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == EXIT_ERROR
    assert capsys.readouterr().err.endswith("next: argosy sandbox start --help\n")


def test_a_mistyped_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sandbx"])
    assert "did you mean 'sandbox'?" in capsys.readouterr().err


def test_a_verb_without_its_group_is_told_where_it_belongs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["argosy", "sync", "models"])
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr().err
    assert ended.value.code == EXIT_ERROR
    assert "did you mean 'argosy app sync'?" in output
    assert output.endswith("next: argosy --help\n")


@pytest.mark.parametrize("group", [name for name in COMMANDS if name not in NEED_NO_VERB])
def test_a_group_alone_shows_its_verbs_and_is_no_success(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([group])
    captured = capsys.readouterr()
    assert ended.value.code == EXIT_ERROR
    assert captured.out.startswith(f"usage: argosy {group}") and "Examples:" in captured.out and captured.err == ""


def test_argocds_groups_alone_end_as_its_own_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app"], program="argocd") == 1
    assert "sync" in capsys.readouterr().out


@pytest.mark.parametrize("line", [["version"], ["app", "list"], ["controller"], ["sandbox", "status"]])
def test_a_mode_of_confinement_that_does_not_exist_is_refused_with_those_that_do(
    line: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARGOSY_CONFINE", "require")
    assert main(line) == 2
    output = capsys.readouterr().err
    assert "ARGOSY_CONFINE=require is invalid" in output
    assert "next: set ARGOSY_CONFINE to required or best-effort, or unset it for the default" in output


@pytest.mark.parametrize("mode", ["required", "best-effort", " Best-Effort ", ""])
def test_a_mode_of_confinement_that_exists_is_no_mistake(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_CONFINE", mode)
    assert main(["version"]) == 0
