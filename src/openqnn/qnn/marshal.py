"""Turn graph records into the C structs that a library reads, and keep alive the memory they point to."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from openqnn.errors import BackendError
from openqnn.qnn import abi
from openqnn.qnn.contiguous import contiguous
from openqnn.qnn.net import Array, NetNode, NetQuant, NetScalar, NetTensor, TensorKind

HtpRecord: TypeAlias = tuple[int, int, int]
"""An option of HTP's and its value in up to two words."""

_MAX_BUFFER = 2**32 - 1
_FOUR_BITS = (abi.SFIXED_4, abi.UFIXED_4)


class Arena:
    """Builds structs; everything they point to lives as long as the arena.

    C structs hold bare addresses, so ctypes alone would let the memory go while a library still reads it.
    """

    def __init__(self) -> None:
        self._kept: list[object] = []

    def keep(self, value: Any) -> Any:
        """Hold on to `value` and give it back."""
        self._kept.append(value)
        return value

    def tensor(self, tensor: NetTensor, name: str = "") -> abi.Tensor:
        """The struct of a tensor, under its own name or the given one."""
        struct = abi.Tensor(version=1)
        body = struct.body.v1
        body.name = (name or tensor.name).encode()
        body.type, body.dtype = int(tensor.kind), tensor.dtype
        self._set_quant(body.quant, tensor)
        self._set_dims(body, tensor)
        if tensor.data is not None:
            set_buffer(struct, self.keep(static_data(tensor, tensor.data)))
        return struct

    def absent(self, name: str) -> abi.Tensor:
        """The placeholder for an optional input that is left out."""
        return self.tensor(NetTensor(name, TensorKind.NULL, abi.UNDEFINED, ()))

    def op_config(
        self,
        node: NetNode,
        inputs: list[abi.Tensor],
        outputs: list[abi.Tensor],
        params: list[tuple[str, abi.Tensor | abi.Scalar]],
    ) -> abi.OpConfig:
        """The struct of a node, over tensors that the graph already knows."""
        body = abi.OpConfigV1(
            name=node.name.encode(),
            package=node.package.encode(),
            type=node.op.encode(),
            param_count=len(params),
            params=self.keep((abi.Param * len(params))(*(_param(name, value) for name, value in params))),
            input_count=len(inputs),
            inputs=self.keep((abi.Tensor * len(inputs))(*inputs)),
            output_count=len(outputs),
            outputs=self.keep((abi.Tensor * len(outputs))(*outputs)),
        )
        return self.keep(abi.OpConfig(version=1, v1=body))

    def htp_configs(self, records: Sequence[HtpRecord]) -> list[Any]:
        """One configuration struct for each of HTP's own options."""
        options = [
            self.keep(abi.HtpOption(option=option, value=value, rest=(second,)))
            for option, value, second in records
        ]
        return [self.custom(option) for option in options]

    def custom(self, record: Any) -> Any:
        """The configuration struct around a backend's own record."""
        self.keep(record)
        return self.keep(abi.CustomConfig(option=abi.CONFIG_CUSTOM, custom=c.addressof(record)))

    def config_list(self, configs: Sequence[Any]) -> Any:
        """The NULL-terminated list that the create functions take; None where there is nothing to say."""
        if not configs:
            return None
        addresses = [c.addressof(config) for config in configs]
        return self.keep((c.c_void_p * (len(addresses) + 1))(*addresses, None))

    def _set_dims(self, body: Any, tensor: NetTensor) -> None:
        if tensor.kind is TensorKind.NULL:
            return  # a placeholder has rank 0 and no dimensions
        dims = tensor.dims or (1,)  # HTP refuses rank 0, and both backends take a scalar as one element
        body.rank = len(dims)
        body.dims = self.keep((c.c_uint32 * len(dims))(*dims))

    def _set_quant(self, target: Any, tensor: NetTensor) -> None:
        quant = tensor.quant
        target.definition = target.encoding = abi.UNDEFINED
        if quant is None:
            return
        target.definition = abi.DEFINED
        if quant.multiples:
            target.encoding = abi.ENCODING_EXPANSION
            target.value.expansion = c.pointer(self.keep(self._expansion(quant, tensor.dtype)))
        elif quant.axis is None and quant.bitwidth is None:
            target.encoding = abi.ENCODING_TENSOR
            target.value.tensor = abi.ScaleOffset(quant.scales[0], quant.offsets[0])
        elif quant.axis is None:
            target.encoding = abi.ENCODING_TENSOR_BITS
            target.value.tensor_bits = abi.BwScaleOffset(quant.bitwidth, quant.scales[0], quant.offsets[0])
        elif quant.bitwidth is None:
            target.encoding = abi.ENCODING_AXIS
            target.value.axis = self._axis(quant)
        else:
            target.encoding = abi.ENCODING_AXIS_BITS
            target.value.axis_bits = self._axis_bits(quant)

    def _axis(self, quant: NetQuant) -> abi.AxisScaleOffset:
        return abi.AxisScaleOffset(quant.axis, len(quant.scales), self._pairs(quant))

    def _pairs(self, quant: NetQuant) -> Any:
        pairs = zip(quant.scales, quant.offsets, strict=True)
        return self.keep((abi.ScaleOffset * len(quant.scales))(*pairs))

    def _expansion(self, quant: NetQuant, dtype: int) -> abi.BlockwiseExpansion:
        """What the stored values leave of the data type's bits is the multiples'."""
        bits = abi.numpy_dtype(dtype).itemsize * 8 - (quant.bitwidth or 0)
        number, storage = (
            (c.c_uint8, abi.MULTIPLES_8) if quant.multiple_storage == 8 else (c.c_uint16, abi.MULTIPLES_16)
        )
        multiples = self.keep((number * len(quant.multiples))(*quant.multiples))
        return abi.BlockwiseExpansion(
            quant.axis, self._pairs(quant), quant.block_count, bits, storage, c.addressof(multiples)
        )

    def _axis_bits(self, quant: NetQuant) -> abi.BwAxisScaleOffset:
        count = len(quant.scales)
        scales = self.keep((c.c_float * count)(*quant.scales))
        offsets = self.keep((c.c_int32 * count)(*quant.offsets))
        return abi.BwAxisScaleOffset(quant.bitwidth, quant.axis, count, scales, offsets)


def scalar(value: NetScalar) -> abi.Scalar:
    """The struct of a scalar parameter."""
    field = abi.SCALAR_FIELDS.get(value.dtype)
    if field is None:
        raise BackendError(f"a scalar parameter cannot be of type {abi.dtype_name(value.dtype)}")
    struct = abi.Scalar(dtype=value.dtype)
    try:
        setattr(struct.value, field, value.value)
    except TypeError as error:
        raise BackendError(
            f"{value.value!r} is not a scalar of type {abi.dtype_name(value.dtype)}"
        ) from error
    return struct


def set_buffer(struct: abi.Tensor, data: Array) -> None:
    """Point a tensor at memory that the caller keeps alive."""
    if data.nbytes > _MAX_BUFFER:
        name = struct.body.v1.name.decode()
        raise BackendError(f"tensor '{name}' has {data.nbytes} bytes; a buffer holds {_MAX_BUFFER} at most")
    struct.body.v1.buffer.data = data.ctypes.data
    struct.body.v1.buffer.size = data.nbytes


def static_data(tensor: NetTensor, data: Array) -> Array:
    """The tensor's values, contiguous; checked, since a library would read past the end of too few."""
    count = math.prod(tensor.dims)
    expected = count * abi.numpy_dtype(tensor.dtype).itemsize
    packed = (count + 1) // 2 if tensor.dtype in _FOUR_BITS else expected
    if data.nbytes not in (expected, packed):
        what = f"{abi.dtype_name(tensor.dtype)} {list(tensor.dims)}"
        raise BackendError(
            f"tensor '{tensor.name}' is {what}: {expected} bytes, but its data has {data.nbytes}"
        )
    return contiguous(data)


def _param(name: str, value: abi.Tensor | abi.Scalar) -> abi.Param:
    struct = abi.Param(name=name.encode())
    if isinstance(value, abi.Tensor):
        struct.type, struct.value.tensor = abi.PARAM_TENSOR, value
    else:
        struct.type, struct.value.scalar = abi.PARAM_SCALAR, value
    return struct
