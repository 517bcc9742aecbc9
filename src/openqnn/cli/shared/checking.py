"""Checking one model for qnn-quantization-checker: all options of the quantizer, and repair."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openqnn.analysis.accuracy.quantization_checks import (
    ACTIVATION,
    BIAS,
    WEIGHT,
    CheckedTensor,
    CheckResult,
    check_tensor,
    chosen_checks,
)
from openqnn.cli.shared.checker_files import CheckerFiles
from openqnn.cli.shared.quantizing import LIKE_QNN, QUANTIZERS
from openqnn.errors import OpenQnnWarning, UsageError
from openqnn.ir import OVERRIDE, Array, Given, Graph
from openqnn.ops.schema import Role
from openqnn.quant.plan import is_weight, operands
from openqnn.quant.recipe import Recipe, Scheme

if TYPE_CHECKING:
    from openqnn.cli.tools.qnn_quantization_checker import CheckerConfig

VARIATIONS = ["tf", "enhanced", "adjusted", "symmetric"]
ALGORITHMS = ["cle", "pcq"]
CHECKS = [{"algo_name": n, "threshold": t} for n, t in (("minmax", 10), ("maxdiff", 10), ("sqnr", 26))]
ACT_CHECKS = [{"algo_name": "minmax", "threshold": 10}, {"algo_name": "data_range_analyzer"}]
INPUT_CHECKS = [{"algo_name": "stats", "threshold": 2}]
WIDE = 16


class Checking:
    """One model, its inputs, and what was found for each option."""

    def __init__(self, source: Path, inputs: str, config: CheckerConfig, files: CheckerFiles) -> None:
        from openqnn.api.files import open_graph
        from openqnn.quant.samples import samples_of

        self.config, self.files, self.source, self.inputs = config, files, source, inputs
        options = config.options
        self.act_bw = config.width("ACTIVATION_WIDTH", options.activation_width, (8, 16))
        self.bias_bw = config.width("BIAS_WIDTH", options.bias_width, (8, 32))
        self.weight_bw = config.width("WEIGHT_WIDTH", "", (4, 8))
        self.checks = {
            WEIGHT: chosen_checks(config.listed("WEIGHT_COMPARISON_ALGORITHMS", CHECKS)),
            BIAS: chosen_checks(config.listed("BIAS_COMPARISON_ALGORITHMS", CHECKS)),
            ACTIVATION: chosen_checks(config.listed("ACT_COMPARISON_ALGORITHMS", ACT_CHECKS)),
        }
        self.input_checks = chosen_checks(config.listed("INPUT_DATA_ANALYSIS_ALGORITHMS", INPUT_CHECKS))
        self.opened = open_graph(source)
        self.samples = list(samples_of(self.opened, inputs))
        self.names = _input_names(inputs, len(self.samples))
        self.found: dict[str, dict[str, list[CheckResult]]] = {}
        self.graphs: dict[str, tuple[Graph, Graph]] = {}
        for flag in ("skip_building_model", "skip_generator"):
            if getattr(options, flag):
                files.say(f"note: --{flag}: there is nothing to skip, models are quantized in memory")

    def run(self) -> dict[str, int]:
        """All options; how many tensors fail with each."""
        for option in self._options():
            self.files.say(f"quantizing with {option}")
            self.found[option] = self._checked(option, {})
        self._write()
        return {option: _failed(results) for option, results in self.found.items()}

    def _options(self) -> list[str]:
        variations = self.config.listed("QUANTIZATION_VARIATIONS", VARIATIONS)
        algorithms = self.config.listed("QUANTIZATION_ALGORITHMS", ALGORITHMS)
        for name in [v for v in variations if v not in QUANTIZERS] + [
            a for a in algorithms if a not in ALGORITHMS
        ]:
            raise UsageError(
                f"there is no way to quantize '{name}'", hint=", ".join([*QUANTIZERS, *ALGORITHMS])
            )
        return [f"{v}{'_' + a if a else ''}" for v in variations for a in ("", *algorithms)]

    def _recipe(self, option: str) -> tuple[Recipe, tuple[str, ...]]:
        name, _, extra = option.partition("_")
        scheme = Scheme(*QUANTIZERS[name])
        recipe = replace(
            LIKE_QNN, act=scheme, param=scheme, act_bw=self.act_bw, bias_bw=self.bias_bw,
            weight_bw=self.weight_bw, per_channel=extra == "pcq", per_row=extra == "pcq",
        )  # fmt: skip
        return recipe, ("cle",) if extra == "cle" else ()

    def _checked(self, option: str, given: Mapping[str, Given]) -> dict[str, list[CheckResult]]:
        from openqnn.api.quantize import quantize

        recipe, algorithms = self._recipe(option)
        outcome: list[Any] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OpenQnnWarning)
            fixed = quantize(
                self.opened, self.samples, recipe=recipe, algorithms=algorithms, given=given,
                overrides=self.config.text("QUANTIZATION_OVERRIDES") or None, outcome=outcome.append,
            )  # fmt: skip
        self.graphs[option] = outcome[0].real, fixed
        results: dict[str, list[CheckResult]] = {WEIGHT: [], BIAS: []}
        for tensor in _parameters(outcome[0].real, fixed):
            results[tensor.kind] += check_tensor(tensor, self.checks[tensor.kind])
        for index in range(0 if self.config.options.skip_runner else len(self.samples)):
            results[f"{ACTIVATION} {index}"] = self._activations(outcome[0].real, fixed, index)
        return results

    def _activations(self, real: Graph, fixed: Graph, index: int) -> list[CheckResult]:
        from openqnn.analysis.accuracy.layer_errors import code
        from openqnn.runtime.boundary import accepted
        from openqnn.runtime.cpu.executable import CpuExecutable

        values = [v for n in real.nodes for v in n.outputs if v.dtype.is_float]
        coded = {v.name: v for v in fixed.values() if v.encoding is not None and not v.is_constant}
        shown = [v for v in values if v.name in coded and coded[v.name].shape == v.shape]
        given = accepted(real, self.samples[index])
        executable = CpuExecutable(real, extra=[v for v in shown if not real.is_output(v)])
        arrays = executable.run(given)
        executable.close()
        found = self._input_data(given)
        for value in (v for v in shown if v.name in arrays):
            other = coded[value.name]
            owner = value.producer.name if value.producer is not None else "input"
            numbers = code(other, arrays[value.name])[1]
            tensor = CheckedTensor(owner, value.name, ACTIVATION, arrays[value.name], numbers, other.encoding)
            found += check_tensor(tensor, self.checks[ACTIVATION])
        return found

    def _input_data(self, given: Mapping[str, Array]) -> list[CheckResult]:
        tensors = [
            CheckedTensor("input", n, ACTIVATION, a, a, None) for n, a in given.items() if a.dtype.kind == "f"
        ]
        return [result for tensor in tensors for result in check_tensor(tensor, self.input_checks)]

    def _write(self) -> None:
        wanted = self.config.flag("OUTPUT_CSV", self.config.options.output_csv)
        self._write_view()
        for option, results in self.found.items():
            static = [*results[WEIGHT], *results[BIAS]]
            for index in range(max(1, len(results) - 2)):
                seen = results.get(f"{ACTIVATION} {index}", [])
                self.files.page(option, self.names[index], self.source.name, [*seen, *static])
                if wanted and seen:
                    self.files.table(f"{option}_activations_{self.names[index]}", seen)
            if wanted:
                self.files.table(f"{option}_weights", results[WEIGHT])
                self.files.table(f"{option}_biases", results[BIAS])
        acts = {
            o: [r for k, v in f.items() if k.startswith(ACTIVATION) for r in v] for o, f in self.found.items()
        }
        self.files.failures("ACTIVATIONS", "Activation Node", acts)
        self.files.failures("WEIGHTS", "Weight Node", {o: f[WEIGHT] for o, f in self.found.items()})
        self.files.failures("BIASES", "Bias Node", {o: f[BIAS] for o, f in self.found.items()})
        self._histograms()

    def _write_view(self) -> None:
        graph = next(iter(self.graphs.values()))[0]
        failed: dict[str, dict[str, int]] = {}
        for option, results in self.found.items():
            counts = failed.setdefault(option, {})
            for result in (r for rows in results.values() for r in rows if not r.passed):
                counts[result.op] = counts.get(result.op, 0) + 1
        self.files.view(graph, failed)

    def _histograms(self) -> None:
        options = self.config.options
        if not self.config.flag(
            "GENERATE_HISTOGRAM", options.generate_histogram or options.per_channel_histogram
        ):
            return
        real, fixed = next(iter(self.graphs.values()))
        for tensor in _parameters(real, fixed):
            folder = "hist_analysis_weights" if tensor.kind == WEIGHT else "hist_analysis_biases"
            self.files.histogram(folder, tensor.name, tensor.real, options.per_channel_histogram)

    # -- repair ----------------------------------------------------------------------------------------------

    def repair(self) -> None:
        """Raises the width of the worst activation that fails, and tells whether that helped."""
        option = min(self.found, key=lambda o: _failed(self.found[o]))
        real, fixed = self.graphs[option]
        worst = self._worst(real, fixed)
        if worst is None:
            self.files.say("repair: no activation of 8 bits is left to raise")
            return
        before, failed = self._sqnr(option), _failed(self.found[option])
        repaired = self._checked(option, {worst: Given(OVERRIDE, WIDE)})
        after = self._sqnr(option)
        verdict = "it helped" if after > before + 0.1 else "it did not help"
        self.files.say(
            f"repair: 16 bits for '{worst}' with {option}: worst output {before:.1f} -> {after:.1f} dB,"
            f" failures {failed} -> {_failed(repaired)}: {verdict}"
        )
        self.found[f"{option}_repaired"] = repaired
        self._percentages()

    def _worst(self, real: Graph, fixed: Graph) -> str | None:
        from openqnn.analysis.accuracy.layer_errors import measure_layers

        measured = measure_layers(real, fixed, self.samples[:2])
        narrow = {
            n: t.decibels(t.added)
            for n, t in measured.tallies.items()
            if t.count and (e := measured.pairing.fixed[n].encoding) is not None and e.bitwidth < WIDE
        }
        return min(narrow, key=lambda n: narrow[n]) if narrow else None

    def _sqnr(self, option: str) -> float:
        from openqnn.runtime.compare import output_noise

        noise = output_noise(*self.graphs[option], self.samples[:4])
        return min((n.sqnr for n in noise.values()), default=0.0)

    def _percentages(self) -> None:
        for name in sorted({r.algorithm for f in self.found.values() for v in f.values() for r in v}):
            self.files.say(f"{name.upper()}: Percentage of Failed Nodes")
            self.files.say(" | ".join(["Tensor Type", "unquantized", *self.found]))
            for kind, label in ((WEIGHT, "Weights"), (BIAS, "Biases"), (ACTIVATION, "Activations")):
                shares = [_share(found, kind, name) for found in self.found.values()]
                self.files.say(" | ".join([label, "N/A", *shares]))


def _input_names(path: str, count: int) -> list[str]:
    """A name for each set of inputs: its number, and its first file's name."""
    lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]
    files = [Path(words[0].rpartition(":=")[2]).stem for words in lines if words and words[0][0] not in "#%"]
    return [f"{i}_{files[i]}" if i < len(files) else str(i) for i in range(count)]


def _share(found: Mapping[str, list[CheckResult]], kind: str, algorithm: str) -> str:
    results = [r for k, v in found.items() if k.startswith(kind) for r in v if r.algorithm == algorithm]
    return f"{100 * sum(not r.passed for r in results) / len(results):.1f}" if results else "N/A"


def _failed(found: Mapping[str, list[CheckResult]]) -> int:
    return len({(r.kind, r.name) for results in found.values() for r in results if not r.passed})


def _parameters(real: Graph, fixed: Graph) -> Iterator[CheckedTensor]:
    """Weights and biases as they are and as they come out of their encodings."""
    source: dict[str, Array] = {v.name: v.data for v in real.constants() if v.data is not None}
    for node in fixed.nodes:
        for _, value, operand in operands(node):
            bias = operand.role is Role.BIAS
            if value.encoding is None or value.data is None or not (bias or is_weight(value, operand)):
                continue
            original = source.get(value.name)
            if original is None or original.shape != value.shape:
                continue
            numbers = value.encoding.dequantize(value.data)
            kind = BIAS if bias else WEIGHT
            yield CheckedTensor(
                node.name, value.name, kind, original.astype(np.float32), numbers, value.encoding
            )
