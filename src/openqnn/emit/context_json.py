"""What is in a context binary as JSON, with the keys and the order of qnn-context-binary-utility."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from openqnn.ir import DType
from openqnn.qnn.context_info import ContextInfo, DeviceInfo, GraphInfo, HtpGraphBlob, IoTensor
from openqnn.qnn.net import NetQuant, NetTensor

_KINDS = {0: "APP_WRITE", 1: "APP_READ", 2: "APP_READWRITE", 3: "NATIVE", 4: "STATIC", 5: "NULL"}
_HTP_BLOB = "QNN_SYSTEM_CONTEXT_HTP_GRAPH_INFO_BLOB_VERSION_V"
_HTP_CONTEXT = "QNN_SYSTEM_CONTEXT_HTP_CONTEXT_INFO_BLOB_VERSION_V1"


def context_json(info: ContextInfo) -> str:
    """The text of the file."""
    return json.dumps(context_record(info), indent=4) + "\n"


def context_record(info: ContextInfo) -> dict[str, Any]:
    header: dict[str, Any] = {
        "artifact_type": "CONTEXT_BINARY_INFO",
        "version": {"major": info.version, "minor": 0, "patch": 0},
        "header_version": {"major": 0, "minor": 1, "patch": 0},
    }
    body: dict[str, Any] = {
        "backendId": info.backend_id,
        "buildId": info.build_id,
        "coreApiVersion": _dotted(info.core_api),
        "backendApiVersion": _dotted(info.backend_api),
        "socVersion": info.soc_version,
        "contextBlobVersion": _dotted(info.blob_version),
        "contextBlobSize": info.blob_size,
        "numContextTensors": len(info.tensors),
        "contextTensors": [_tensor(t) for t in info.tensors],
        "numGraphs": len(info.graphs),
        "graphs": [_graph(g) for g in info.graphs],
    }
    if info.devices:
        body["platformInfo"] = _platform(info.devices)
    if info.version >= 3:
        body["contextMetadataSize"] = len(info.metadata)
        if info.dsp_arch is not None:
            body["contextMetadata"] = {"version": _HTP_CONTEXT, "info": {"dspArch": info.dsp_arch}}
        body["socModel"] = info.soc_model
    version = f"QNN_SYSTEM_CONTEXT_BINARY_INFO_VERSION_{info.version}"
    return {"header": header, "version": version, "info": body}


def _graph(graph: GraphInfo) -> dict[str, Any]:
    body: dict[str, Any] = {
        "graphName": graph.name,
        "numGraphInputs": len(graph.inputs),
        "graphInputs": [_tensor(t) for t in graph.inputs],
        "numGraphOutputs": len(graph.outputs),
        "graphOutputs": [_tensor(t) for t in graph.outputs],
    }
    if graph.version >= 2:
        body["numUpdateableTensors"] = len(graph.updateable)
        body["updateableTensors"] = [_tensor(t) for t in graph.updateable]
    if graph.version >= 3:
        body["graphBlobInfoSize"] = len(graph.blob)
        if graph.htp is not None:
            body |= _blob(graph.htp)
        body["startOpIndex"], body["endOpIndex"] = graph.start_op, graph.end_op
    return {"version": f"QNN_SYSTEM_CONTEXT_GRAPH_INFO_VERSION_{graph.version}", "info": body}


def _blob(blob: HtpGraphBlob) -> dict[str, Any]:
    first = {
        "spillFillBufferSize": blob.spill_fill_size,
        "optimizationLevel": blob.optimization_level,
        "vtcmSize": blob.vtcm_size,
        "htpDlbc": blob.dlbc,
        "numHvxThreads": blob.hvx_threads,
    }
    found: dict[str, Any] = {"graphBlobInfo": {"version": f"{_HTP_BLOB}1", "info": first}}
    if blob.v2 is not None:  # this one has its values beside the version, not in an object of their own
        found["graphBlobInfoV2"] = {
            "version": f"{_HTP_BLOB}2",
            "nativeKChannelSize": blob.v2.native_k_channel_size,
            "nativeVChannelSize": blob.v2.native_v_channel_size,
            "isSafeShareIO": blob.v2.is_safe_share_io,
            "ioTensorSize": blob.v2.io_tensor_size,
            "opDataSize": blob.v2.op_data_size,
            "constSize": blob.v2.const_size,
            "ddrTensorSize": blob.v2.ddr_tensor_size,
            "sharedWeightsSize": blob.v2.shared_weights_size,
        }
    return found


def _tensor(item: IoTensor) -> dict[str, Any]:
    tensor: NetTensor = item.tensor
    body: dict[str, Any] = {
        "id": item.id,
        "name": tensor.name,
        "type": f"QNN_TENSOR_TYPE_{_KINDS[int(tensor.kind)]}",
        "dataFormat": "QNN_TENSOR_DATA_FORMAT_FLAT_BUFFER",
        "dataType": f"QNN_DATATYPE_{DType(tensor.dtype).name}",
        "rank": len(tensor.dims),
        "dimensions": list(tensor.dims),
        "memType": "QNN_TENSORMEMTYPE_RAW",
        "quantizeParams": _quant(tensor.quant),
    }
    return {"version": "QNN_TENSOR_VERSION_2", "info": body}


def _quant(quant: NetQuant | None) -> dict[str, Any]:
    if quant is None:
        return {
            "definition": "QNN_DEFINITION_UNDEFINED",
            "quantizationEncoding": "QNN_QUANTIZATION_ENCODING_UNDEFINED",
        }
    pairs = [{"scale": s, "offset": o} for s, o in zip(quant.scales, quant.offsets, strict=True)]
    if quant.multiples:
        return _expansion(quant, pairs)
    kind = ("BW_" if quant.bitwidth else "") + ("SCALE_OFFSET" if quant.axis is None else "AXIS_SCALE_OFFSET")
    record: dict[str, Any] = {
        "definition": "QNN_DEFINITION_DEFINED",
        "quantizationEncoding": f"QNN_QUANTIZATION_ENCODING_{kind}",
    }
    bits = {"bitwidth": quant.bitwidth} if quant.bitwidth else {}
    if quant.axis is None:
        return record | {"bwScaleOffset" if bits else "scaleOffset": bits | pairs[0]}
    body = bits | {"axis": quant.axis, "numScaleOffsets": len(pairs), "scaleOffset": pairs}
    return record | {"bwAxisScaleOffset" if bits else "axisScaleOffset": body}


def _expansion(quant: NetQuant, pairs: list[dict[str, Any]]) -> dict[str, Any]:
    body = {
        "axis": quant.axis, "scaleOffset": pairs, "numBlocksPerAxis": quant.block_count,
        "blocksScale": list(quant.multiples),
    }  # fmt: skip
    kind = "QNN_QUANTIZATION_ENCODING_BLOCKWISE_EXPANSION"
    record = {"definition": "QNN_DEFINITION_DEFINED", "quantizationEncoding": kind}
    return record | {"blockwiseExpansion": body}


def _platform(devices: Sequence[DeviceInfo]) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    for device in devices:
        cores = [
            {"version": "QNN_DEVICE_CORE_INFO_VERSION_1", "info": {"coreId": core.id, "coreType": core.type}}
            for core in device.cores
        ]
        body = {"deviceId": device.id, "deviceType": device.type, "numCores": len(cores), "cores": cores}
        entries.append({"version": "QNN_DEVICE_HARDWARE_DEVICE_INFO_VERSION_1", "info": body})
    info = {"numHwDevices": len(entries), "hwDevices": entries}
    return {"version": "QNN_DEVICE_PLATFORM_INFO_VERSION_1", "info": info}


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
