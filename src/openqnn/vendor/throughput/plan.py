"""What a throughput run is asked to do, with every file found and every library named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from openqnn.formats.input_list import InputList
from openqnn.formats.throughput_config import ThroughputConfig
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import Profiling, Target
from openqnn.vendor.throughput.scenario import Scenario

Lists = tuple[InputList | None, ...]


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """A library that is opened once."""

    target: Target
    profiling: Profiling = field(default_factory=Profiling)


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model with its files; `folder` is where its results go, "" for nowhere."""

    source: Source
    inputs: Lists = ()
    golden: Lists = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ThroughputPlan:
    """The configuration and all that it names. The run ends early when a file `stop` appears."""

    config: ThroughputConfig
    backends: Mapping[str, BackendPlan]
    models: Mapping[str, ModelPlan]
    stop: str = ""
    log: str = ""
    """Where profiling logs go."""
    scenario: Scenario | None = None
