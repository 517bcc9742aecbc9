"""The catalogue of errors: complete for ours, found by id, number and name, and printed as a page."""

from __future__ import annotations

import json

import pytest

from openqnn import errors
from openqnn.analysis.error_catalogue import catalogue, find_errors
from openqnn.cli.execute import OUR_BUG
from openqnn.qnn.abi_system import ERRORS
from tests import errors_page
from tests.cli.tool import assert_refused, openqnn


def kinds() -> list[type[errors.OpenQnnError]]:
    known = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in known if issubclass(each, errors.OpenQnnError)]


def test_every_error_of_ours_has_an_entry_of_its_own() -> None:
    ids = [kind.id for kind in kinds()]
    assert len(set(ids)) == len(ids)
    assert {*ids, OUR_BUG} == {entry for entry in catalogue() if entry.startswith("OQ")}


def test_the_errors_of_libqnnsystem_have_entries() -> None:
    assert {str(code) for code in ERRORS} <= set(catalogue())


@pytest.mark.parametrize("asked", ["1002", "0x3ea", "QNN_COMMON_ERROR_MEM_ALLOC", "common_error_mem_alloc"])
def test_an_error_is_found_by_number_and_name(asked: str) -> None:
    assert [entry.id for entry in find_errors(asked)] == ["1002"]


def test_messages_end_with_an_id_that_can_be_explained() -> None:
    told = openqnn("inspect", "nowhere.onnx").err.splitlines()[0]
    found = told.rpartition("[")[2].rstrip("]")
    assert json.loads(openqnn("explain", found, "--json").out)[0]["id"] == found
    assert "remedy:" in openqnn("explain", found).out


def test_what_is_no_error_is_said() -> None:
    assert_refused(openqnn("explain", "OQ1111"), "'OQ1111' is no error that is known", "near it: OQ111")


def test_the_page_is_up_to_date() -> None:
    assert errors_page.PAGE.read_text(encoding="utf-8") == errors_page.page(), (
        "run python -m tests.errors_page"
    )
