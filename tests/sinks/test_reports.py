"""Pages are written into their configuration's folder and nowhere else."""

from __future__ import annotations

import pytest

from evaluator.errors import OutputError
from evaluator.sinks.reports import Reports
from evaluator.storage.memory import MemoryStore
from tests.sinks.contract import SinkContract


class TestReports(SinkContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()

    @pytest.fixture
    def sink(self, store: MemoryStore):
        return Reports(store)

    def test_a_later_page_takes_the_place_of_the_former(self, sink, store):
        sink.report("Create", "page.html", "old")
        sink.report("Create", "page.html", "new é")

        assert store.read("Create/page.html").decode() == "new é"

    def test_the_folder_may_be_the_output_folder_itself(self, sink, store):
        sink.report("", "page.html", "text")

        assert store.read("page.html") == b"text"

    @pytest.mark.parametrize("name", ["../x.html", "a/x.html", "status.json", ""])
    def test_a_name_that_is_no_page_is_refused(self, sink, name):
        with pytest.raises(OutputError, match="is not the name of a page"):
            sink.report("Create", name, "text")

    def test_a_page_that_did_not_change_is_not_written_again(self, sink, store):
        sink.report("Create", "page.html", "text")
        sink.report("Create", "page.html", "text")
        puts = store.requests.put
        sink.report("Create", "page.html", "other")

        assert (puts, store.requests.put) == (1, 2)

    def test_a_text_that_a_rule_left_is_written(self, sink, store):
        sink.keep("AllZero/traceback.txt", b"Traceback of now", b"Traceback ")

        assert store.read("AllZero/traceback.txt") == b"Traceback of now"

    @pytest.mark.parametrize(
        ("there", "expected"), [(b"Traceback of before", b"Traceback of now"), (b"theirs", b"theirs"), (b"", b"")]
    )
    def test_a_text_of_somebody_else_stays(self, sink, store, there, expected):
        store.write("AllZero/traceback.txt", there)
        sink.keep("AllZero/traceback.txt", b"Traceback of now", b"Traceback ")

        assert store.read("AllZero/traceback.txt") == expected
