"""The metrics, the alert rules, the dashboard and the document that explains them name the same figures."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.domain.policy import Policy
from bot.domain.prices import Prices
from bot.jobs.metrics import Metrics
from bot.store.database import Database
from bot.store.rules import Policies
from tests.kit import FakeClock

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = (ROOT / "docs" / "operations.md").read_text()
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "nod.json").read_text())
_SUFFIX = re.compile(r"_(total|count|sum|bucket)$")


async def offered(database: Database, clock: FakeClock) -> set[str]:
    text = (await Metrics(database, {}, clock, Prices(), Policies(Policy())).render_metrics()).decode()
    return {_SUFFIX.sub("", name) for name in re.findall(r"^# TYPE (nod_\w+)", text, re.MULTILINE)}


def named(text: str) -> set[str]:
    return {_SUFFIX.sub("", name) for name in re.findall(r"\bnod_[a-z_]+", text)}


def expressions() -> list[str]:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    targets: list[Any] = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [each["expr"] for each in (*rules, *targets)]


async def test_the_document_explains_every_metric_and_no_other(database: Database, clock: FakeClock):
    explained = named("".join(line for line in DOCUMENT.splitlines() if line.startswith("| `nod_")))
    assert explained == await offered(database, clock)


async def test_alerts_and_dashboard_ask_for_metrics_that_there_are(database: Database, clock: FakeClock):
    asked = named("\n".join(expressions()))
    assert asked - await offered(database, clock) == set()
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's prometheus package")
def test_prometheus_takes_the_rules_and_every_expression_of_the_dashboard(tmp_path: Path):
    panels = [
        {"record": f"panel_{n}", "expr": expr.replace("$__rate_interval", "5m")}
        for n, expr in enumerate(expressions())
    ]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": panels}]}))
    [scrape] = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    (tmp_path / "prometheus.yml").write_text(
        scrape.replace("/etc/prometheus/nod-token", str(tmp_path / "token"))
    )
    (tmp_path / "token").write_text("x")
    for words in (
        ["rules", str(ALERTS), str(tmp_path / "panels.yml")],
        ["config", str(tmp_path / "prometheus.yml")],
    ):
        done = subprocess.run(["promtool", "check", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607 - the one on PATH
        assert done.returncode == 0, done.stdout + done.stderr
