"""Real models through DLC files, model libraries and context binaries: the outputs are the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openqnn import Session
from openqnn.errors import BackendError
from openqnn.vendor.trust import trusting
from tests.cli.running import assert_done
from tests.cli.tool import assert_refused, tool
from tests.emit.library import needs_compiler
from tests.htp.models import inputs_of
from tests.models.fetch import model_ids, model_path
from tests.qnn.nets import needs_cpu, needs_htp
from tests.round_trips.models import NO_DLC, VENDOR, X86, different, direct, to_dlc

pytestmark = needs_cpu
LONG = {
    "dlc": ("effword_fp32", "ukis_csmask"),
    "library": ("effword_fp32", "ukis_csmask", "ppocrv4_det", "ppocrv4_rec_en"),
    "context": (
        "effword_fp32",
        "ppocrv4_rec_en",
        "magika",
        "basic_pitch_onnx",
        "ppocrv4_det",
        "ppocrv2_rec_lstm",
    ),
}
"""Models that take long on a trip; ten or more are left for each."""


def models(trip: str) -> list[object]:
    """Those that can make the trip; those that take long are left to `make slow`."""
    found = [m for m in model_ids() if trip != "dlc" or m not in NO_DLC]
    return [pytest.param(m, marks=pytest.mark.slow if m in LONG[trip] else ()) for m in found]


@pytest.mark.parametrize("model", models("dlc"))
def test_dlc(model: str, tmp_path: Path) -> None:
    assert different("dlc", model, tmp_path) == []


@pytest.mark.parametrize("model", NO_DLC)
def test_what_a_dlc_cannot_hold_is_named(model: str, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=f"cannot be written as DLC: {NO_DLC[model]} "):
        to_dlc(model, tmp_path)


@needs_compiler
@pytest.mark.parametrize("model", models("library"))
def test_model_library(model: str, tmp_path: Path) -> None:
    assert different("library", model, tmp_path) == []


@needs_htp
@pytest.mark.parametrize("model", models("context"))
def test_context_binary(model: str, tmp_path: Path) -> None:
    assert different("context", model, tmp_path) == []


@needs_compiler
@pytest.mark.parametrize(
    "flags", [("--overwrite_model_prefix",), ("--overwrite_model_prefix", "--exclude_named_tensors")]
)
def test_a_library_whose_functions_have_another_prefix(flags: tuple[str, ...], tmp_path: Path) -> None:
    cpp, dims = tmp_path / "digits.cpp", ("-d", "Input3", "1,1,28,28")
    assert_done(tool("qnn-onnx-converter", "-i", model_path("mnist_conv"), "-o", cpp, *dims, *flags))
    built = ("-c", cpp, "-b", cpp.with_suffix(".bin"), "-t", X86, "-o", tmp_path)
    assert_done(tool("qnn-model-lib-generator", *built))
    library = tmp_path / X86 / "libdigits.so"
    image = inputs_of("mnist_conv")["Input3"].reshape(1, 28, 28, 1)  # the tool makes it NHWC
    (wanted,) = direct("mnist_conv", VENDOR).values()
    with trusting(), Session(library, backend=VENDOR) as session:
        (found,) = session.run({"Input3": image}).values()
    np.testing.assert_array_equal(found, wanted)
    image.tofile(tmp_path / "x.raw")
    (tmp_path / "list.txt").write_text("x.raw")
    given = ("--input_list", tmp_path / "list.txt", "--output_dir", tmp_path / "out", "--backend", "cpu")
    assert_done(tool("qnn-net-run", "--model", library, *given))
    (file,) = (tmp_path / "out" / "Result_0").iterdir()
    assert file.read_bytes() == wanted.tobytes()
    result = tool("qnn-net-run", "--model", library, "--model_prefix", "other", *given)
    assert_refused(result, "it has no other_composeGraphs")
