"""Configuration files: what is wrong in one is told, with the file, the key and what it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openqnn.errors import InputError
from openqnn.formats.profiling_window import Window
from openqnn.runtime.run_config import RunConfig, read_config


def read(folder: Path, content: object) -> RunConfig:
    file = folder / "config.json"
    file.write_text(json.dumps(content))
    return read_config(file)


def graph(**settings: object) -> dict[str, object]:
    return {"graph_configs": [{"graph_name": "a", **settings}]}


def context(**settings: object) -> dict[str, object]:
    return {"context_configs": settings}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (graph(graph_profiling_start_delay="x"), "start_delay must be a number of 0 or more, not 'x'"),
        (graph(graph_profiling_start_delay=float("nan")), "start_delay must be a number"),
        (graph(graph_profiling_num_executions="x"), "num_executions must be a whole number"),
        (graph(graph_profiling_num_executions=-1), "num_executions must be a whole number of 0 or more"),
        (graph(graph_name=["a"]), "has no graph_name"),
        ({"graph_configs": 3}, "graph_configs must be an object"),
        (context(enable_graphs=5), "enable_graphs must be an array of names, not 5"),
        (context(enable_graphs="a"), "enable_graphs must be an array of names, not 'a'"),
        (context(is_persistent_binary="maybe"), "is_persistent_binary is true or false"),
        (context(memory_limit_hint="lots"), "memory_limit_hint must be a whole number"),
        (context(async_execute_queue_depth=True), "a queue is at least 1 deep"),
        ({"profile_configs": {"num_max_events": "x"}}, "num_max_events must be a whole number"),
    ],
)
def test_values_of_another_kind_are_told(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, content)
    assert "config.json: " in str(caught.value)


def test_a_misspelt_key_gets_the_keys_of_both_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no setting 'context_config'") as caught:
        read(tmp_path, {"context_config": {"context_priority": "low"}})
    assert "context_configs" in str(caught.value.hint) and "groupContext" in str(caught.value.hint)


def test_the_file_of_htp_may_stand_alone(tmp_path: Path) -> None:
    assert read(tmp_path, {"graphs": [{"O": 3}]}).htp.every_graph is not None
    with pytest.raises(InputError, match="no setting 'graph'"):
        read(tmp_path, {"graphs": [], "graph": 1})


def test_each_graph_has_its_own_window_of_profiling(tmp_path: Path) -> None:
    entries = [
        {"graph_name": "a", "graph_profiling_num_executions": 1},
        {"graph_name": "b", "graph_profiling_start_delay": 0.5, "graph_profiling_num_executions": 5},
        {"graph_name": "c"},
    ]
    found = read(tmp_path, {"graph_configs": entries})
    assert found.windows == {"a": Window(0.0, 1), "b": Window(0.5, 5)}
    assert found.graph_names == ("a", "b", "c")


def test_a_window_of_the_command_line_comes_first() -> None:
    assert Window(2.0).over(Window(0.5, 5)) == Window(2.0, 5)
    assert Window(executions=3).over(Window(0.5, 5)) == Window(0.5, 3)


def test_the_priority_of_a_context_is_a_number_of_the_interface(tmp_path: Path) -> None:
    assert read(tmp_path, {"context_configs": {"context_priority": "high"}}).priority == 200
    assert read(tmp_path, {"context_configs": {}}).priority is None
    with pytest.raises(InputError, match="context_priority is one of"):
        read(tmp_path, {"context_configs": {"context_priority": "urgent"}})


def test_what_the_libraries_do_not_support(tmp_path: Path) -> None:
    found = read(tmp_path, {"context_configs": {"memory_limit_hint": 512, "is_persistent_binary": True}})
    assert len(found.remarks) == 2
    with pytest.raises(InputError, match="strict is not supported"):
        read(tmp_path, {"context_configs": {"cache_compatibility_mode": "strict"}})
