"""findings.jsonl holds every finding once, whatever happened to the file."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from structlog.testing import capture_logs

from evaluator import strict_json
from evaluator.errors import StorageError
from evaluator.sinks.findings import FindingsFile
from evaluator.status import schema
from evaluator.storage.file import FileStore
from tests.sinks.contract import SinkContract
from tests.sinks.made import UnreliableStore, make_finding, make_status

KEY = "VanishingGradient/findings.jsonl"
FOLDERS = {"VanishingGradient": "VanishingGradient", "AllZero": "AllZero"}


class TestFindingsFile(SinkContract):
    @pytest.fixture
    def store(self):
        return UnreliableStore()

    @pytest.fixture
    def sink(self, store: UnreliableStore):
        return FindingsFile(store, FOLDERS)

    def test_a_finding_is_a_line_that_the_schema_describes(self, sink, store):
        sink.start(make_status())
        sink.finding(make_finding(measured=float("inf"), tensor="a\nb"))
        data = store.read(KEY)

        jsonschema.validate(strict_json.loads(data), schema("finding"))
        assert data.count(b"\n") == 1

    def test_nothing_found_is_no_file(self, sink, store):
        sink.start(make_status())

        assert store.list() == []

    def test_every_configuration_has_its_own_file(self, sink, store):
        sink.finding(make_finding())
        sink.finding(make_finding("AllZero"))

        assert [entry.key for entry in store.list()] == ["AllZero/findings.jsonl", KEY]

    def test_a_single_configuration_may_write_into_the_output_folder_itself(self, store):
        FindingsFile(store, {"VanishingGradient": ""}).finding(make_finding())

        assert [entry.key for entry in store.list()] == ["findings.jsonl"]

    def test_met_and_cleared_are_two_lines(self, sink, store):
        sink.finding(make_finding())
        sink.finding(make_finding(event="cleared", last_step=5, steps_met=3))

        assert store.read(KEY).count(b"\n") == 2

    def test_what_a_former_job_wrote_is_not_written_again(self, sink, store):
        sink.finding(make_finding())
        resumed = FindingsFile(store, FOLDERS)
        resumed.start(make_status())
        resumed.finding(make_finding())
        resumed.finding(make_finding(step=4))

        assert [strict_json.loads(line)["step"] for line in store.read(KEY).splitlines()] == [3, 4]

    def test_a_line_cut_anywhere_is_cut_off_and_written_again(self):
        first, second = make_finding(), make_finding(step=4)
        whole = first.line() + second.line()
        for length in range(len(whole) + 1):
            store = UnreliableStore()
            store.write(KEY, whole[:length])
            sink = FindingsFile(store, FOLDERS)
            sink.start(make_status())
            sink.finding(first)
            sink.finding(second)

            assert store.read(KEY) == whole

    def test_an_append_that_arrived_in_part_leaves_no_half_line(self, sink, store):
        sink.finding(make_finding())
        store.torn = True
        with pytest.raises(StorageError):
            sink.finding(make_finding(step=4))
        store.torn = False
        sink.finding(make_finding(step=4))

        assert store.read(KEY) == make_finding().line() + make_finding(step=4).line()

    def test_lines_that_are_no_findings_stay_and_are_told(self, sink, store):
        store.write(KEY, b"hello\n[]\n" + make_finding().line())
        with capture_logs() as logs:
            sink.start(make_status())
        sink.finding(make_finding())

        assert [(line["event"], line["lines"]) for line in logs] == [("lines_ignored", 2)]
        assert store.read(KEY) == b"hello\n[]\n" + make_finding().line()

    def test_a_configuration_whose_name_is_not_text_finds_its_folder(self, store):
        FindingsFile(store, {"a\ud800": "a%ED%A0%80"}).finding(make_finding(rule_configuration="a\ud800"))

        assert [entry.key for entry in store.list()] == ["a%ED%A0%80/findings.jsonl"]

    def test_it_works_in_a_real_folder(self, tmp_path: Path):
        (tmp_path / "VanishingGradient").mkdir()
        (tmp_path / KEY).write_bytes(make_finding().line() + b'{"half')
        sink = FindingsFile(FileStore(tmp_path), FOLDERS)
        sink.start(make_status())
        sink.finding(make_finding(step=4))

        assert (tmp_path / KEY).read_bytes() == make_finding().line() + make_finding(step=4).line()

    def test_only_what_is_there_is_read_at_the_start(self, store):
        store.write(KEY, make_finding().line())
        FindingsFile(store, {f"Rule{number}": f"Rule{number}" for number in range(100)} | FOLDERS).start(make_status())

        assert (store.requests.list, store.requests.get) == (1, 1)
