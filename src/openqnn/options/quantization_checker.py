"""Options of qnn-quantization-checker."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class CheckerOptions:
    """The check; what the command line says counts more than the config file."""

    config_file: str = option(
        "", "--config_file", metavar="JSON", required=True, help="a file with all choices by name"
    )
    model: str = option("", "--model", metavar="PATH", help="a model, or a folder of models")
    input_list: str = option(
        "", "--input_list", metavar="FILE",
        help="a list of raw input files (a folder of models has an input_list.txt beside each)",
    )  # fmt: skip
    activation_width: str = option("", "--activation_width", metavar="BITS", help="8 (default) or 16")
    bias_width: str = option("", "--bias_width", metavar="BITS", help="8 (default) or 32")
    output_dir: str = option("", "--output_dir", metavar="DIR", help="where results go")
    skip_building_model: bool = option(
        False, "--skip_building_model", help="for scripts that have it: no library is built here"
    )
    skip_generator: bool = option(
        False, "--skip_generator", help="for scripts that have it: quantization happens in memory"
    )
    skip_runner: bool = option(False, "--skip_runner", help="leave out activations: weights and biases only")
    generate_histogram: bool = option(
        False, "--generate_histogram", help="plot weights and biases before quantization"
    )
    per_channel_histogram: bool = option(
        False, "--per_channel_histogram", help="plot the channels of weights one by one"
    )
    output_csv: bool = option(False, "--output_csv", help="also write all results as CSV")
