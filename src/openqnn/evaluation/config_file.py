"""The YAML file of a config: read with every key checked, and wrong ones told with their path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from openqnn.errors import InputError
from openqnn.formats.yaml_text import parse_yaml
from openqnn.options import context_tools, net_run
from openqnn.options.field import options_of

ANY = "any"  # a key whose value may be whatever it likes
PLUGINS = [{"plugin": {"name": ANY, "params": ANY}}]
PORTS = ANY
CONVERTER = (
    "param_quantizer", "act_quantizer", "algorithms", "use_per_channel_quantization",
    "use_per_row_quantization", "quantization_overrides", "act_bw", "bias_bw", "weight_bw",
    "float_bw", "float_bitwidth",
)  # fmt: skip


def flag_names(module: ModuleType) -> list[str]:
    """The flags that a module of options declares, as a config spells them."""
    groups = (group for group in vars(module).values() if isinstance(group, type) and is_dataclass(group))
    names = (name for group in groups for _, each in options_of(group) for name in each.names)
    return sorted({name.lstrip("-") for name in names if name.startswith("--")})


EXTENSIONS = (
    "vtcm_mb", "rpc_control_latency", "num_cores", "soc_id", "soc_model", "dsp_arch", "hvx_threads", "O",
    "fp16_relaxed_precision", "perf_profile", "rpc_polling_time", "device_id", "core_id",
)  # fmt: skip
SCHEMA: Mapping[str, Any] = {
    **dict.fromkeys(("name", "precision", "target_arch", "backend", "tag", "is_ref"), ANY),
    "converter_params": dict.fromkeys(CONVERTER, ANY),
    "contextbin_params": dict.fromkeys(flag_names(context_tools), ANY),
    "netrun_params": dict.fromkeys(flag_names(net_run), ANY),
    "backend_extensions": dict.fromkeys(EXTENSIONS, ANY),
    **dict.fromkeys(("inputs_info", "outputs_info"), PORTS),
}
KNOWN: Mapping[str, Any] = {
    "info": dict.fromkeys(("name", "desc", "description", "batchsize"), ANY),
    "globals": ANY,
    "dataset": {
        "name": ANY, "path": ANY, "inputlist_file": ANY, "annotation_file": ANY,
        "calibration": {"type": ANY, "file": ANY},
        "transformations": PLUGINS,
    },
    "processing": {
        "preprocessing": {"transformations": PLUGINS},
        "postprocessing": {"squash_results": ANY, "transformations": PLUGINS},
    },
    "inference-engine": {
        "model_path": ANY, "simplify_model": ANY,
        "inference_schemas": [{"inference_schema": SCHEMA, "inputs_info": PORTS, "outputs_info": PORTS}],
        "inputs_info": PORTS, "outputs_info": PORTS,
    },
    "evaluator": {
        "comparator": dict.fromkeys(("enabled", "fetch-top", "type", "tol", "box_input"), ANY),
        "metrics": PLUGINS,
    },
}  # fmt: skip
SYMBOL = re.compile(r"\$\{(\w+)\}|\$\((\w+)\)|\$(\w+)")


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice: the first would be lost in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key}' stands twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, str) else repr(key))
        return super().construct_mapping(node, deep)


def read_config(path: str, said: Mapping[str, str]) -> Mapping[str, Any]:
    """The content below `model:`, checked, with symbols of `globals` put in; `said` counts more than they."""
    content = _parsed(path)
    model = content["model"] if set(content) == {"model"} else content
    if not isinstance(model, Mapping):
        raise InputError(f"{path}: model has no keys", hint=", ".join(KNOWN))
    checked = _checked(path, "", model, KNOWN)
    symbols = {str(k): v for k, v in (checked.get("globals") or {}).items()}
    unknown = [name for name in said if name not in symbols]
    if unknown:
        known = ", ".join(symbols) or "none"
        raise InputError(
            f"-set_global {unknown[0]}: {path} has no such symbol in globals", hint=f"it has {known}"
        )
    return _filled(checked, symbols | dict(said), path)


def _parsed(path: str) -> Mapping[Any, Any]:
    try:
        content = parse_yaml(Path(path).read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is no text file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{path}{where}: no YAML ({getattr(error, 'problem', None) or error})") from error
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: no keys in it", hint="model: with dataset, inference-engine, ...")
    return content


def _plain(key: Any) -> str:
    return {"inference_engine": "inference-engine", "fetch_top": "fetch-top"}.get(str(key), str(key))


def _checked(path: str, where: str, value: Any, known: Any) -> Any:
    if known == ANY or value is None:
        return value
    if isinstance(known, Sequence):
        if not isinstance(value, list):
            raise InputError(
                f"{path}: {where} is no list", hint=f"{where}: with '- {next(iter(known[0]))}:' below"
            )
        return [_checked(path, f"{where}[{i}]", each, known[0]) for i, each in enumerate(value)]
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: {where} has no keys below it", hint=", ".join(known))
    return {
        key: _checked(path, _below(where, key), each, _one(path, where, key, known))
        for key, each in _items(value)
    }


def _items(value: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    return [(_plain(key), each) for key, each in value.items()]


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _one(path: str, where: str, key: str, known: Mapping[str, Any]) -> Any:
    if key in known:
        return known[key]
    near = get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known there: {', '.join(known)}"
    raise InputError(f"{path}: unknown key {_below(where, key)}", hint=hint)


def _filled(value: Any, symbols: Mapping[str, Any], path: str) -> Any:
    """With $SYMBOL, ${SYMBOL} and $(SYMBOL) replaced; a value that is only that keeps the symbol's type."""
    if isinstance(value, Mapping):
        return {key: _filled(each, symbols, path) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, symbols, path) for each in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    whole = SYMBOL.fullmatch(value)
    if whole is not None:
        return _symbol(whole, symbols, path)
    return SYMBOL.sub(lambda m: str(_symbol(m, symbols, path)), value)


def _symbol(match: re.Match[str], symbols: Mapping[str, Any], path: str) -> Any:
    name = next(filter(None, match.groups()))
    if name not in symbols:
        known = ", ".join(symbols) or "none"
        raise InputError(f"{path}: there is no symbol '{name}' in globals", hint=f"there are {known}")
    return symbols[name]
