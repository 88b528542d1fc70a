"""A processing job with several hosts: the first does the job, all work for it, and all end."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from evaluator.formats.key_names import END_MARKER
from evaluator.sagemaker.cluster import Hosts, hosts_of
from evaluator.sagemaker.processing_job import read_container
from tests.commands.program import check_outputs, finish, log_lines, start, wait_for
from tests.engine.dask_jobs import faulty_run, run

RULES = ("VanishingGradient", "NonFinite")


def two_addresses() -> tuple[str, str]:
    """Addresses of this machine that nobody else uses, so that the ports are free there."""
    network = f"127.{1 + secrets.randbelow(250)}.{secrets.randbelow(250)}"
    return f"{network}.1", f"{network}.2"


def host(root: Path, trial: Path, current: str, *hosts: str) -> Path:
    """The folder /opt/ml of one host."""
    (root / "config").mkdir(parents=True)
    (root / "processing" / "input" / "config").mkdir(parents=True)
    (root / "config" / "resourceconfig.json").write_text(json.dumps({"current_host": current, "hosts": hosts}))
    rules = [{"use": rule, "on_finding": "continue"} for rule in RULES]
    settings = {"trial": str(trial), "late_grace": 0.1, "poll_min": 0.05, "poll_max": 0.1}
    (root / "processing" / "input" / "config" / "rules.json").write_text(
        json.dumps({"rule": rules, "settings": settings})
    )
    return root


def begin(root: Path, **environment: str) -> subprocess.Popen[str]:
    return start("container", "--ml-root", root, environment=environment)


def output(root: Path) -> Path:
    return root / "processing" / "output" / "rule"


def notes(status: dict[str, Any]) -> list[Any]:
    return list(status["job"]["notes"])


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty_run(tmp_path_factory.mktemp("faulty") / "run")


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    """A run that is not over yet, so that all hosts are there before the job is."""
    return faulty_run(tmp_path / "run", steps=80, end=False)


def test_two_hosts_come_to_what_one_comes_to(growing, tmp_path):
    names = two_addresses()
    others = begin(host(tmp_path / "two", growing, names[1], *names))
    lines = log_lines(others)
    first = begin(host(tmp_path / "one", growing, names[0], *names))
    wait_for(lines, "working_for")
    (growing / END_MARKER).touch()

    ran = finish(first)
    wait_for(lines, "work_ended")

    assert (ran.code, others.wait(timeout=60)) == (1, 0)
    status = check_outputs(output(tmp_path / "one"))
    local = run(growing, tmp_path / "local", rules=[f"{rule}:on_finding=continue" for rule in RULES])
    assert notes(status) == []
    assert status["job"]["settings"]["engine"] == "dask"
    assert [_told(rule) for rule in status["DebugRuleEvaluationStatuses"]] == [_told(rule) for rule in local.rules]
    assert {finding["rule"] for finding in local.findings} == set(RULES)
    assert not output(tmp_path / "two").exists()


def test_all_that_the_hosts_say_are_log_lines(growing, tmp_path):
    names = two_addresses()
    first = begin(host(tmp_path / "one", growing, names[0], *names))
    others = begin(host(tmp_path / "two", growing, names[1], *names))
    timer = threading.Timer(8, (growing / END_MARKER).touch)
    timer.start()

    for ran in (finish(first), finish(others)):
        assert (ran.out, ran.lines) == ("", [])


def test_a_host_whose_first_one_never_comes_ends_at_a_stop_signal(trial, tmp_path):
    names = two_addresses()
    other = begin(host(tmp_path, trial, names[1], *names))
    wait_for(log_lines(other), "waiting_for_scheduler")
    other.send_signal(signal.SIGTERM)

    assert other.wait(timeout=60) == 0


def test_a_host_that_works_ends_at_a_stop_signal_and_the_job_goes_on(growing, tmp_path):
    names = two_addresses()
    first = begin(host(tmp_path / "one", growing, names[0], *names))
    other = begin(host(tmp_path / "two", growing, names[1], *names))
    wait_for(log_lines(other), "working_for")
    other.send_signal(signal.SIGTERM)

    assert other.wait(timeout=60) == 0
    (growing / END_MARKER).touch()
    assert finish(first).code == 1


def test_a_first_host_that_cannot_start_a_cluster_reads_alone(trial, tmp_path):
    nowhere = "10.255.255.1"  # an address of another network: nothing can listen there
    ran = finish(begin(host(tmp_path, trial, nowhere, nowhere, "10.255.255.2")))

    status = check_outputs(output(tmp_path))
    assert ran.code == 1
    assert notes(status)[0].startswith("no Dask cluster could be started (")
    assert status["job"]["settings"]["engine"] == "local"


def _told(rule: dict[str, Any]) -> tuple[object, ...]:
    return tuple(rule[key] for key in ("RuleConfigurationName", "RuleEvaluationStatus", "Findings", "Evaluation"))


class TestHosts:
    def test_the_first_in_natural_order_leads(self):
        hosts = hosts_of({"current_host": "algo-2", "hosts": ["algo-10", "algo-2", "algo-1"]})

        assert hosts == Hosts("algo-2", ("algo-1", "algo-2", "algo-10"))
        assert (hosts.leads, hosts.scheduler) == (False, "tcp://algo-1:8786")

    @pytest.mark.parametrize(
        "resources",
        [
            {},
            {"current_host": "algo-1", "hosts": ["algo-1"]},
            {"current_host": "algo-1", "hosts": ["algo-1", "algo-1", 5, ""]},
            {"current_host": "algo-3", "hosts": ["algo-1", "algo-2"]},
            {"current_host": None, "hosts": ["algo-1", "algo-2"]},
            {"current_host": "algo-1", "hosts": "algo-1,algo-2"},
        ],
    )
    def test_everything_else_is_one_host(self, resources):
        assert hosts_of(resources) is None

    @pytest.mark.parametrize(
        ("environment", "engine", "shared"),
        [
            ({}, "dask", True),
            ({"RULE_EVALUATOR_ENGINE": "local"}, "local", False),
            ({"RULE_EVALUATOR_ENGINE": "dask", "RULE_EVALUATOR_SCHEDULER": "tcp://there:8786"}, "dask", False),
        ],
    )
    def test_who_says_otherwise_gets_no_cluster(self, trial, tmp_path, environment, engine, shared):
        reading = read_container(host(tmp_path, trial, "algo-1", "algo-1", "algo-2"), environment)

        assert reading.config is not None
        assert reading.config.job.settings.engine == engine
        assert (reading.config.hosts is not None) == shared
        assert len(reading.config.job.notes) == (0 if shared else 1)
