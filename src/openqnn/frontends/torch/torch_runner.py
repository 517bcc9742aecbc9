"""PyTorch on a model as it is: what a converted graph is compared with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import BackendError, InputError, ModelError
from openqnn.frontends.torch.archive import ArchiveKind, kind_of
from openqnn.frontends.torch.decompose import has_torch
from openqnn.frontends.torch.torchscript import quiet
from openqnn.ir import Array
from openqnn.runtime.runner import Outputs, chosen


class TorchRunner:
    """A model of PyTorch; a runner in the sense of `Runner`. Inputs are told apart by their order.

    Of an exported program every node is shown, by its own name. A TorchScript file has no names inside: its
    outputs are torch's, and the tensors before them those of torch's own export to ONNX, in ONNX Runtime.
    """

    def __init__(self, model: str | os.PathLike[str]) -> None:
        if not has_torch():
            raise BackendError(
                "models of PyTorch are run by torch, which is not installed",
                hint="pip install 'openqnn[torch]'",
            )
        self._path = Path(model)
        self._script = kind_of(self._path) is ArchiveKind.SCRIPT
        self._own: list[str] = []
        self._names: list[str] = []

    @property
    def tensor_names(self) -> list[str]:
        """Known behind the first run."""
        return self._names

    def run(self, inputs: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        found = (self._run_script if self._script else self._run_program)(inputs)
        self._names = list(found)
        return {name: found[name] for name in chosen(outputs, self._own, self._names)}

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        """Nothing is kept between runs."""

    def _run_program(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        torch: Any = import_module("torch")
        fx: Any = import_module("torch.fx")
        try:
            program = torch.export.load(str(self._path))
        except Exception as e:  # torch raises whatever it finds
            raise ModelError(f"{self._path}: torch cannot load it: {_line(e)}") from e
        module = program.module()
        seen: dict[str, Array] = {}
        interpreter = _observed(fx, torch, module, seen)
        with torch.no_grad():
            _called(self._path, lambda: interpreter.run(*_tensors(torch, inputs.values())))
        output = next(node for node in module.graph.nodes if node.op == "output")
        self._own = [node.name for node in output.all_input_nodes if node.name in seen]
        return seen

    def _run_script(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        torch: Any = import_module("torch")
        module = torch.jit.load(str(self._path), map_location="cpu").eval()
        with torch.no_grad():
            made = _called(self._path, lambda: module(*_tensors(torch, inputs.values())))
        results = [a.numpy() for a in (made if isinstance(made, tuple | list) else [made])]
        between, own = _by_onnx(torch, module, inputs)
        self._own = list(own) or [f"output_{i}" for i in range(len(results))]
        return between | dict(zip(self._own, results, strict=True))


def _observed(fx: Any, torch: Any, module: Any, seen: dict[str, Array]) -> Any:
    """An interpreter that keeps what every node gives."""

    class Observed(fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            if isinstance(result, torch.Tensor) and n.op.startswith("call"):
                seen[n.name] = result.detach().cpu().numpy()
            return result

    return Observed(module)


def _tensors(torch: Any, arrays: Iterable[Array]) -> list[Any]:
    return [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]


def _called(path: Path, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as e:  # torch raises whatever a model does
        raise InputError(f"{path}: torch cannot run it on these inputs: {_line(e)}") from e


def _by_onnx(torch: Any, module: Any, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], Sequence[str]]:
    """Tensors and outputs of torch's export to ONNX; nothing where torch does not export the model."""
    import io

    import onnx

    from openqnn.runtime.onnx_runner import OnnxRuntimeRunner

    written = io.BytesIO()
    arguments = tuple(_tensors(torch, inputs.values()))
    try:
        with quiet():
            torch.onnx.export(
                module, arguments, written, dynamo=False, input_names=list(inputs), opset_version=17
            )
    except Exception:  # torch raises whatever a model does
        return {}, ()
    model = onnx.load_from_string(written.getvalue())
    runner = OnnxRuntimeRunner(model)
    found = runner.run(dict(inputs), "all")
    runner.close()
    return found, [o.name for o in model.graph.output]


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
