"""The C++ of a CPU op package: an interface that libQnnCpu asks for, and a kernel for each operation."""

from __future__ import annotations

import re

from openqnn.formats.op_package import OperandDef, OpPackage
from openqnn.ops.custom import CustomOp, dtypes_of
from openqnn.ops.kernel_trace import identifier, kernel_body

NOT_WRITTEN = "return 1;  // not written yet: the library reports that the operation failed"


def interface_source(package: OpPackage, provider: str) -> str:
    """What a backend calls: the same for every package, but for its name and its operations."""
    entries = "\n".join(f"extern const oppackage::Entry {op.name}Entry;" for op in package.ops)
    table = ", ".join(f"&{op.name}Entry" for op in package.ops)
    names = ", ".join(f'"{op.name}"' for op in package.ops)
    return _INTERFACE % {
        "package": package.name, "provider": provider, "entries": entries, "table": table, "names": names,
    }  # fmt: skip


def kernel_source(op: CustomOp) -> tuple[str, str]:
    """The file of one operation, and why its kernel is left to the user ("" where it is not)."""
    body, reason = kernel_body(op)
    declared = op.declared
    lines = body or f"// {reason or 'write it here'}.\n{NOT_WRITTEN}"
    arguments = ", ".join(_arguments(op))
    calls = [*(identifier(d.name) for d in (*declared.inputs, *declared.outputs, *declared.params))]
    text = _KERNEL % {
        "name": declared.name,
        "doc": declared.description or f"{declared.name} of package {op.package}.",
        "arguments": arguments,
        "body": "\n".join(f"  {line}" if line else "" for line in lines.splitlines()),
        "unpack": "\n".join(f"  {line}" for line in _unpacked(op)),
        "call": ", ".join(calls),
        "store": "\n".join(_stored(op)),
        "entry": _entry(op),
    }
    return text, reason


def _number(op: CustomOp, d: OperandDef) -> str:
    """The type that a kernel sees: whole numbers where all that are declared are."""
    types = dtypes_of(op, d)
    whole = bool(types) and all(t.is_integer or (t.bits == 8 and not t.is_fixed) for t in types)
    return "int32_t" if whole else "float"


def _arguments(op: CustomOp) -> list[str]:
    declared, made = op.declared, list[str]()
    for d in declared.inputs:
        kind = f"Tensor<{_number(op, d)}>"
        kind = f"std::vector<{kind}>" if d.repeated else kind
        made.append(f"const {kind}& {identifier(d.name)}")
    for d in declared.outputs:
        kind = f"Tensor<{_number(op, d)}>"
        kind = f"std::vector<{kind}>" if d.repeated else kind
        made.append(f"{kind}& {identifier(d.name)}")
    for d in declared.params:
        kind = _number(op, d) if d.is_scalar else f"const Tensor<{_number(op, d)}>&"
        made.append(f"{kind} {identifier(d.name)}")
    return made


def _unpacked(op: CustomOp) -> list[str]:
    declared, made = op.declared, list[str]()
    for place, group in (("input", declared.inputs), ("output", declared.outputs)):
        for i, d in enumerate(group):
            kind, name = f"Tensor<{_number(op, d)}>", identifier(d.name)
            if d.repeated:
                made.append(f"std::vector<{kind}> {name};")
                loop = f"for (size_t i = {i}; i < op.{place}s.size(); ++i)"
                made.append(f"{loop} {name}.emplace_back(op.{place}(i));")
            else:
                made.append(f"{kind} {name}(op.{place}({i}));")
    for d in declared.params:
        kind, name = _number(op, d), identifier(d.name)
        if d.is_scalar:
            made.append(f'const {kind} {name} = static_cast<{kind}>(op.scalar("{d.name}", {_default(d)}));')
        else:
            default = f", {{{', '.join(_numbers(d.default, kind))}}}" if d.default else ""
            made.append(f'const Tensor<{kind}> {name}(op.tensor("{d.name}"){default});')
    return made


def _numbers(text: str, kind: str) -> list[str]:
    words = [w for w in re.split(r"[\s,\[\]{}]+", text) if w]
    return [str(int(w)) if kind == "int32_t" else f"{float(w)!r}f" for w in words]


def _default(d: OperandDef) -> str:
    if d.enumeration:
        return str(d.enumeration.index(d.default)) if d.default in d.enumeration else d.default or "0"
    return {"true": "1", "false": "0"}.get(d.default.lower(), d.default or "0")


def _stored(op: CustomOp) -> list[str]:
    return [
        f"  for (auto& each : {identifier(d.name)}) each.store();"
        if d.repeated
        else f"  {identifier(d.name)}.store();"
        for d in op.declared.outputs
    ]


def _entry(op: CustomOp) -> str:
    declared = op.declared
    ins, outs = declared.inputs, declared.outputs
    counts = [_least(ins), _most(ins), _least(outs), _most(outs)]
    types = [f"{{{', '.join(_types(op, d) for d in group)}}}" for group in (ins, outs)]
    names = ", ".join(f'"{d.name}"' for d in declared.params)
    needed = ", ".join(f'"{d.name}"' for d in declared.params if d.mandatory)
    head = f'"{declared.name}", {", ".join(map(str, counts))}'
    return ",\n    ".join([head, *types, f"{{{names}}}", f"{{{needed}}}", "run"])


def _least(group: tuple[OperandDef, ...]) -> int:
    return sum(d.mandatory for d in group)


def _most(group: tuple[OperandDef, ...]) -> int:
    return 1024 if any(d.repeated for d in group) else len(group)


def _types(op: CustomOp, d: OperandDef) -> str:
    codes = [f"{int(t):#06x}" for t in dtypes_of(op, d)]
    return f"{{{', '.join(codes)}}}"


_INTERFACE = """\
// The interface of op package %(package)s for libQnnCpu: what the backend asks for and calls.

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "CpuOpPackage.hpp"

%(entries)s

namespace {

using oppackage::CpuNode;
using oppackage::CpuOpImpl;
using oppackage::Entry;
using oppackage::Op;

const Entry* const entries[] = {%(table)s};
const char* names[] = {%(names)s};
const QnnOpPackage_Info_t info = {
    "%(package)s", names, nullptr, sizeof(names) / sizeof(names[0]), nullptr, 0, "", nullptr, nullptr,
    nullptr, {}};

const Entry* find(const char* name) {
  for (const Entry* entry : entries) {
    if (std::strcmp(entry->name, name) == 0) return entry;
  }
  return nullptr;
}

Qnn_ErrorHandle_t init(QnnOpPackage_GlobalInfrastructure_t) { return QNN_SUCCESS; }

Qnn_ErrorHandle_t terminate() { return QNN_SUCCESS; }

Qnn_ErrorHandle_t getInfo(const QnnOpPackage_Info_t** given) {
  *given = &info;
  return QNN_SUCCESS;
}

bool fits(const std::vector<std::vector<uint32_t>>& types, const Qnn_Tensor_t* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count && !types.empty(); ++i) {
    const std::vector<uint32_t>& known = types[i < types.size() ? i : types.size() - 1];
    const Qnn_DataType_t type =
        tensors[i].version == QNN_TENSOR_VERSION_1 ? tensors[i].v1.dataType : tensors[i].v2.dataType;
    bool found = known.empty();
    for (uint32_t code : known) found = found || code == static_cast<uint32_t>(type);
    if (!found) return false;
  }
  return true;
}

// An input that is left out with others behind it: libQnnCpu would hand the kernel those others in its place.
bool hasGaps(const Qnn_Tensor_t* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const Qnn_TensorType_t type =
        tensors[i].version == QNN_TENSOR_VERSION_1 ? tensors[i].v1.type : tensors[i].v2.type;
    if (type == QNN_TENSOR_TYPE_NULL) return true;
  }
  return false;
}

// How many parameters nodes have, by name: libQnnCpu leaves the count of a node unset where it has none.
std::map<std::string, uint32_t> counted;
std::mutex counting;

uint32_t paramsOf(const Entry& entry, const CpuNode& node) {
  const uint32_t most = static_cast<uint32_t>(entry.params.size());
  if (most == 0 || !entry.needed.empty()) return most == 0 ? 0 : node.numParams;
  const std::lock_guard<std::mutex> lock(counting);
  const auto found = counted.find(node.name);
  if (found != counted.end()) return found->second;
  return node.numParams <= most ? node.numParams : 0;
}

Qnn_ErrorHandle_t validateOpConfig(Qnn_OpConfig_t config) {
  const Qnn_OpConfigV1_t& op = config.v1;
  const Entry* entry = find(op.typeName);
  if (entry == nullptr) return QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE;
  const bool counts = op.numOfInputs >= entry->leastInputs && op.numOfInputs <= entry->mostInputs &&
                      op.numOfOutputs >= entry->leastOutputs && op.numOfOutputs <= entry->mostOutputs;
  if (!counts || hasGaps(op.inputTensors, op.numOfInputs) ||
      !fits(entry->inputTypes, op.inputTensors, op.numOfInputs) ||
      !fits(entry->outputTypes, op.outputTensors, op.numOfOutputs)) {
    return QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE;
  }
  for (uint32_t i = 0; i < op.numOfParams; ++i) {
    bool known = false;
    for (const char* name : entry->params) known = known || std::strcmp(name, op.params[i].name) == 0;
    if (!known) return QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE;
  }
  for (const char* name : entry->needed) {
    bool given = false;
    for (uint32_t i = 0; i < op.numOfParams; ++i) given = given || std::strcmp(name, op.params[i].name) == 0;
    if (!given) return QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE;
  }
  const std::lock_guard<std::mutex> lock(counting);
  counted[op.name] = op.numOfParams;
  return QNN_SUCCESS;
}

Qnn_ErrorHandle_t createOpImpl(QnnOpPackage_GraphInfrastructure_t, QnnOpPackage_Node_t handle,
                               QnnOpPackage_OpImpl_t* made) {
  const CpuNode& node = *reinterpret_cast<const CpuNode*>(handle);
  const Entry* entry = find(node.typeName);
  if (entry == nullptr) return QNN_OP_PACKAGE_ERROR_INVALID_ARGUMENT;
  Op* op = new (std::nothrow) Op;
  if (op == nullptr) return QNN_OP_PACKAGE_ERROR_GENERAL;
  op->inputs.assign(node.inputs, node.inputs + node.numInputs);
  op->outputs.assign(node.outputs, node.outputs + node.numOutputs);
  const uint32_t count = paramsOf(*entry, node);
  for (uint32_t i = 0; i < count; ++i) op->params.push_back(*node.params[i]);
  static thread_local CpuOpImpl impl;  // the library copies it at once
  impl = {entry->run, op};
  *made = reinterpret_cast<QnnOpPackage_OpImpl_t>(&impl);
  return QNN_SUCCESS;
}

Qnn_ErrorHandle_t freeOpImpl(QnnOpPackage_OpImpl_t impl) {
  delete static_cast<Op*>(reinterpret_cast<CpuOpImpl*>(impl)->user);  // `impl` itself is the library's
  return QNN_SUCCESS;
}

Qnn_ErrorHandle_t logInitialize(QnnLog_Callback_t, QnnLog_Level_t) { return QNN_SUCCESS; }

Qnn_ErrorHandle_t logSetLevel(QnnLog_Level_t) { return QNN_SUCCESS; }

Qnn_ErrorHandle_t logTerminate() { return QNN_SUCCESS; }

}  // namespace

extern "C" QNN_API Qnn_ErrorHandle_t %(provider)s(QnnOpPackage_Interface_t* interface) {
  interface->interfaceVersion = {1, 4, 0};
  interface->v1_4 = {init,       terminate,     getInfo,     validateOpConfig, createOpImpl,
                     freeOpImpl, logInitialize, logSetLevel, logTerminate};
  return QNN_SUCCESS;
}
"""

_KERNEL = """\
// %(name)s: %(doc)s

#include <cmath>

#include "CpuOpPackage.hpp"

namespace {

using oppackage::Op;
using oppackage::Tensor;

template <typename T>
inline T oppackage_square(T x) {
  return x * x;
}

template <typename T>
inline float oppackage_sign(T x) {
  return x > T(0) ? 1.0f : x < T(0) ? -1.0f : 0.0f;
}

// The kernel. Tensors are real numbers in row-major order; 0 is success.
int compute(%(arguments)s) {
%(body)s
  return 0;
}

Qnn_ErrorHandle_t run(void* user) {
  const Op& op = *static_cast<const Op*>(user);
%(unpack)s
  if (compute(%(call)s) != 0) return QNN_OP_PACKAGE_ERROR_GENERAL;
%(store)s
  return QNN_SUCCESS;
}

}  // namespace

extern const oppackage::Entry %(name)sEntry;
const oppackage::Entry %(name)sEntry = {
    %(entry)s};
"""
