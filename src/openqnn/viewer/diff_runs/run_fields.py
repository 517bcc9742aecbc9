"""Fields of the form of a comparison: what each is called, what may stand in it, and when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from openqnn.analysis.accuracy.verifiers import VERIFIERS, Verifier

INFERENCES, GOLDEN, OUTPUTS = "Inference vs Inference", "Golden vs Inference", "Output vs Output"
USE_CASES: Final = (INFERENCES, GOLDEN, OUTPUTS)
HOST, ON_DEVICE = "host", "on-device"
HOST_RUNTIMES: Final = (
    "cpu", "htp", "dspv68", "dspv69", "dspv73", "dspv75", "dspv79", "built-in", "simulation",
)  # fmt: skip
DEVICE_RUNTIMES: Final = ("cpu", "gpu", "dspv68", "dspv69", "dspv73", "dspv75", "dspv79")
ANDROID, ARM, PC = "aarch64-android", "aarch64-linux", "x86_64-linux-clang"
ARCHITECTURES: Final = {HOST: (PC,), ON_DEVICE: (ANDROID, ARM, PC)}
OFFERED: Final = (
    "RtolAtol", "AdjustedRtolAtol", "TopK", "MeanIOU", "L1Error", "CosineSimilarity", "MSE", "SQNR", "MAE",
    "ScaledDiff",
)  # fmt: skip
PARAMETER_LABELS: Final = {
    "rtolmargin": "Rtol Margin", "atolmargin": "Atol Margin", "levels_num": "Number of Levels", "k": "K",
    "ordered": "Ordered", "background_classification": "Background Classification",
    "multiplier": "Multiplier", "scale": "Scale",
}  # fmt: skip
TOGETHER: Final = {"boxes_tensor": "Boxes Tensor", "classes_tensor": "Classes Tensor"}
"""Fields for the tensors that a verifier of two takes."""
PROFILES: Final = (
    "balanced", "low_balanced", "default", "high_performance", "sustained_high_performance", "burst",
    "low_power_saver", "power_saver", "high_power_saver", "extreme_power_saver", "system_settings",
)  # fmt: skip
CHOICE, FILE, FOLDER, PLACE, TEXT, NUMBER = "choice", "file", "folder", "place", "text", "number"
"""Kinds of fields; a place is a file or a folder."""


@dataclass(frozen=True, slots=True)
class RunField:
    """A field. `suffixes` are those of files that fit; `only` are the values of other fields that it goes
    with."""

    id: str
    label: str
    kind: str = TEXT
    required: bool = False
    default: str = ""
    choices: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    note: str = ""

    def record(self) -> dict[str, Any]:
        return {
            "id": self.id, "label": self.label, "kind": self.kind, "required": self.required,
            "default": self.default, "choices": list(self.choices), "suffixes": list(self.suffixes),
            "only": [[name, list(values)] for name, values in self.only], "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """Fields under a title, shown for some of the use cases."""

    title: str
    uses: tuple[str, ...]
    fields: tuple[RunField, ...]


def _inference(prefix: str) -> tuple[RunField, ...]:
    device, architecture = f"{prefix}.target_device", f"{prefix}.architecture"
    on_device = ((device, (ON_DEVICE,)),)
    on_android = (*on_device, (architecture, (ANDROID,)))
    return (
        RunField(device, "Target Device", CHOICE, True, HOST, (HOST, ON_DEVICE)),
        RunField(
            f"{prefix}.device_id", "Device ID", required=True, only=on_device,
            note="the serial number that `adb devices` lists, or ssh://user@host[:port]",
        ),
        RunField(
            f"{prefix}.runtime", "Runtime", CHOICE, True, "cpu", (*HOST_RUNTIMES, "gpu"),
            note="cpu is libQnnCpu, htp and dspv.. the simulator of libQnnHtp, simulation the built-in one",
        ),
        RunField(
            architecture, "Architecture", CHOICE, True, PC,
            tuple(dict.fromkeys(each for known in ARCHITECTURES.values() for each in known)),
        ),
        RunField(f"{prefix}.model_json", "Model json", FILE, True, suffixes=("_net.json", ".net.json")),
        RunField(f"{prefix}.model_cpp", "Model Cpp", FILE, True, suffixes=(".cpp",)),
        RunField(f"{prefix}.model_bin", "Model Bin", FILE, suffixes=(".bin",)),
        RunField(f"{prefix}.ndk_path", "NDK Path", FOLDER, True, only=on_android),
        RunField(
            f"{prefix}.engine_path", "Devices Engine Path", PLACE, only=on_device,
            note="a wheel or SDK with Qualcomm's libraries for the device; for x86-64 the installed ones",
        ),
        RunField(f"{prefix}.input_list", "Input List", FILE, True, suffixes=(".txt",)),
        RunField(f"{prefix}.input_data_type", "Input Data Type", CHOICE, False, "float", ("float", "native")),
        RunField(
            f"{prefix}.output_data_type", "Output Data Type", CHOICE, False, "float_only",
            ("float_only", "float_and_native", "native_only"),
        ),
        RunField(
            f"{prefix}.profiling_level", "Profiling Level", CHOICE, False, "detailed",
            ("detailed", "basic", "backend"), only=((device, (HOST,)),),
        ),
        RunField(f"{prefix}.perf_profile", "Perf Profile", CHOICE, False, "balanced", PROFILES,
                 note="no effect: clocks stay as they are"),
    )  # fmt: skip


def _verification() -> tuple[RunField, ...]:
    parameters = [
        RunField(
            f"verifier.{verifier.name}.{name}", PARAMETER_LABELS.get(name, name), NUMBER, True,
            f"{value:g}", only=(("verifier", (verifier.name,)),),
        )
        for verifier in _offered()
        for name, value in verifier.defaults.items()
    ]  # fmt: skip
    return (
        RunField("verifier", "Default Verifier", CHOICE, True, OFFERED[0], OFFERED),
        *parameters,
        *(RunField(name, label, TEXT, True, only=_with_two()) for name, label in TOGETHER.items()),
        RunField("accuracy_threshold", "Accuracy Threshold", NUMBER, True, "0.01"),
        RunField("perf_threshold", "Perf Threshold", NUMBER, True, "0.01"),
    )


def _with_two() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """With the verifiers that take two tensors at a time."""
    return (("verifier", tuple(v.name for v in _offered() if v.tensors == len(TOGETHER))),)


def _offered() -> list[Verifier]:
    return [VERIFIERS[name.lower()] for name in OFFERED]


SECTIONS: Final = (
    Section("Golden", (GOLDEN,), (
        RunField("golden.folder", "Golden Outputs", FOLDER, True,
                 note="a .raw file for each tensor, or Result_0, Result_1, ... with them"),
        RunField("golden.mapping", "Tensor Mapping", FILE, suffixes=(".json",),
                 note="names of golden tensors by those of the model, where they differ"),
    )),
    Section("Inference One", (INFERENCES, GOLDEN), _inference("one")),
    Section("Inference Two", (INFERENCES,), _inference("two")),
    Section("Output One", (OUTPUTS,), (
        RunField("output_one.folder", "Outputs", FOLDER, True,
                 note="what qnn-net-run wrote, or a framework's tensors: the golden side"),
    )),
    Section("Output Two", (OUTPUTS,), (
        RunField("output_two.folder", "Outputs", FOLDER, True),
        RunField("output_two.model_json", "Model json", FILE, True, suffixes=("_net.json", ".net.json")),
        RunField("output_two.mapping", "Tensor Mapping", FILE, suffixes=(".json",)),
    )),
    Section("Comparison", USE_CASES, (
        *_verification(),
        RunField("working_directory", "Working Directory", FOLDER, True),
        RunField("save", "Save Run Configurations", note="a file or folder to keep these fields in"),
    )),
)  # fmt: skip


def fields_of(values: Mapping[str, str]) -> list[RunField]:
    """The fields that are asked for, as the use case and other fields say."""
    use = values.get("use_case", "")
    found = [field for section in SECTIONS if use in section.uses for field in section.fields]
    filled = {field.id: values.get(field.id) or field.default for field in found}
    return [f for f in found if all(filled.get(name) in values for name, values in f.only)]
