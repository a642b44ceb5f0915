"""A newcomer's first five minutes in a real terminal and a real browser, row by row; the score is printed at the end.

Each row gets 2 points as specified, 1 with friction, 0 if it fails. Seconds are shown next to their budget; they decide
nothing, because the machine may run other tests. Without Chromium the browser row is skipped, and the other rows check
only the terminal.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.deadlines import HANG_SECONDS, wait_until
from support.first_visit import Look, Row, Visit, Visitor, has_chromium, is_built

for library in ("nbclient", "nbformat", "ipykernel"):
    pytest.importorskip(library)

pytestmark = pytest.mark.tier("all")
STAGING, MODEL = "llmops-staging", "staging-qwen25-05b-instruct"
SHIPPED = 0.9  # share of all points; also, no row may have 0 points
NOTEBOOK = {
    "parameters": "alpha = 0.5",
    "fit": "loss = float('nan') if alpha > 0.5 else 0.1",
    "tell": "print(f'loss: {loss}')",
}


def run_the_demo(visitor: Visitor, look: Look) -> None:
    began = time.monotonic()
    visitor.first.begin("argosy demo --api-port 0")
    visitor.printed = visitor.first.until(r"Ctrl-C[^\n]*\n")
    look.seconds = time.monotonic() - began
    look.shows(visitor.printed, r"(?s)(^… .*){3}", r"3 applications, 1 model", r"^ +argosy app list")
    look.hides(visitor.printed, "[Pp]assword", "[Dd]ocker", r"\? ")
    look.wants(visitor.printed, word_that_nothing_stays=r"Ctrl-C.*nothing")


def look_at_the_page(visitor: Visitor, look: Look) -> None:
    address = re.search(r"page +(http://\S+/enter\?code=\S+)", visitor.printed)
    assert address is not None, visitor.printed
    tab = visitor.browser.tab("apps")
    tab.goto(address[1])
    look.seconds = visitor.browser.first_paint(tab)
    look.shows(visitor.browser.row(tab, "llmops-dev"), "Synced.*Healthy")
    look.shows(visitor.browser.row(tab, STAGING), "OutOfSync.*differ")
    look.shows(visitor.browser.row(tab, "llmops-production"), "OutOfSync.*Missing.*never synced")
    assert "password" not in tab.content().lower()
    tab.evaluate("window.isTheSame = true")  # lost when the page is loaded again


def list_applications(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type("argosy app list"))
    look.shows(text, r"llmops-dev +✔ Synced +✔ Healthy", rf"{STAGING} +▲ OutOfSync", r"llmops-production .*◌ Missing")
    look.shows(text, r"differ", r"never synced")
    look.wants(text, hint_to_the_difference=rf"next: argosy app diff {STAGING}")


def understand(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type(f"argosy app diff {STAGING}"), code=1)
    look.shows(text, r"changed in Git \(.*kustomization\.yaml:\d+, [0-9a-f]{7} \w+")
    assert text.count("no drift: set by") == 2 and len(text.splitlines()) < 12, text


def deploy(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type(f"argosy app sync {STAGING}"))
    look.shows(text, r"wave 0 ", r"wave 1 .*InferenceService", r"succeeded")
    look.wants(text, last_line_with_state_and_seconds=r"✔ Synced +\S \w+ in \d")
    visitor.browser.follows(STAGING, "Synced")
    look.took(visitor.type(f"argosy app wait {STAGING} --health --timeout {HANG_SECONDS:g}"))


def ask_the_model(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type(f'argosy model try {MODEL} "hello"'))
    look.shows(text, r"simulated .*You said: hello", r"\d ms", r"^ +curl ")
    look.hides(text, "Host:")


def break_it(visitor: Visitor, look: Look) -> None:
    look.shows(look.took(visitor.type("argosy demo break model")), "read the model from a claim")
    began = time.monotonic()
    ends = began + HANG_SECONDS
    while "✖" not in (text := visitor.type("argosy app list").text):
        assert time.monotonic() < ends, text
    look.seconds = time.monotonic() - began
    look.shows(text, rf"{STAGING} .*✖ Degraded", r'persistentvolumeclaim "models"')
    look.shows(visitor.type("argosy app list -o wide").text, r'persistentvolumeclaim "models" not found')
    visitor.browser.follows(STAGING, "Degraded.*persistentvolumeclaim")
    cause = visitor.type(f"argosy model get {MODEL} -n {STAGING}").text
    look.wants(cause, way_to_the_notebook_that_should_have_written_it="argosy trace")
    look.wants(visitor.type(f"argosy trace {MODEL} -n {STAGING}").text, word_of_notebooks="no notebook run")


def roll_back(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type(f"argosy app rollback {STAGING}", **{r"\[y/N\] ": "y"}))
    look.took(visitor.type(f"argosy app wait {STAGING} --health --timeout {HANG_SECONDS:g}"))
    look.shows(text, r"rollback to [0-9a-f]{7} succeeded")
    look.hides(text, "cannot be initiated")
    plan = r"rolling back from [0-9a-f]{7} to deployment \d+: [0-9a-f]{7}"
    look.wants(text, plan_before_it_happens=plan, question_before_it_happens=r"\[y/N\]")
    look.wants(text, word_of_what_changes=r"^ +InferenceService/(.|\n)*storageUri .* → ")


def run_a_notebook(visitor: Visitor, look: Look) -> None:
    folder = _notebooks(visitor, look)
    text = look.took(visitor.type(f"argosy notebook run {folder}/train.ipynb -p alpha 0.6"), code=1)
    look.shows(text, r"1/\d+ .*✔", r"loss: nan", r"report +\S+\.html", r"FAILED")
    text = visitor.type(f"argosy notebook run {folder}/train.ipynb -p alpha 0.6 --level learning")
    assert text.code == 0, text
    look.shows(text.text, "loss: nan", "PASSED")


def _notebooks(visitor: Visitor, look: Look) -> str:
    """Return the notebook folder that the demo names; otherwise create one of the visitor's own."""
    named = re.search(r"argosy notebook run (\S+)/train\.ipynb", visitor.printed)
    if named:
        return named[1]
    look.wants("", notebook_to_try_that_the_demo_names="argosy notebook run")
    import nbformat

    cells = [nbformat.v4.new_code_cell(source) for source in NOTEBOOK.values()]
    cells[0]["metadata"]["tags"] = ["parameters"]
    folder = visitor.home / "demo" / "notebooks"
    folder.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "train.ipynb")
    return "demo/notebooks"


def begin_a_repository(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type("argosy init my-models"))
    look.shows(text, r"deploy_model/", r"argocd-apps/", r"notebooks/", r"argosy\.yaml", r"\.github/")
    assert visitor.type("git -C my-models log --oneline | wc -l").text.split()[-1] == "1"
    assert (visitor.home / "my-models" / ".github" / "workflows" / "validate.yaml").is_file()


def check_a_repository(visitor: Visitor, look: Look) -> None:
    repository = re.search(r"repository +(\S+)", visitor.printed)
    assert repository is not None
    visitor.type(f"git clone -q {repository[1]} llmops-demo && cd llmops-demo")
    text = look.took(visitor.type("argosy check"))
    look.shows(text, r"3 Applications, \d+ objects: 0 errors", r"\.yaml:\d+: AGY\d+ \w+: .*; \w+")
    look.hides(text, "no schema found", "[Cc]ould not find schema")


def preview_a_change(visitor: Visitor, look: Look) -> None:
    overlay = "llmops-via-argocd/deploy_model/overlays/dev/kustomization.yaml"
    visitor.type(f"""sed -i 's/value: "500m"/value: "800m"/' {overlay}""")
    text = look.took(visitor.type("argosy preview"))
    look.shows(text, r"llmops-dev", r"500m.*→.*800m", r"restart", rf"{re.escape(overlay)}:\d+")
    look.hides(text, STAGING, "kubeconfig")
    look.wants(text, sentence_about_production=r"production (is )?untouched|production: no|touch\w* no production")
    look.shows(visitor.type("argosy preview -o md").text, r"llmops-dev", r"^\|", r"<details>")
    visitor.type("git checkout -q -- .")


def plan_a_promotion(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.type("argosy promote plan --to staging"))
    look.shows(text, r"^promote r\d+ \([0-9a-f]{7}\) to staging, from dev", r"^moves:", r"^ +[✔✖] check ")
    look.wants(text, word_of_what_stays=r"^stays as it is in staging: (?s:.{0,400}?)memory")  # may span several lines
    onwards = visitor.type("argosy promote plan --to production").text
    look.wants(onwards, word_of_who_can_approve=r"✖ approval .*can open it")


def look_at_a_cluster(visitor: Visitor, look: Look) -> None:
    """Run doctor on the demo, through a kubeconfig in which it looks like the visitor's own cluster."""
    before = _applications(visitor)
    kubeconfig = re.search(r"KUBECONFIG=(\S+)", visitor.printed)
    assert kubeconfig is not None
    document = yaml.safe_load(Path(kubeconfig[1]).read_text())
    document["contexts"][0]["name"] = "my-ocp"
    document.pop("current-context", None)
    (visitor.home / ".kube").mkdir(exist_ok=True)
    (visitor.home / ".kube" / "config").write_text(yaml.safe_dump(document))
    result = visitor.type("argosy doctor --context my-ocp")
    look.seconds += result.seconds
    assert result.code in (0, 1), result
    look.shows(result.text, r"(?i)argo ?cd", STAGING, r"llmops-production")
    look.hides(result.text)
    look.wants(result.text, word_that_nothing_was_changed=r"nothing (was )?(changed|applied)", owner=r"argocd-cm")
    assert _applications(visitor) == before


def _applications(visitor: Visitor) -> dict[str, object]:
    listed = visitor.type("argosy kubectl get applications -A -o yaml > ~/apps.yaml")
    assert listed.code == 0, listed
    listing = yaml.safe_load((visitor.home / "apps.yaml").read_text())
    return {application["metadata"]["name"]: application["spec"] for application in listing["items"]}


def leave(visitor: Visitor, look: Look) -> None:
    text = look.took(visitor.first.interrupt())
    look.shows(text, r"stopped")
    wait_until(lambda: not visitor.processes(), "no process is left")
    look.wants(text, way_to_go_on=r"argosy ")


ROWS = (
    Row("0:00", "run", "argosy demo", 5.0, run_the_demo),
    Row("0:30", "look", "(browser)", 0.5, look_at_the_page if has_chromium() else None, "a Chromium"),
    Row("0:50", "list", "argosy app list", 0.6, list_applications),
    Row("1:05", "understand", f"argosy app diff {STAGING}", 0.8, understand),
    Row("1:25", "deploy", f"argosy app sync {STAGING}", 10.0, deploy),
    Row("1:45", "ask", f'argosy model try {MODEL} "hello"', 1.0, ask_the_model),
    Row("2:05", "break", "argosy demo break model", 2.0, break_it),
    Row("2:30", "roll back", f"argosy app rollback {STAGING}", 8.0, roll_back),
    Row("2:50", "notebook", "argosy notebook run train.ipynb -p alpha 0.6", 15.0, run_a_notebook),
    Row("3:20", "own repository", "argosy init my-models", 1.0, begin_a_repository),
    Row("3:35", "check", "argosy check", 3.0, check_a_repository),
    Row("4:00", "preview", "argosy preview", 2.0, preview_a_change if is_built("preview") else None, "preview"),
    Row("4:20", "promote", "argosy promote plan", 1.0, plan_a_promotion if is_built("promote") else None, "promote"),
    Row("4:40", "real cluster", "argosy doctor", 10.0, look_at_a_cluster if is_built("doctor") else None, "doctor"),
    Row("5:00", "leave", "Ctrl-C", 2.0, leave),
)
PLAYED = [row.step for row in ROWS if row.play is not None]


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    visitor = Visitor(tmp_path_factory.mktemp("visitor"))
    try:
        yield Visit(ROWS, visitor)
    finally:
        visitor.close()


@pytest.mark.parametrize("step", PLAYED)
def test_row_gets_at_least_one_point(visit: Visit, step: str) -> None:
    mark = visit.mark(step)
    assert mark.points > 0, mark.failure


def test_first_five_minutes_get_90_percent_of_the_points(visit: Visit, capsys: pytest.CaptureFixture[str]) -> None:
    for step in PLAYED:
        visit.mark(step)
    with capsys.disabled():
        print(f"\n{visit.table()}", file=sys.__stderr__)
    points = sum(mark.points for mark in visit.marks.values())
    assert points >= SHIPPED * 2 * len(PLAYED), visit.table()
