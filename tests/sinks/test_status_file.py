"""status.json is written when it has to be, and not more often."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from evaluator import strict_json
from evaluator.clock import timestamp
from evaluator.errors import OutputError, StorageError
from evaluator.sinks.status_file import StatusFile
from evaluator.status import schema
from evaluator.testing import FakeClock
from tests.sinks.contract import SinkContract
from tests.sinks.made import UnreliableStore, make_rule, make_status


class TestStatusFile(SinkContract):
    @pytest.fixture
    def clock(self):
        return FakeClock()

    @pytest.fixture
    def store(self):
        return UnreliableStore()

    @pytest.fixture
    def sink(self, store: UnreliableStore, clock: FakeClock):
        return StatusFile(store, clock, interval=5.0)

    @pytest.fixture
    def status(self):
        return make_status(make_rule())

    def written(self, store: UnreliableStore) -> Any:
        document = strict_json.loads(store.read("status.json"))
        jsonschema.validate(document, schema("status"))
        return document

    def test_it_is_there_from_the_start(self, sink, store, clock, status):
        sink.start(status)

        assert self.written(store)["job"]["updated_at"] == timestamp(clock.now())

    def test_a_folder_that_cannot_be_written_is_refused_at_the_start(self, sink, store, status):
        store.down = True

        with pytest.raises(OutputError, match=r"status\.json cannot be written: does not answer"):
            sink.start(status)

    def test_a_new_status_of_a_rule_is_written_at_once(self, sink, store, status):
        sink.start(status)
        status.DebugRuleEvaluationStatuses[0].RuleEvaluationStatus = "NoIssuesFound"
        sink.status(status)

        assert self.written(store)["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"

    def test_other_changes_wait_for_the_interval(self, sink, store, clock, status):
        sink.start(status)
        status.job.steps.complete = 7
        clock.advance(4.9)
        sink.status(status)
        early = self.written(store)["job"]["steps"]["complete"]
        clock.advance(0.1)
        sink.status(status)

        assert (early, self.written(store)["job"]["steps"]["complete"]) == (0, 7)

    def test_without_a_change_it_is_written_every_300_seconds_only(self, sink, store, clock, status):
        sink.start(status)
        puts = []
        for _ in range(60):
            clock.advance(5.0)
            sink.status(status)
            puts.append(store.requests.put)

        # never later, and hardly earlier
        assert (puts[-4], puts[-2]) == (1, 2)

    def test_its_own_requests_are_no_change(self, sink, store, clock, status):
        sink.start(status)
        for _ in range(10):
            clock.advance(5.0)
            status.job.requests.put = store.requests.put
            status.job.requests.list += 1
            sink.status(status)

        assert store.requests.put == 1

    def test_what_could_not_be_written_is_written_at_the_next_call(self, sink, store, status):
        sink.start(status)
        status.DebugRuleEvaluationStatuses[0].RuleEvaluationStatus = "Stopped"
        store.down = True
        with pytest.raises(StorageError):
            sink.status(status)
        store.down = False
        sink.status(status)

        assert self.written(store)["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "Stopped"

    def test_the_end_is_always_written(self, sink, store, status):
        sink.start(status)
        status.job.ended_because = "end_marker"
        sink.close(status)

        assert self.written(store)["job"]["ended_because"] == "end_marker"

    def test_what_is_no_new_word_and_could_not_be_written_is_written_at_the_next_call(self, sink, store, clock, status):
        sink.start(status)
        status.job.steps.complete = 7
        clock.advance(5.0)
        store.down = True
        with pytest.raises(StorageError):
            sink.status(status)
        store.down = False
        sink.status(status)

        assert self.written(store)["job"]["steps"]["complete"] == 7
