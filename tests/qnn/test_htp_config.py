from __future__ import annotations

import json
from pathlib import Path

import pytest

from openqnn.errors import InputError, UsageError
from openqnn.qnn.htp_config import read_htp_config
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions

GRAPH = {
    "graph_names": ["a", "b"],
    "vtcm_mb": 8,
    "O": 3.0,
    "hvx_threads": 4,
    "dlbc": 1,
    "fold_relu_activation_into_conv_off": True,
    "use_high_precision_fp16_sigmoid": True,
}
DEVICE = {"soc_model": 57, "dsp_arch": "v75", "cores": [{"core_id": 0, "perf_profile": "burst"}]}


def write(folder: Path, inner: object) -> Path:
    (folder / "inner.json").write_text(json.dumps(inner))
    outer = {
        "backend_extensions": {
            "shared_library_path": "libQnnHtpNetRunExtensions.so",
            "config_file_path": "inner.json",
        }
    }
    (folder / "outer.json").write_text(json.dumps(outer))
    return folder / "outer.json"


@pytest.mark.parametrize("as_array", [True, False])
def test_objects_and_arrays_mean_the_same(tmp_path: Path, as_array: bool) -> None:
    context = {"weight_sharing_enabled": True}
    inner = {"graphs": GRAPH, "devices": DEVICE, "context": context}
    config = read_htp_config(write(tmp_path, {k: [v] for k, v in inner.items()} if as_array else inner))
    wanted = GraphOptions(
        optimization=3,
        vtcm_mb=8,
        hvx_threads=4,
        dlbc=True,
        fold_relu_activation_into_conv_off=True,
        high_precision_sigmoid=True,
    )
    assert config.options("a") == config.options("b") == wanted
    assert config.options("c") is None
    assert config.device == DeviceOptions(57)
    assert config.context == ContextOptions(weight_sharing=True)
    assert config.perf_profile == "burst"
    assert read_htp_config(tmp_path / "inner.json") == config


def test_a_graph_without_names_means_all(tmp_path: Path) -> None:
    config = read_htp_config(write(tmp_path, {"graphs": [{"O": 2}], "devices": [{"dsp_arch": "v79"}]}))
    assert config.options("any") == GraphOptions(optimization=2)
    assert config.device == DeviceOptions(arch=79)


def test_what_only_a_device_could_follow_is_told(tmp_path: Path) -> None:
    inner = {"memory": {"mem_type": "shared_buffer"}, "context": {"group_id": 1}}
    assert read_htp_config(write(tmp_path, inner)).ignored == (
        "context.group_id needs a device: it has no effect on the host",
        "memory needs a device: it has no effect on the host",
    )


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ({"graph": {}}, r"inner\.json: there is no setting 'graph'"),
        ({"graphs": {"vtcm": 8}}, r"inner\.json: there is no setting 'graphs\.vtcm'"),
        ({"devices": [{"cores": [{"speed": 1}]}]}, r"there is no setting 'devices\.cores\.speed'"),
        ({"devices": [{"cores": [{"perf_profile": "fast"}]}]}, r"no perf_profile 'fast'"),
        ({"devices": [{"dsp_arch": "hexagon"}]}, r"dsp_arch is like 'v75'"),
        ({"devices": [{"soc_model": 43, "dsp_arch": "v75"}]}, r"dsp_arch is v75, and .* HTP v73"),
        ({"context": {"weights": 1}}, r"there is no setting 'context\.weights'"),
        ({"graphs": {"vtcm_mb": "8"}}, r"graphs\.vtcm_mb must be a whole number, not '8'"),
        ({"graphs": {"vtcm_mb": float("nan")}}, r"graphs\.vtcm_mb must be a whole number, not nan"),
        ({"graphs": {"vtcm_mb": float("inf")}}, r"graphs\.vtcm_mb must be a whole number, not inf"),
        ({"graphs": {"hvx_threads": -1}}, r"graphs\.hvx_threads is out of range: -1"),
        ({"graphs": {"hvx_threads": 1 << 32}}, r"graphs\.hvx_threads is out of range"),
        ({"graphs": {"graph_names": 5}}, r"graphs\.graph_names must be an array of names, not 5"),
        ({"graphs": {"graph_names": "a"}}, r"graphs\.graph_names must be an array of names, not 'a'"),
        ({"devices": [{"cores": [{"perf_profile": ["burst"]}]}]}, r"no perf_profile \['burst'\]"),
        ({"graphs": [{"graph_names": ["a"]}, {"graph_names": ["a"]}]}, r"two entries for graph 'a'"),
        ({"graphs": [{"O": 2}, {"O": 3}]}, r"two entries for all other graphs"),
        ({"devices": [{"soc_model": 57}, {"soc_model": 43}]}, r"devices are of different chips"),
        ({"devices": [{"soc_model": 57, "soc_id": 43}]}, r"soc_model is 57, and devices\.soc_id is 43"),
        ({"devices": [{"dsp_arch": "v99"}]}, r"there is no devices\.dsp_arch v99"),
        ({"devices": [{"profiling_level": "all"}]}, r"devices\.profiling_level is linting, not 'all'"),
        ({"graphs": {"dlbc": 2}}, r"graphs\.dlbc is on or off, not 2"),
        ({"graphs": 7}, r"graphs must be an object"),
        ([], r"must be an object"),
    ],
)
def test_mistakes_name_the_key_and_the_file(tmp_path: Path, inner: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_htp_config(write(tmp_path, inner))


def test_levels_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="optimisation level 5"):
        read_htp_config(write(tmp_path, {"graphs": {"O": 5}}))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_htp_config(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_htp_config(tmp_path / "bad.json")
    write(tmp_path, {})
    (tmp_path / "inner.json").unlink()
    with pytest.raises(InputError, match=r"inner\.json"):
        read_htp_config(tmp_path / "outer.json")


def test_settings_of_hardware_are_named(tmp_path: Path) -> None:
    device = {"device_id": 0, "core_id": [1], "pd_session": "signed", "cores": DEVICE["cores"]}
    config = read_htp_config(write(tmp_path, {"devices": [device]}))
    assert [text.split()[0] for text in config.ignored] == [
        "devices.core_id", "devices.pd_session", "devices.cores.perf_profile",
    ]  # fmt: skip
