"""The message file is there exactly when there is something to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.errors import OutputError
from evaluator.sinks.base import Outputs
from evaluator.sinks.message_file import MessageFile
from evaluator.storage.memory import MemoryStore
from evaluator.testing import FakeClock
from tests.sinks.contract import SinkContract
from tests.sinks.made import make_rule, make_status

MET = (
    "RuleEvaluationConditionMet: Evaluation of the rule VanishingGradient at step 3 resulted in the condition being met"
)


class TestMessageFile(SinkContract):
    @pytest.fixture
    def path(self, tmp_path: Path):
        return tmp_path / "output" / "message"

    @pytest.fixture
    def sink(self, path: Path):
        return MessageFile(path)

    def test_a_finding_is_its_text(self, sink, path):
        sink.close(make_status(make_rule(word="IssuesFound")))

        assert path.read_text() == MET

    def test_nothing_to_say_leaves_no_file_of_before(self, sink, path):
        sink.close(make_status(make_rule(word="IssuesFound")))
        sink.close(make_status(make_rule(word="NoIssuesFound")))

        assert not path.exists()

    def test_a_finding_that_does_not_count_is_not_told(self, path):
        MessageFile(path, fail_on="critical").close(make_status(make_rule(word="IssuesFound")))

        assert not path.exists()

    def test_a_place_that_cannot_be_written_is_an_output_error(self, tmp_path: Path):
        (tmp_path / "output").write_text("a file")

        with pytest.raises(OutputError, match="cannot be written"):
            MessageFile(tmp_path / "output" / "message").close(make_status(make_rule(word="IssuesFound")))

    def test_outside_of_a_container_there_is_none(self):
        assert MessageFile.build(Outputs(MemoryStore(), FakeClock())) is None
