import pytest

from evaluator.config.settings import MIB, Settings, resolve_settings, unit, user_rules_allowed
from evaluator.errors import InputError


def test_without_anything_given_every_setting_has_its_default():
    settings, origins, mistakes = resolve_settings({}, {"HOME": "/root"}, {}, {})

    assert (Settings(), []) == (settings, mistakes)
    assert dict.fromkeys(Settings.model_fields, "default") == origins


def test_each_place_wins_over_the_ones_after_it():
    places = (
        {"late_grace": "1"},
        {"RULE_EVALUATOR_LATE_GRACE": "2", "RULE_EVALUATOR_RELIST": "2"},
        {"late_grace": 3, "relist": 3, "stop_grace": 3},
        {"late_grace": "4", "relist": "4", "stop_grace": "4", "start_timeout": "4"},
    )

    settings, origins, mistakes = resolve_settings(*places, defaults={"follow": True})

    assert mistakes == []
    assert (
        settings.late_grace,
        settings.relist,
        settings.stop_grace,
        settings.start_timeout,
        settings.follow,
    ) == (1, 2, 3, 4, True)
    assert [origins[name] for name in ("late_grace", "relist", "stop_grace", "start_timeout", "follow", "trial")] == [
        "command line",
        "environment",
        "configuration file",
        "processingjobconfig.json",
        "default",
        "default",
    ]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("256 MiB", 256 * MIB),
        ("2GiB", 2048 * MIB),
        ("1.5 kib", 1536),
        ("1 MB", 1_000_000),
        ("1048576", MIB),
        ("64 B", 64),
        (1048576, MIB),
        ("9" * 400, int("9" * 400)),
    ],
)
def test_a_size_may_have_a_unit(text, size):
    settings, _, mistakes = resolve_settings({"memory_budget": text}, {}, {}, {})

    assert ([], size) == (mistakes, settings.memory_budget)


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("memory_budget", "256 MiBs", "KiB, MiB or GiB"),
        ("memory_budget", "much", "for example 256 MiB"),
        ("memory_budget", "0", "greater than 0"),
        ("idle_timeout", "soon", "a number (default: 3600"),
        ("idle_timeout", "inf", "a finite number"),
        ("idle_timeout", "-1", "at least 0"),
        ("poll_min", "0", "greater than 0"),
        ("log_level", "loud", "'debug', 'info', 'warning' or 'error'"),
        ("follow", "perhaps", "True or False"),
    ],
)
def test_a_value_that_does_not_fit_is_a_mistake_and_the_default_stands_in(name, value, right):
    settings, origins, mistakes = resolve_settings({name: value}, {}, {}, {})

    assert [f"command line: {name}"] == [mistake.where for mistake in mistakes]
    assert right in mistakes[0].would_be_right
    assert (getattr(Settings(), name), "default") == (getattr(settings, name), origins[name])


def test_the_container_default_stands_in_for_a_mistaken_value():
    settings, _, mistakes = resolve_settings({}, {"RULE_EVALUATOR_FOLLOW": "x"}, {}, {}, {"follow": True})

    assert [mistake.where for mistake in mistakes] == ["RULE_EVALUATOR_FOLLOW"]
    assert settings.follow


def test_unknown_names_in_every_place_are_mistakes_with_the_nearest_name():
    _, _, mistakes = resolve_settings(
        {"idle_timout": "1"}, {"RULE_EVALUATOR_FOLOW": "1"}, {"start_timeut": 1}, {"relits": "1"}
    )

    assert [mistake.would_be_right.split("'")[1] for mistake in mistakes] == [
        "idle_timeout",
        "RULE_EVALUATOR_FOLLOW",
        "start_timeout",
        "relist",
    ]


@pytest.mark.parametrize("variable", ["RULE_EVALUATOR_CONFIG", "RULE_EVALUATORS", "FOLLOW", "rule_evaluator_x"])
def test_variables_that_are_no_settings_are_left_alone(variable):
    _, _, mistakes = resolve_settings({}, {variable: "x"}, {}, {})

    assert mistakes == []


def test_an_empty_variable_counts_as_not_set():
    settings, origins, mistakes = resolve_settings({}, {"RULE_EVALUATOR_OUTPUT": ""}, {"output": "there"}, {})

    assert (mistakes, settings.output, origins["output"]) == ([], "there", "configuration file")


def test_the_shortest_poll_must_not_be_above_the_longest():
    settings, _, mistakes = resolve_settings({"poll_min": "60"}, {}, {}, {})

    assert [str(mistake) for mistake in mistakes] == ["settings: poll_min (60) must not be above poll_max (30)"]
    assert settings.poll_min == 1


def test_other_trials_are_a_comma_separated_list_of_paths():
    settings, _, _ = resolve_settings({}, {"RULE_EVALUATOR_OTHER_TRIALS": "a, b"}, {}, {})

    assert settings.other_trials == ("a", "b")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_says_what_it_is_for_and_numbers_have_a_unit(name):
    field = Settings.model_fields[name]

    assert field.description
    assert (unit(name) != "") == (field.annotation in (int, float))


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("1 GiB", 1024 * MIB)])
def test_the_memory_of_a_rule_file_may_be_without_limit(text, size):
    settings, _, mistakes = resolve_settings({"user_memory": text}, {}, {}, {})

    assert ([], size) == (mistakes, settings.user_memory)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_memory", "-1"),
        ("user_memory", "much"),
        ("user_step_timeout", "0"),
        ("user_import_timeout", "inf"),
        ("user_error_budget", "-1"),
        ("user_error_budget", "1.5"),
        ("allow_user_rules", "perhaps"),
    ],
)
def test_a_limit_of_rule_files_that_does_not_fit_is_a_mistake(name, value):
    _, _, mistakes = resolve_settings({name: value}, {}, {}, {})

    assert [mistake.what for mistake in mistakes] == [f"{value!r} does not fit"]


def test_commands_without_settings_know_whether_rules_of_the_users_are_allowed():
    assert user_rules_allowed({"RULE_EVALUATOR_RELIST": "never"})
    assert not user_rules_allowed({"RULE_EVALUATOR_ALLOW_USER_RULES": "false"})
    with pytest.raises(InputError, match="RULE_EVALUATOR_ALLOW_USER_RULES: 'perhaps' does not fit"):
        user_rules_allowed({"RULE_EVALUATOR_ALLOW_USER_RULES": "perhaps"})
