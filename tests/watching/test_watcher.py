"""Many trials in one process: they are picked up, kept apart, held within budgets, and ended together."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.config.load import Arguments, load
from evaluator.errors import InputError, OutputTaken
from evaluator.outcome import exit_code
from evaluator.watching.followed import Followed
from evaluator.watching.patterns import Pattern
from evaluator.watching.watcher import Watcher, Watching
from tests.s3.jobs import HEALTHY, TINY, VANISHING, Output, save_run
from tests.s3.traffic import Traffic, Wrong
from tests.watching.many_clock import ManyClock

Upload = Callable[[Path, str], str]


class Watched:
    """A watcher over the folder `runs`, with the test's clock."""

    def __init__(
        self, root: Path, pattern: str = "", *, rule: str = VANISHING, output: str = "", idle: bool = True,
        settings: tuple[str, ...] = (), **how: Any,
    ) -> None:  # fmt: skip
        self.root = root
        self.clock = ManyClock()
        self.told: list[tuple[str, str]] = []
        self.output = output or str(root / "out")
        pattern = pattern or f"{root}/runs/*"
        arguments = Arguments(trial=pattern, output=self.output, follow=True, rules=[rule], set=settings)
        self.watcher = Watcher(
            load(arguments, {}), Pattern(pattern, self.clock), Watching(until_idle=idle, **how), self.clock, self._tell
        )

    def _tell(self, one: Followed) -> None:
        self.told.append((one.match.name, one.state))

    def run(self) -> dict[str, Followed]:
        return {one.match.name: one for one in self.watcher.run()}

    def states(self) -> dict[str, str]:
        return {name: one.state for name, one in self.run().items()}

    def status(self, name: str) -> Any:
        return Output(f"{self.output}/{name}").status

    @property
    def file(self) -> Any:
        return json.loads((self.root / "out" / "watch.json").read_bytes())


def met(output: object) -> list[int]:
    """The steps at which something was found."""
    return [step for step, event in Output(output).found() if event == "met"]


def test_each_trial_has_its_own_output_and_verdict(tmp_path: Path):
    save_run(tmp_path / "runs" / "good", [HEALTHY] * 3)
    save_run(tmp_path / "runs" / "bad", [HEALTHY, TINY, HEALTHY])
    watched = Watched(tmp_path)
    found = watched.run()

    assert {name: exit_code(one.status) for name, one in found.items() if one.status} == {"good": 0, "bad": 1}
    assert met(tmp_path / "out" / "bad") == [1]
    assert met(tmp_path / "out" / "good") == []
    assert watched.status("bad")["trial"] == f"{tmp_path}/runs/bad"


def test_a_trial_that_appears_later_is_picked_up_and_so_is_a_folder_that_becomes_one(tmp_path: Path):
    (tmp_path / "runs" / "slow" / "checkpoints").mkdir(parents=True)
    watched = Watched(tmp_path, idle=False)
    clock = watched.clock
    clock.at(100, lambda: save_run(tmp_path / "runs" / "late", [HEALTHY]))
    clock.at(200, lambda: save_run(tmp_path / "runs" / "slow", [HEALTHY]))
    seen: list[Any] = []
    clock.at(90, lambda: seen.append(watched.file))
    clock.at(500, watched.watcher.stop)

    assert watched.states() == {"late": "ended", "slow": "ended"}
    assert seen[0]["no_trial_yet"] == [f"{tmp_path}/runs/slow"]
    assert seen[0]["ended_at"] is None
    assert watched.file["trials"] == {"ended": 2}
    assert watched.file["ended_at"] is not None


def test_a_folder_that_never_becomes_a_trial_is_looked_at_less_and_less_often(bucket: str, s3: Traffic, put: Any):
    put("runs/other/file")
    root = f"s3://{bucket}"
    watched = Watched(Path("unused"), f"{root}/runs/*/debug", output=f"{root}/out", idle=False)
    watched.clock.at(7200, watched.watcher.stop)
    s3.forget()
    watched.run()

    looks = [one for one in s3.asked if one.kind == "LIST" and one.key == "runs/other/debug/"]
    listings = [one for one in s3.asked if one.kind == "LIST" and one.key == "runs/"]
    assert 20 < len(looks) < 50
    assert 230 < len(listings) < 250


def test_a_trial_whose_job_ended_before_is_not_evaluated_again(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [TINY])
    Watched(tmp_path).run()
    before = Output(tmp_path / "out" / "a").status
    save_run(tmp_path / "runs" / "b", [HEALTHY])
    again = Watched(tmp_path)
    found = again.run()

    assert {name: one.state for name, one in found.items()} == {"a": "ended before", "b": "ended"}
    assert Output(tmp_path / "out" / "a").status == before
    # its verdict counts all the same
    assert found["a"].row(again.watcher._config).exit_code("info", 0.0) == 1


def test_restart_evaluates_also_what_ended_before(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [TINY])
    Watched(tmp_path).run()

    assert Watched(tmp_path, restart=True).states() == {"a": "ended"}


def test_a_trial_whose_job_was_stopped_is_gone_on_with(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [HEALTHY], end=False)
    first = Watched(tmp_path, idle=False)
    first.clock.at(60, first.watcher.stop)
    states = first.states()
    save_run(tmp_path / "runs" / "a", [TINY], first=1)

    assert states == {"a": "ended"}
    assert Output(tmp_path / "out" / "a").status["job"]["ended_because"] == "stop_signal"
    assert Watched(tmp_path).states() == {"a": "ended"}
    assert met(tmp_path / "out" / "a") == [1]


@pytest.mark.parametrize("how", ["unfinished job", "taken", "foreign"])
def test_what_is_wrong_with_one_trial_does_not_end_the_others(tmp_path: Path, how: str):
    for name in "abc":
        save_run(tmp_path / "runs" / name, [TINY])
    output = tmp_path / "out" / "b"
    output.mkdir(parents=True)
    if how == "unfinished job":
        other = Watched(tmp_path, rule="NonFinite")
        shutil.copytree(tmp_path / "runs" / "b", tmp_path / "b")
        other.run()
        status = json.loads((output / "status.json").read_bytes())
        status["job"]["ended_at"] = status["job"]["ended_because"] = None
        (output / "status.json").write_text(json.dumps(status))
        for name in "ac":
            shutil.rmtree(tmp_path / "out" / name)
    elif how == "taken":
        (output / ".lock").mkdir()
    else:
        (output / "status.json").write_text("mine")
    watched = Watched(tmp_path)
    found = watched.run()

    assert {name: one.state for name, one in found.items()} == {"a": "ended", "b": "failed", "c": "ended"}
    assert found["b"].code == 2
    assert str(output) in found["b"].problem
    assert ("b", "failed") in watched.told


def test_damaged_files_of_one_trial_do_not_end_the_others(tmp_path: Path):
    for name in "ab":
        save_run(tmp_path / "runs" / name, [TINY])
    for path in (tmp_path / "runs" / "a").rglob("*.json"):
        path.write_bytes(b"\xff{")

    assert Watched(tmp_path).states() == {"a": "ended", "b": "ended"}
    assert met(tmp_path / "out" / "b") == [0]


def test_a_defect_is_left_in_the_output_of_its_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in "ab":
        save_run(tmp_path / "runs" / name, [TINY])
    real = Followed.run

    def stumble(one: Followed, job: Any) -> None:
        if one.match.name == "a":
            raise KeyError("a secret")
        real(one, job)

    monkeypatch.setattr(Followed, "run", stumble)
    found = Watched(tmp_path).run()

    assert (found["a"].code, found["b"].state) == (4, "ended")
    assert "secret" not in found["a"].problem
    assert "a secret" in (tmp_path / "out" / "a" / "traceback.txt").read_text()


def test_no_more_trials_are_followed_at_once_than_is_said_and_the_others_get_their_turn(tmp_path: Path):
    for name in "abcdefg":
        save_run(tmp_path / "runs" / name, [HEALTHY])
    watched = Watched(tmp_path, most=2)
    at_once: list[int] = []
    told = watched._tell

    def count(one: Followed) -> None:
        told(one)
        at_once.append(sum(thread.name.startswith("trial ") for thread in threading.enumerate()))

    watched.watcher._crew._tell = count

    assert set(watched.states().values()) == {"ended"}
    assert max(at_once) == 2


def test_a_trial_that_is_removed_ends_and_a_new_one_under_its_name_is_another(tmp_path: Path):
    run = save_run(tmp_path / "runs" / "a", [TINY], end=False)
    save_run(tmp_path / "runs" / "b", [HEALTHY], end=False)
    watched = Watched(tmp_path, idle=False)
    clock = watched.clock
    clock.at(100, lambda: shutil.rmtree(run))
    clock.at(300, lambda: save_run(run, [HEALTHY, HEALTHY]))
    clock.at(600, watched.watcher.stop)
    states = watched.states()

    assert states == {"a": "ended", "b": "ended"}
    assert [state for name, state in watched.told if name == "a"] == ["followed", "removed", "followed", "ended"]
    assert watched.status("a")["job"]["steps"]["complete"] == 2
    assert Output(tmp_path / "out" / "a").found() == []
    assert watched.status("b")["job"]["ended_because"] == "stop_signal"


def test_trials_are_not_removed_because_the_folder_of_all_is_away_for_a_while(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [HEALTHY], end=False)
    watched = Watched(tmp_path, idle=False)

    def back() -> None:
        (tmp_path / "away").rename(tmp_path / "runs")
        save_run(tmp_path / "runs" / "a", [TINY], first=1)

    watched.clock.at(100, lambda: (tmp_path / "runs").rename(tmp_path / "away"))
    watched.clock.at(400, back)
    watched.clock.at(800, watched.watcher.stop)

    assert watched.states() == {"a": "ended"}
    assert watched.told == [("a", "followed"), ("a", "ended")]
    assert met(tmp_path / "out" / "a") == [1]


def test_a_stop_lets_all_trials_take_what_is_saved(tmp_path: Path):
    for name in "abc":
        save_run(tmp_path / "runs" / name, [HEALTHY], end=False)
    watched = Watched(tmp_path, idle=False, settings=("poll_min=600", "poll_max=600"))

    def more() -> None:
        for name in "abc":
            save_run(tmp_path / "runs" / name, [TINY], end=False, first=1)
        watched.watcher.stop()

    watched.clock.at(60, more)
    watched.run()

    assert [met(tmp_path / "out" / name) for name in "abc"] == [[1]] * 3


def test_a_stop_before_anything_begins_leaves_nothing_behind(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [HEALTHY])
    watched = Watched(tmp_path, idle=False)
    watched.watcher.stop()
    watched.run()

    assert not (tmp_path / "out" / "a" / "status.json").exists()
    assert watched.told == []


def test_trials_that_began_together_do_not_look_together_for_ever_nor_too_often(tmp_path: Path):
    for number in range(20):
        save_run(tmp_path / "runs" / f"job-{number}", [HEALTHY], end=False)
    watched = Watched(tmp_path, idle=False)
    watched.clock.at(1800, watched.watcher.stop)
    watched.run()

    late = [at for name, at in watched.clock.waited if name.startswith("trial ") and 1500 <= at < 1740]
    by_second = [sum(second <= at < second + 1 for at in late) for second in range(1500, 1740)]
    # 20 looks every 24 to 30 s
    assert 140 <= len(late) <= 220
    assert max(by_second) < 10


def test_looks_are_not_more_often_than_the_budget_allows(tmp_path: Path):
    for number in range(10):
        save_run(tmp_path / "runs" / f"job-{number}", [HEALTHY], end=False)
    watched = Watched(tmp_path, idle=False, requests_per_second=0.5, settings=("poll_max=1",))
    looks: list[int] = []
    watched.clock.at(100, lambda: looks.append(_lists(tmp_path)))
    watched.clock.at(500, lambda: looks.append(_lists(tmp_path)))
    watched.clock.at(501, watched.watcher.stop)
    watched.run()

    # two listings of each look; the status tells of them up to a poll ago
    assert (looks[1] - looks[0]) <= 2 * 0.5 * 400 * 1.1 + 40


def _lists(root: Path) -> int:
    statuses = [json.loads(path.read_bytes()) for path in root.glob("out/*/status.json")]
    return sum(status["job"]["requests"]["list"] for status in statuses)


def test_a_name_cannot_take_the_place_of_what_lies_beside_the_outputs(tmp_path: Path):
    for name in ("watch.json", ".x", "a b", "ü%2F"):
        save_run(tmp_path / "runs" / name, [HEALTHY])
    Watched(tmp_path).run()

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "%77atch.json", "%C3%BC%252F", ".lock", "a%20b", "watch.json",
    ]  # fmt: skip


def test_names_of_several_parts_do_not_collide(tmp_path: Path):
    for name in ("a/b-c", "a-b/c"):
        save_run(tmp_path / "runs" / name, [HEALTHY])
    found = Watched(tmp_path, f"{tmp_path}/runs/*/*").run()

    assert {name: Path(one.output).name for name, one in found.items()} == {"a/b-c": "a%2Fb-c", "a-b/c": "a-b%2Fc"}


def test_its_own_output_is_not_watched(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [HEALTHY])
    watched = Watched(tmp_path, output=str(tmp_path / "runs" / "out"))

    assert watched.states() == {"a": "ended"}


def test_a_second_watcher_with_the_same_output_is_refused(tmp_path: Path):
    save_run(tmp_path / "runs" / "a", [HEALTHY], end=False)
    first, second = Watched(tmp_path, idle=False), Watched(tmp_path)
    refused: list[str] = []

    def try_it() -> None:
        with pytest.raises(OutputTaken) as caught:
            second.watcher.run()
        refused.append(str(caught.value))

    first.clock.at(60, try_it)
    first.clock.at(90, first.watcher.stop)
    first.run()

    assert "another evaluator is writing to it" in refused[0]


@pytest.mark.parametrize(("there", "what"), [([], "matches nothing"), (["x"], "matches no trial")])
def test_what_was_not_found_is_said(tmp_path: Path, there: list[str], what: str):
    (tmp_path / "runs").mkdir()
    for name in there:
        (tmp_path / "runs" / name).mkdir()
    watched = Watched(tmp_path)
    watched.run()

    assert what in str(watched.watcher.nothing_found())


def test_trials_on_s3_share_one_client_and_are_followed_like_local_ones(
    tmp_path: Path, bucket: str, upload: Upload, s3: Traffic, monkeypatch: pytest.MonkeyPatch
):
    from evaluator.storage import _s3_connection  # noqa: PLC0415

    made: list[str] = []
    real = _s3_connection.make_client

    def make(where: str) -> object:
        made.append(where)
        return real(where)

    monkeypatch.setattr(_s3_connection, "make_client", make)
    for name, value in (("a", TINY), ("b", HEALTHY)):
        upload(save_run(tmp_path / name, [HEALTHY, value]), f"runs/{name}/debug-output")
    root = f"s3://{bucket}"
    watched = Watched(tmp_path, f"{root}/runs/*/debug-output", output=f"{root}/out")

    assert watched.states() == {"a": "ended", "b": "ended"}
    assert met(f"{root}/out/a") == [1]
    assert met(f"{root}/out/b") == []
    assert len(made) == 1 + 2  # and those of the test itself


def test_an_outage_of_the_listing_is_waited_for(tmp_path: Path, bucket: str, upload: Upload, s3: Traffic):
    upload(save_run(tmp_path / "a", [HEALTHY]), "runs/a")
    root = f"s3://{bucket}"
    watched = Watched(tmp_path, f"{root}/runs/*", output=str(tmp_path / "out"), idle=False)

    def fail() -> None:
        s3.fault = lambda asked: Wrong() if asked.key == "runs/" else None

    def work() -> None:
        s3.fault = lambda _: None
        upload(save_run(tmp_path / "b", [HEALTHY]), "runs/b")

    watched.clock.at(100, fail)
    watched.clock.at(1000, work)
    watched.clock.at(2000, watched.watcher.stop)

    assert watched.states() == {"a": "ended", "b": "ended"}


def test_a_listing_that_is_refused_at_the_start_is_a_mistake(tmp_path: Path, bucket: str, s3: Traffic):
    s3.fault = lambda _: Wrong(403, "AccessDenied")
    watched = Watched(tmp_path, f"s3://{bucket}/runs/*")

    with pytest.raises(InputError, match="s3:ListBucket"):
        watched.run()


def test_a_trial_whose_storage_failed_is_tried_again_later(tmp_path: Path, bucket: str, upload: Upload, s3: Traffic):
    root = f"s3://{bucket}"
    upload(save_run(tmp_path / "a", [HEALTHY], end=False), "runs/a")
    upload(save_run(tmp_path / "b", [HEALTHY], end=False), "runs/b")
    given = ("idle_timeout=2000", "start_timeout=2000")
    watched = Watched(tmp_path, f"{root}/runs/*", output=str(tmp_path / "out"), idle=False, settings=given)

    def fail() -> None:
        s3.fault = lambda asked: Wrong() if asked.key.startswith("runs/a") else None

    def work() -> None:
        s3.fault = lambda _: None
        for name in "ab":
            upload(save_run(tmp_path / name, [TINY], first=1), f"runs/{name}")

    watched.clock.at(100, fail)
    watched.clock.at(3500, work)
    watched.clock.at(6000, watched.watcher.stop)

    assert watched.states() == {"a": "ended", "b": "ended"}
    told = [state for name, state in watched.told if name == "a"]
    assert told[:2] == ["followed", "failed"]
    assert told[-2:] == ["followed", "ended"]
    assert met(tmp_path / "out" / "a") == [1]
    assert "b" not in [name for name, state in watched.told if state == "failed"]
