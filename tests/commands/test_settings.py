"""settings: every setting, with its value and where it comes from."""

from __future__ import annotations

from evaluator.config.settings import Settings
from tests.commands.program import call


def test_every_setting_is_listed_with_where_its_value_comes_from(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RULE_EVALUATOR_POLL_MAX", "9")
    (tmp_path / "job.toml").write_text("[settings]\nrelist = 7\npoll_max = 8\n")

    ran = call(capsys, "settings", "--config", tmp_path / "job.toml", "--set", "late_grace=5", "--json")

    rows = {row["name"]: row for row in ran.document["settings"]}
    assert ran.code == 0
    assert list(rows) == list(Settings.model_fields)
    assert rows["late_grace"] == {
        "name": "late_grace",
        "value": 5,
        "default": 30,
        "unit": "seconds",
        "from": "command line",
        "variable": "RULE_EVALUATOR_LATE_GRACE",
        "description": Settings.model_fields["late_grace"].description,
    }
    assert [rows[name]["from"] for name in ("poll_max", "relist", "output")] == [
        *("environment", "configuration file", "default")
    ]
    assert (rows["poll_max"]["value"], rows["relist"]["value"]) == (9, 7)


def test_people_get_a_table(capsys):
    out = call(capsys, "settings", "--set", "late_grace=5").out

    assert all(name in out for name in Settings.model_fields)
    assert "Default: 30 s." in out
    assert "256 MiB" in out


def test_all_mistakes_are_told(capsys):
    ran = call(capsys, "settings", "--set", "late_grase=5", "--set", "poll_min=x", "--set", "y")

    assert ran.code == 2
    assert len(ran.err.splitlines()) == 3
