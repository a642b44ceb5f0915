"""Error messages of failed commands, and their exit codes."""

from __future__ import annotations

import pytest

from argosy.cli.error_messages import report_error
from argosy.cli.exit_codes import EXIT_ERROR, EXIT_REFUSED, EXIT_UNREACHABLE
from argosy.command_modules import COMMANDS
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
def test_error_report_has_cause_next_step_and_exit_code(
    error: ArgosyError, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report_error(error) == code
    assert capsys.readouterr().err.startswith(message)


def test_unknown_flag_error_points_to_help_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["argosy", "sandbox", "start", "--prot", "5"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == EXIT_ERROR
    assert capsys.readouterr().err.endswith("next: argosy sandbox start --help\n")


def test_mistyped_command_is_corrected_by_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sandbx"])
    assert "did you mean 'sandbox'?" in capsys.readouterr().err


def test_verb_without_its_group_suggests_the_full_command(
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
def test_command_group_without_verb_prints_usage_and_fails(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([group])
    captured = capsys.readouterr()
    assert ended.value.code == EXIT_ERROR
    assert captured.out.startswith(f"usage: argosy {group}") and "Examples:" in captured.out and captured.err == ""


def test_argocd_group_without_verb_exits_1_like_argocd(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app"], program="argocd") == 1
    assert "sync" in capsys.readouterr().out


@pytest.mark.parametrize("line", [["version"], ["app", "list"], ["controller"], ["sandbox", "status"]])
def test_invalid_argosy_confine_value_is_rejected_with_valid_modes(
    line: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARGOSY_CONFINE", "require")
    assert main(line) == 2
    output = capsys.readouterr().err
    assert "ARGOSY_CONFINE=require is invalid" in output
    assert "next: set ARGOSY_CONFINE to required or best-effort, or unset it for the default" in output


@pytest.mark.parametrize("mode", ["required", "best-effort", " Best-Effort ", ""])
def test_valid_argosy_confine_value_is_accepted(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_CONFINE", mode)
    assert main(["version"]) == 0
