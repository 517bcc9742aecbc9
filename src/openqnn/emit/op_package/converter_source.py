"""The C++ of a converter op package: what shapes and types the results of custom ops have."""

from __future__ import annotations

from openqnn.formats.op_package import OpDef, OpPackage


def converter_source(package: OpPackage) -> str:
    functions = "\n".join(_function(op) for op in package.ops)
    table = "\n".join(
        f'  if (std::strcmp(op, "{op.name}") == 0) {{\n'
        f"    return {op.name}Infer(inputs, numInputs, outputs, numOutputs);\n  }}"
        for op in package.ops
    )
    return _SOURCE % {"package": package.name, "functions": functions, "table": table}


def _function(op: OpDef) -> str:
    told = ", ".join(d.name for d in op.inputs)
    return f"""\
// {op.name}: inputs {told}. Every result has the shape and type of the first input unless you change that.
int {op.name}Infer(const ConverterTensor* inputs, uint32_t numInputs, ConverterTensor* outputs,
                   uint32_t numOutputs) {{
  if (numInputs == 0) return 1;
  for (uint32_t i = 0; i < numOutputs; ++i) outputs[i] = inputs[0];
  return 0;
}}
"""


def converter_makefile(library: str) -> str:
    return f"""\
# The converter op package: converters take it with --converter_op_package_lib.

CXX ?= g++

all: {library}

{library}: ConverterOpPackage.cpp
\t$(CXX) -std=c++17 -O2 -Wall -fPIC -shared $< -o $@

clean:
\trm -f {library}

.PHONY: all clean
"""


_SOURCE = """\
// Shapes and data types of the results of package %(package)s, for converters (--converter_op_package_lib).

#include <cstdint>
#include <cstring>

struct ConverterTensor {
  uint32_t dataType;  // as in Qnn_DataType_t: 0x0232 is FLOAT_32
  uint32_t rank;
  uint32_t dimensions[8];
};

namespace {

%(functions)s
}  // namespace

// 0 is success; anything else says that the shapes of the results are not known.
extern "C" __attribute__((visibility("default"))) int OpenQnn_inferOutputs(
    const char* op, const ConverterTensor* inputs, uint32_t numInputs, ConverterTensor* outputs,
    uint32_t numOutputs) {
%(table)s
  return 1;
}
"""
