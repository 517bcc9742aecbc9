"""Settings of HTP from a program: taken, or refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import openqnn
from openqnn.errors import OpenQnnError, UsageError
from tests.cli.running import converted
from tests.models.samples import sample_inputs
from tests.qnn.nets import needs_cpu, needs_htp

MODEL = "mnist_conv"
MANY = {"O": 3, "vtcm_mb": 2, "dlbc": True}


@needs_htp
def test_settings_are_in_the_compiled_context() -> None:
    made = openqnn.compile(converted(MODEL), settings=MANY)
    blob = made.info.graphs[0].htp
    assert blob is not None
    assert (blob.optimization_level, blob.vtcm_size, blob.dlbc) == (3, 2 << 20, 1)


@needs_htp
def test_a_session_with_settings_computes() -> None:
    graph, inputs = converted(MODEL), sample_inputs(MODEL)
    with openqnn.Session(graph, "htp", settings=MANY) as set_up, openqnn.Session(graph, "htp") as plain:
        (got,), (want,) = set_up.run(inputs).values(), plain.run(inputs).values()
    assert got.argmax() == want.argmax()


@needs_htp
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vtcm": 1}, "settings: there is no setting 'vtcm'"),
        ({"graph_names": ["g"]}, "settings: there is no setting 'graph_names'"),
        ({"vtcm_mb": 64}, r"settings: vtcm_mb is 64, and SM8650 \(SoC 57, HTP v75\) has 8 MB"),
        ({"vtcm_mb": "all"}, "settings: vtcm_mb must be a whole number, not 'all'"),
        ({"dlbc": 3}, "settings: dlbc is on or off, not 3"),
        ({"O": 7}, "optimisation level 7 does not exist"),
        ({"hvx_threads": 99}, "hvx_threads 99 was asked for, but the library took 4"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    graph = converted(MODEL)
    with pytest.raises(OpenQnnError, match=message):
        openqnn.compile(graph, settings=settings)
    with pytest.raises(OpenQnnError, match=message), openqnn.Session(graph, "htp", settings=settings) as s:
        s.run(sample_inputs(MODEL))


@needs_cpu
def test_settings_are_for_graphs_that_htp_compiles(tmp_path: Path) -> None:
    graph = converted(MODEL)
    with pytest.raises(UsageError, match="settings are those of HTP"):
        openqnn.Session(graph, settings={"O": 3})
    with pytest.raises(UsageError, match=r"and libQnnCpu\.so is not HTP"):
        openqnn.compile(graph, "libQnnCpu.so", settings={"O": 3})
    openqnn.compile(graph, "libQnnCpu.so").save(tmp_path / "m.bin")
    with pytest.raises(UsageError, match=r"m\.bin is compiled, with settings of its own"):
        openqnn.Session(tmp_path / "m.bin", "libQnnCpu.so", settings={"O": 3})
