"""How numbers, types and names are spelled in C++ source, so that the compiler reads back the same bits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from openqnn.errors import ModelError
from openqnn.qnn import abi
from openqnn.qnn.net import Array, NetQuant, NetScalar, NetTensor, qnn_name

_SCALAR_FIELDS = {
    abi.FLOAT_32: "floatValue", abi.FLOAT_64: "doubleValue",
    abi.INT_8: "int8Value", abi.INT_16: "int16Value", abi.INT_32: "int32Value", abi.INT_64: "int64Value",
    abi.UINT_8: "uint8Value", abi.UINT_16: "uint16Value", abi.UINT_32: "uint32Value",
    abi.UINT_64: "uint64Value", abi.BOOL_8: "bool8Value",
}  # fmt: skip

_RESERVED = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    class compl const constexpr const_cast continue decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq backendHandle interface contextHandle graphsConfigInfo
    numGraphsConfigInfo graphsInfo numGraphsInfo debug logCallback maxLogLevel err model models
    numModels graphs_in_order QnnModel
"""  # of C++, and of composeGraphs


def string(value: str) -> str:
    """A string literal."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", _escape, value) + '"'


def _escape(match: re.Match[str]) -> str:
    # Three octal digits end by themselves; a hexadecimal escape would swallow the digits behind it.
    return "".join(f"\\{byte:03o}" for byte in match.group().encode())


def variable(name: str) -> str:
    """A name for a local variable, none of C++'s own and none that composeGraphs uses."""
    clean = qnn_name(name)
    return f"{clean}_" if clean in _RESERVED.split() else clean


def dtype(code: int) -> str:
    """The name of a QNN data type: QNN_DATATYPE_UFIXED_POINT_8."""
    if code == abi.UNDEFINED:
        return "QNN_DATATYPE_UNDEFINED"
    match = re.fullmatch(r"([a-z]+)(\d+)", abi.dtype_name(code))
    if match is None:
        raise ModelError(f"data type {code:#x} has no name in the QNN interface")
    kind = match[1].upper()
    return f"QNN_DATATYPE_{kind}{'_POINT' if kind.endswith('FIXED') else ''}_{match[2]}"


def c_type(code: int) -> str:
    """The C type of an array that holds values of a QNN data type; half floats are held as their bits."""
    storage = abi.numpy_dtype(code)
    if storage == np.float32:
        return "float"
    if storage == np.float64:
        return "double"
    return "uint8_t" if storage == np.bool_ else f"{_bits(storage)}_t"


def _bits(storage: np.dtype[np.generic]) -> str:
    return "uint16" if storage == np.float16 else storage.name


def scale(value: float) -> str:
    """A quantisation scale, with forty decimals as the current converters print it."""
    return _float32(value, 40)


def scalar_field(code: int) -> str:
    """The member of Qnn_Scalar_t that holds a value of this type."""
    if code not in _SCALAR_FIELDS:
        raise ModelError(f"a scalar parameter cannot be of type {abi.dtype_name(code)}")
    return _SCALAR_FIELDS[code]


def scalar(value: NetScalar) -> str:
    """The value of a scalar parameter."""
    if value.dtype == abi.FLOAT_32:
        return _float32(float(value.value), 12)
    if value.dtype == abi.FLOAT_64:
        return _float64(float(value.value))
    return _integer(int(value.value))


def elements(code: int, data: Array) -> Iterator[str]:
    """The values of an array, one by one."""
    storage = abi.numpy_dtype(code)
    if storage == np.float32:
        return (_float32(float(v), 12) for v in data.view(np.float32).flat)
    if storage == np.float64:
        return (_float64(float(v)) for v in data.view(np.float64).flat)
    integers = data.reshape(-1).view("uint8" if storage == np.bool_ else _bits(storage))
    return (_integer(int(v)) for v in integers)


def stored(tensor: NetTensor) -> Array:
    """The data that a parameter must have."""
    if tensor.data is None:
        raise ModelError(f"parameter '{tensor.name}' has no data")
    return tensor.data


def quantization(quant: NetQuant | None, label: str) -> str:
    """The initialiser of quantizeParams; arrays of channels are declared under `label`."""
    if quant is None:
        undefined = f".scaleOffsetEncoding= {{.scale= {scale(0.0)}, .offset= 0}}"
        return _encoding("QNN_DEFINITION_UNDEFINED", "UNDEFINED", undefined)
    count, bits = len(quant.scales), quant.bitwidth
    if quant.axis is None and bits is None:
        pair = f".scaleOffsetEncoding= {{.scale= {scale(quant.scales[0])}, .offset= {quant.offsets[0]}}}"
        return _encoding("QNN_DEFINITION_DEFINED", "SCALE_OFFSET", pair)
    if quant.axis is None:
        pair = f".scale= {scale(quant.scales[0])}, .offset= {quant.offsets[0]}"
        value = f".bwScaleOffsetEncoding= {{.bitwidth= {bits}, {pair}}}"
        return _encoding("QNN_DEFINITION_DEFINED", "BW_SCALE_OFFSET", value)
    if quant.multiples:
        value = f".blockwiseExpansion= &expansion_{label}"
        return _encoding("QNN_DEFINITION_DEFINED", "BLOCKWISE_EXPANSION", value)
    if bits is None:
        value = f".axis= {quant.axis}, .numScaleOffsets= {count}, .scaleOffset= scaleOffset_{label}"
        return _encoding(
            "QNN_DEFINITION_DEFINED", "AXIS_SCALE_OFFSET", f".axisScaleOffsetEncoding= {{{value}}}"
        )
    arrays = f".scales= scales_{label}, .offsets= offsets_{label}"
    value = f".bitwidth= {bits}, .axis= {quant.axis}, .numElements= {count}, {arrays}"
    return _encoding(
        "QNN_DEFINITION_DEFINED", "BW_AXIS_SCALE_OFFSET", f".bwAxisScaleOffsetEncoding= {{{value}}}"
    )


def expansion(tensor: NetTensor, quant: NetQuant, label: str) -> str:
    """The initialiser of the structure of blocks, over arrays that are declared under `label`."""
    bits = abi.numpy_dtype(tensor.dtype).itemsize * 8 - (quant.bitwidth or 0)
    storage = quant.multiple_storage
    return (
        f"{{.axis= {quant.axis}, .scaleOffsets= scaleOffset_{label},\n"
        f"    .numBlocksPerAxis= {quant.block_count}, .blockScaleBitwidth= {bits},\n    "
        f".blockScaleStorageType= QNN_BLOCKWISE_EXPANSION_BITWIDTH_SCALE_STORAGE_{storage},\n"
        f"    {{.blocksScale{storage}= multiples_{label}}}}}"
    )


def _encoding(definition: str, encoding: str, value: str) -> str:
    return (
        f"{{.encodingDefinition= {definition}, "
        f".quantizationEncoding= QNN_QUANTIZATION_ENCODING_{encoding}, {value}}}"
    )


def _float32(value: float, decimals: int) -> str:
    with np.errstate(over="ignore"):
        number = np.float32(value)
    if not np.isfinite(number):
        return _not_finite(float(number), "f")
    exact = f"{float(number):.{decimals}f}"
    # Too few decimals for a small number: more digits rather than another number.
    return f"{exact}f" if np.float32(exact) == number else f"{float(number):.9e}f"


def _float64(value: float) -> str:
    return repr(value) if math.isfinite(value) else _not_finite(value, "")


def _not_finite(value: float, suffix: str) -> str:
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"


def _integer(value: int) -> str:
    if value == -(2**63):
        return "(-9223372036854775807LL - 1)"  # the literal without its sign would not fit
    return f"{value}ULL" if value >= 2**63 else str(value)
