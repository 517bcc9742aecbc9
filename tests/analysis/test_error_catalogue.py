"""The catalogue of errors: complete for ours, found by id, number and name, and printed as a page."""

from __future__ import annotations

import ast
import json
import re
import signal
import subprocess
import sys

import pytest

from openqnn import errors
from openqnn.analysis.error_catalogue import ROWS, catalogue, find_errors, further_names
from openqnn.cli.execute import OUR_BUG, Ended, execute
from openqnn.qnn.abi_system import ERRORS
from tests import errors_page
from tests.cli.tool import assert_refused, openqnn
from tests.providers import Provider, each_provider

SOURCES = ROWS.parents[1]


def kinds() -> list[type[errors.OpenQnnError]]:
    known = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in known if issubclass(each, errors.OpenQnnError)]


def test_every_error_of_ours_has_an_entry_of_its_own() -> None:
    ids = [kind.id for kind in kinds()]
    assert len(set(ids)) == len(ids)
    assert {*ids, OUR_BUG} == {entry for entry in catalogue() if entry.startswith("OQ")}


def test_no_other_id_of_ours_is_told_anywhere() -> None:
    told = {
        i for f in SOURCES.rglob("*.py") for i in re.findall(r"\bOQ\d{3}\b", f.read_text(encoding="utf-8"))
    }
    assert told - {"OQ123"} <= set(catalogue())


CAUGHT = {
    "ArgumentTypeError": "argparse makes a usage error of it",
    "Refused": "becomes a Problem of an UnsupportedError, or leaves a pattern alone",
    "Refusal": "becomes a Problem of an UnsupportedError",
    "Problem": "becomes an UnsupportedError in the process that asked TensorFlow",
    "Untraceable": "a kernel that is written by hand then",
    "ValueError": "becomes an error of the file that is read",
    "IndexError": "becomes an error of the file that is read",
    "KeyError": "becomes an error of the file that is read",
    "FlatbufferError": "becomes an error of the file that is read",
    "BadZipFile": "becomes an error of the file that is read",
    "ConstructorError": "becomes an error of the configuration",
    "FileNotFoundError": "told by `execute` as what the system refuses",
    "OSError": "told by `execute` as what the system refuses",
    "TypeError": "Python's own, for a program that calls the API",
    "AttributeError": "Python's own, for a program that calls the API",
    "NotImplementedError": "a method that a plugin has to have",
    "KeyboardInterrupt": "told by `execute` as an interrupt",
    "Ended": "told by `execute` as a signal",
    "TooLargeError": "a constant that stays a node then",
    "_TooLargeError": "a file that is shown without its weights then",
    "YAMLError": "told with the file by whoever reads it",
    "_Stopped": "ends a search",
    "_OutOfTimeError": "ends a search",
}
"""Exceptions that are raised inside, and what becomes of them before anybody sees them."""


def raised() -> set[str]:
    """All classes that a `raise` of the package names: functions that make errors begin small."""
    found: set[str] = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc:
                made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                found.add(ast.unparse(made).rpartition(".")[2])
    return {name for name in found if name.lstrip("_")[0].isupper()}


def test_every_exception_that_is_raised_has_an_id_or_is_caught() -> None:
    ours = {kind.__name__ for kind in kinds()}
    assert len(ours) > 12
    assert raised() - ours == set(CAUGHT)


ENDS: dict[str, BaseException] = {
    **{kind.__name__: kind.__new__(kind) for kind in kinds()},
    "no memory": MemoryError("4 TiB"),
    "a full device": OSError(28, "No space left on device", "out.bin"),
    "Ctrl-C": KeyboardInterrupt(),
    "a time limit": Ended(signal.SIGTERM),
    "a bug": RuntimeError("nobody foresaw this"),
}


@pytest.mark.parametrize("what", ENDS)
def test_whatever_ends_a_command_is_told_with_an_id(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = ENDS[what]
    if isinstance(error, errors.OpenQnnError):
        error.message, error.hint = "what, where and why", "what to do"

    def command() -> int:
        raise error

    assert execute(command)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(told) == 1
    found = re.search(r" \[(OQ\d{3})\]$", told[0])
    assert found and found[1] in catalogue(), told


@each_provider()
def test_every_number_that_a_library_names_has_an_entry(provider: Provider) -> None:
    """All that errorGetMessage knows, of the versions that are tested."""
    script = f"""
import ctypes as c, json
from openqnn.qnn.api import Api
from openqnn.qnn.library import load_library
ask, found = Api(load_library({str(provider.htp)!r})).function("errorGetMessage"), {{}}
for code in range(1, 40000):
    text = c.c_char_p()
    if not ask(code, c.byref(text)) and text.value:
        found[code] = text.value.decode().partition(":")[0]
print("found", json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.partition("found ")[2])
    assert len(found) > 90
    assert {code: name for code, name in found.items() if find_errors(code)[0].name != name} == {}
    assert {name for name in found.values() if not find_errors(name)} == set()


def test_what_model_libraries_answer_has_entries() -> None:
    header = (SOURCES / "qnn" / "include" / "QnnWrapperUtils.hpp").read_text(encoding="utf-8")
    for name, number in re.findall(r"(MODEL_\w+_ERROR) = ([1-9]\d*),", header):
        assert find_errors(name)[0].id == f"M{number}"


def test_every_entry_says_why_and_what_to_do() -> None:
    for entry in catalogue().values():
        assert len(entry.cause) > 10 and len(entry.remedy) > 10, entry
    assert all(code in catalogue() for code in further_names().values())


def test_the_errors_of_libqnnsystem_have_entries() -> None:
    assert {str(code) for code in ERRORS} <= set(catalogue())


@pytest.mark.parametrize(
    "asked",
    ["1002", "0x3ea", "QNN_COMMON_ERROR_MEM_ALLOC", "common_error_mem_alloc", "QNN_GRAPH_ERROR_MEM_ALLOC"],
)
def test_an_error_is_found_by_number_and_name(asked: str) -> None:
    assert [entry.id for entry in find_errors(asked)] == ["1002"]


def test_messages_end_with_an_id_that_can_be_explained() -> None:
    told = openqnn("inspect", "nowhere.onnx").err.splitlines()[0]
    found = told.rpartition("[")[2].rstrip("]")
    assert json.loads(openqnn("explain", found, "--json").out)[0]["id"] == found
    assert "remedy:" in openqnn("explain", found).out


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("OQ1111", "OQ111 "),
        ("1001", "1000 QNN_COMMON_ERROR_NOT_SUPPORTED, 1002 QNN_COMMON_ERROR_MEM_ALLOC"),
        ("99999", "31000 "),
        ("QNN_GRAPH_EROR_FINALISE_FAILED", "6022 QNN_GRAPH_ERROR_FINALIZE_FAILED"),
    ],
)
def test_what_is_no_error_is_said(asked: str, near: str) -> None:
    assert_refused(openqnn("explain", asked), f"'{asked}' is no error that is known", "near it:", near)


def test_errors_are_found_by_a_word_of_their_cause() -> None:
    assert "OQ151" in [entry.id for entry in find_errors("memory ran out")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("convert", "--inputshape", "x"), "did you mean --input_shape"),
        (("conver", "x"), "did you mean convert"),
        (("models", "fetsh"), "did you mean fetch"),
    ],
)
def test_usage_errors_have_the_id_and_the_nearest_word(words: tuple[str, ...], told: str) -> None:
    assert_refused(openqnn(*words), "[OQ140]", told, code=2)


def test_the_page_is_up_to_date() -> None:
    assert errors_page.PAGE.read_text(encoding="utf-8") == errors_page.page(), (
        "run python -m tests.errors_page"
    )
