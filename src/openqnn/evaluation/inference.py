"""Inferences of the evaluator: an engine with one choice of everything, and the names that QNN users know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from openqnn.api.quantize_variants import Variant
from openqnn.errors import UnsupportedError, UsageError
from openqnn.quant.recipe import Method, Recipe, Scheme
from openqnn.targets.registry import HTP, target_of_library
from openqnn.targets.target import Target

QUANTIZERS: Mapping[str, tuple[Method, bool]] = {
    "tf": (Method.MIN_MAX, False),
    "symmetric": (Method.MIN_MAX, True),
    "enhanced": (Method.SQNR, False),
    "adjusted": (Method.ADJUSTED, False),
}
X86, ANDROID = "x86_64-linux-clang", "aarch64-android"
ARCHITECTURES = (X86, ANDROID)
QNN, ONNX_RUNTIME = "qnn", "onnxrt"
ENGINES = (QNN, ONNX_RUNTIME, "tensorflow", "torchscript", "tensorflow-session")
FP32, FP16, QUANT = "fp32", "fp16", "quant"
PRECISIONS = {FP32: FP32, FP16: FP16, QUANT: QUANT, "int8": QUANT}
SIMULATION, BUILT_IN = "htp", "built-in"
# HTP in fixed point is computed by the simulation; by its own library where that is named.
CHIPS = {"dspv68": "SM8350", "dspv69": "SM8450", "dspv73": "SM8550", "dspv75": "SM8650", "dspv79": "SM8750"}
SIMULATED = (SIMULATION, *CHIPS)
ELSEWHERE = {"gpu": "the GPU's library runs on a device only"}
LIBRARIES = {"cpu": "libQnnCpu.so", "libqnncpu": "libQnnCpu.so", "libqnnhtp": "libQnnHtp.so"}
GRAPH_SETTINGS = ("vtcm_mb", "hvx_threads", "O")
EXTENSIONS = {"rpc_control_latency": "100", "vtcm_mb": "4"}


@dataclass(frozen=True, slots=True)
class Inference:
    """One row of the results. `params` are the converter's, as the row shows them."""

    label: str
    engine: str = QNN
    precision: str = FP32
    backend: str = ""
    arch: str = X86
    tag: str = ""
    variant: Variant | None = None
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    contextbin: Mapping[str, str] = field(default_factory=dict[str, str])
    netrun: Mapping[str, str] = field(default_factory=dict[str, str])
    extensions: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def backend_words(self) -> str:
        return f"{self.backend} {self.arch}" if self.engine == QNN else "cpu"

    @property
    def library(self) -> str:
        """The library of Qualcomm's that runs it; none where the built-in backend does."""
        if self.is_simulated and self.precision == FP16:
            return LIBRARIES["libqnnhtp"]
        return LIBRARIES.get(self.backend.lower().removesuffix(".so"), "")

    @property
    def is_simulated(self) -> bool:
        """Whether the backend is HTP as the built-in backend computes it."""
        return self.backend in SIMULATED

    @property
    def settings(self) -> dict[str, int]:
        """What of the backend's extensions libQnnHtp is told; the rest concerns devices."""
        return {n: int(v) for n, v in self.extensions.items() if n in GRAPH_SETTINGS and v.isdigit()}

    @property
    def soc(self) -> str | None:
        return self.extensions.get("soc_model") or CHIPS.get(self.backend)


def check_backend(backend: str, arch: str) -> str:
    """The backend's name; an error with the reason where it cannot be had here."""
    if arch not in ARCHITECTURES:
        raise UsageError(
            f"there is no target architecture '{arch}'", hint=f"there are {', '.join(ARCHITECTURES)}"
        )
    name = backend.lower().removesuffix(".so")
    if name in ELSEWHERE:
        raise UnsupportedError(f"backend {name}: {ELSEWHERE[name]}", hint="backend htp or cpu")
    known = (SIMULATION, BUILT_IN, *CHIPS, *LIBRARIES)
    if name not in known:
        raise UsageError(f"there is no backend '{backend}'", hint=f"there are {', '.join(known)}")
    return name


def recipe_of_params(params: Mapping[str, str]) -> Recipe:
    """The quantizer's choices that converter parameters stand for; QNN's own defaults otherwise."""
    param = params.get("param_quantizer", "tf")
    act = params.get("act_quantizer", param)
    for name, said in (("param_quantizer", param), ("act_quantizer", act)):
        if said not in QUANTIZERS:
            raise UsageError(f"{name}: there is no quantizer '{said}'", hint=", ".join(QUANTIZERS))
    like_qnn = Recipe(param=Scheme(), per_channel=False, per_row=False, headroom=False, wide=False)
    return replace(
        like_qnn,
        act=Scheme(*QUANTIZERS[act]),
        param=Scheme(*QUANTIZERS[param]),
        act_bw=int(params.get("act_bw", "8")),
        bias_bw=int(params.get("bias_bw", "8")),
        weight_bw=int(params.get("weight_bw", "8")),
        float_bw=int(params.get("float_bitwidth", params.get("float_bw", "32"))),
        per_channel=is_true(params.get("use_per_channel_quantization", "False")),
        per_row=is_true(params.get("use_per_row_quantization", "False")),
    )


def is_true(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"'{text}' is neither True nor False")
    return text.lower() == "true"


def variant_of(params: Mapping[str, str], backend: str, soc: str | None) -> Variant:
    """How the parameters quantize: for libQnnCpu in its forms, for all others in those of HTP."""
    said = params.get("algorithms", "default")
    algorithms = tuple(word for word in said.replace(",", " ").split() if word != "default")
    target = _target_of(backend).fixed_point_of
    return Variant(
        recipe_of_params(params), algorithms, params.get("quantization_overrides", ""), target, soc
    )


def _target_of(backend: str) -> Target:
    """What graphs are made for: HTP, unless another library is named."""
    return target_of_library(LIBRARIES.get(backend, HTP))


def label_of_params(params: Mapping[str, str]) -> str:
    """quantizer[_cle][_pcq][_pqr], with whatever else differs behind it."""
    words = [params.get("param_quantizer", "tf")]
    if (act := params.get("act_quantizer", words[0])) != words[0]:
        words.append(f"act-{act}")
    words += [w for w in params.get("algorithms", "default").replace(",", " ").split() if w != "default"]
    flags = (("use_per_channel_quantization", "pcq"), ("use_per_row_quantization", "pqr"))
    words += [short for name, short in flags if is_true(params.get(name, "False"))]
    usual = {"act_bw": "8", "bias_bw": "8", "weight_bw": "8"}
    widths = ((name, params.get(name, value), value) for name, value in usual.items())
    words += [f"{name.partition('_')[0]}{said}" for name, said, value in widths if said != value]
    return "_".join(words)


def all_options(backend: str, arch: str, act_bw: int, bias_bw: int) -> list[Inference]:
    """The 32 options of minimal mode: quantizers, equalisation, scales by channel and by row."""
    name, found = check_backend(backend, arch), list[Inference]()
    extensions = EXTENSIONS if _target_of(name).compiles else {}
    for algorithm, quantizer, channel, row in product(
        ("default", "cle"), QUANTIZERS, ("True", "False"), ("True", "False")
    ):
        params = {
            "algorithms": algorithm, "param_quantizer": quantizer,
            "use_per_channel_quantization": channel, "use_per_row_quantization": row,
        }  # fmt: skip
        chosen = params | {"act_bw": str(act_bw), "bias_bw": str(bias_bw)}
        label = f"schema1_qnn_{label_of_params(params)}"
        variant = variant_of(chosen, name, CHIPS.get(name))
        found.append(
            Inference(label, QNN, QUANT, name, arch, variant=variant, params=params, extensions=extensions)
        )
    return found
