"""Skeletons of packages that need other SDKs, HTP, GPU and DSP: they say what is needed."""

from __future__ import annotations

from typing import Final

from openqnn.formats.op_package import OpDef, OpPackage

NEEDS: Final = {
    "HTP": "the QNN SDK (QNN_SDK_ROOT), the Hexagon SDK (HEXAGON_SDK_ROOT) for the device, and clang for x86",
    "GPU": "the QNN SDK (QNN_SDK_ROOT), the Android NDK (ANDROID_NDK_ROOT) and OpenCL 1.2 or later",
    "DSP": "the QNN SDK (QNN_SDK_ROOT) and the Hexagon SDK (HEXAGON_SDK_ROOT)",
}
_VARIABLES: Final = {
    "HTP": ("QNN_SDK_ROOT", "HEXAGON_SDK_ROOT"),
    "GPU": ("QNN_SDK_ROOT", "ANDROID_NDK_ROOT"),
    "DSP": ("QNN_SDK_ROOT", "HEXAGON_SDK_ROOT"),
}


def skeleton_makefile(package: OpPackage, backend: str, library: str) -> str:
    checks = "\n".join(
        f"ifndef {name}\n$(error {name} is not set: this package needs {NEEDS[backend]})\nendif"
        for name in _VARIABLES[backend]
    )
    flags = "-std=c++17 -O2 -fPIC -fvisibility=hidden"
    return f"""\
# Op package {package.name} for {backend}. It needs {NEEDS[backend]}.

{checks}

CXX ?= clang++
INCLUDES := -I$(QNN_SDK_ROOT)/include/QNN
TARGET := libs/x86_64-linux-clang/{library}

all: $(TARGET)

$(TARGET): $(wildcard src/*.cpp src/ops/*.cpp)
\t@mkdir -p $(@D)
\t$(CXX) {flags} $(INCLUDES) -shared $^ -o $@

clean:
\trm -rf libs

.PHONY: all clean
"""


def _htp_interface(package: OpPackage, _: str, provider: str) -> str:
    declared = "\n".join(f"DECLARE_PKG_OPS_OPTS_LIST(PKG_{op.name})" for op in package.ops)
    names = ", ".join(f'"{op.name}"' for op in package.ops)
    return f"""\
// The interface of op package {package.name} for HTP. It compiles with {NEEDS["HTP"]}.

#include "HTP/QnnHtpCommon.h"
#include "HTP/core/constraints.h"
#include "HTP/core/op_package_feature_support.h"
#include "HTP/core/op_register_ext.h"
#include "HTP/core/optimize.h"
#include "HTP/core/simple_reg.h"
#include "HTP/core/unique_types.h"
#include "QnnOpPackage.h"

BEGIN_PKG_OPS_OPTS_LIST()
{declared}
END_PKG_OPS_OPTS_LIST()

// Write here: init (REGISTER_PACKAGE_OPS, REGISTER_PACKAGE_OPTIMIZATIONS), getInfo for
// {{{names}}}, validateOpConfig, and the provider below, as the SDK's documentation describes for HTP.

extern "C" Qnn_ErrorHandle_t {provider}(QnnOpPackage_Interface_t* interface);
"""


def _htp_kernel(package: OpPackage, op: OpDef, _: str) -> str:
    ins = ", ".join(f"const Tensor& {_c(d.name)}" for d in (*op.inputs, *op.params))
    outs = ", ".join(f"Tensor& {_c(d.name)}" for d in op.outputs)
    lower = op.name[0].lower() + op.name[1:]
    kinds = ", ".join(sorted({t for d in op.outputs for t in package.datatypes(op.name, d.name, "HTP")}))
    return f"""\
// {op.name} of op package {package.name} for HTP. Data types: {kinds}.

#include "HTP/core/constraints.h"
#include "HTP/core/op_package_feature_support.h"
#include "HTP/core/op_register_ext.h"
#include "HTP/core/optimize.h"
#include "HTP/core/simple_reg.h"
#include "QnnOpPackage.h"

BEGIN_PKG_OP_DEFINITION(PKG_{op.name});

GraphStatus {lower}Impl({outs}, {ins});

DEF_PACKAGE_OP(({lower}Impl), "{op.name}")

GraphStatus {lower}Impl({outs}, {ins}) {{
  // Write the kernel here: set the output's dims, then its elements.
  return GraphStatus::ErrorFatal;
}}

END_PKG_OP_DEFINITION(PKG_{op.name});
"""


def _plain_interface(package: OpPackage, backend: str, provider: str) -> str:
    """GPU and DSP: the interface in full, and kernels that are left open."""
    names = ", ".join(f'"{op.name}"' for op in package.ops)
    return f"""\
// The interface of op package {package.name} for {backend}. Kernels need {NEEDS[backend]}.

#include <cstring>

#include "QnnOpPackage.h"

namespace {{

const char* names[] = {{{names}}};
QnnOpPackage_Info_t info = {{}};

Qnn_ErrorHandle_t init(QnnOpPackage_GlobalInfrastructure_t) {{ return QNN_SUCCESS; }}

Qnn_ErrorHandle_t terminate() {{ return QNN_SUCCESS; }}

Qnn_ErrorHandle_t getInfo(const QnnOpPackage_Info_t** given) {{
  info.packageName = "{package.name}";
  info.operationNames = names;
  info.numOperations = sizeof(names) / sizeof(names[0]);
  *given = &info;
  return QNN_SUCCESS;
}}

Qnn_ErrorHandle_t validateOpConfig(Qnn_OpConfig_t config) {{
  for (const char* name : names) {{
    if (std::strcmp(name, config.v1.typeName) == 0) return QNN_SUCCESS;
  }}
  return QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE;
}}

// Write here what {backend} runs for each operation, as the SDK's documentation describes.
Qnn_ErrorHandle_t createOpImpl(QnnOpPackage_GraphInfrastructure_t, QnnOpPackage_Node_t,
                               QnnOpPackage_OpImpl_t*) {{
  return QNN_COMMON_ERROR_NOT_SUPPORTED;
}}

Qnn_ErrorHandle_t freeOpImpl(QnnOpPackage_OpImpl_t) {{ return QNN_SUCCESS; }}

Qnn_ErrorHandle_t logInitialize(QnnLog_Callback_t, QnnLog_Level_t) {{ return QNN_SUCCESS; }}

Qnn_ErrorHandle_t logSetLevel(QnnLog_Level_t) {{ return QNN_SUCCESS; }}

Qnn_ErrorHandle_t logTerminate() {{ return QNN_SUCCESS; }}

}}  // namespace

extern "C" __attribute__((visibility("default"))) Qnn_ErrorHandle_t {provider}(
    QnnOpPackage_Interface_t* interface) {{
  interface->interfaceVersion = {{1, 4, 0}};
  interface->v1_4 = {{init,       terminate,     getInfo,     validateOpConfig, createOpImpl,
                     freeOpImpl, logInitialize, logSetLevel, logTerminate}};
  return QNN_SUCCESS;
}}
"""


def _plain_kernel(package: OpPackage, op: OpDef, backend: str) -> str:
    what = op.description or "write its kernel here"
    lines = [f"// {op.name} of op package {package.name} for {backend}: {what}"]
    for kind, group in (("input", op.inputs), ("output", op.outputs), ("parameter", op.params)):
        for d in group:
            types = ", ".join(package.datatypes(op.name, d.name, backend))
            lines.append(f"//   {kind} {d.name}: {d.rank} {d.layout}".rstrip() + f", {types}")
    return "\n".join([*lines, ""])


_INTERFACES = {"HTP": _htp_interface}
_KERNELS = {"HTP": _htp_kernel}


def interface_skeleton(package: OpPackage, backend: str, provider: str) -> str:
    """The interface of a package in the form that a backend wants."""
    return _INTERFACES.get(backend, _plain_interface)(package, backend, provider)


def kernel_skeleton(package: OpPackage, op: OpDef, backend: str) -> str:
    """A kernel of a package in the form that a backend wants, to be filled in."""
    return _KERNELS.get(backend, _plain_kernel)(package, op, backend)


def _c(name: str) -> str:
    return name.replace("[", "_").replace("]", "")
