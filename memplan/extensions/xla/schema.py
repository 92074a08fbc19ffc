"""The few fields of XLA's `HloProto` that describe memory and its lifetimes, as a message class.

The class is made at run time from the numbers of the fields, so that reading a dump takes
`protobuf` and nothing of XLA. Fields that are not named here are skipped.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from memplan.base.extras import require

__all__ = ["hlo_proto"]

# By message: "name" or "name: type" with the number of the field; "*" before it for repeated ones.
_MESSAGES: dict[str, dict[str, int]] = {
    "Instruction": {
        "name: string": 1,
        "opcode: string": 2,
        "metadata: Metadata": 7,
        "tuple_index": 13,
        "id": 35,
        "* operand_ids": 36,
    },
    "Metadata": {
        "op_name: string": 2,
        "source_file: string": 3,
        "source_line": 4,
        "stack_frame_id": 15,
    },
    "Computation": {"name: string": 1, "* instructions: Instruction": 2},
    "FileLocation": {"file_name_id": 1, "line": 3},
    "StackFrame": {"file_location_id": 1},
    "StackFrameIndex": {
        "* file_names: string": 1,
        "* file_locations: FileLocation": 3,
        "* stack_frames: StackFrame": 4,
    },
    "Module": {
        "name: string": 1,
        "* computations: Computation": 3,
        "stack_frame_index: StackFrameIndex": 17,
    },
    "Location": {"instruction_name: string": 2, "* shape_index": 3, "instruction_id": 4},
    "LogicalBuffer": {"id": 1, "size": 2, "defined_at: Location": 3},
    "Assigned": {"logical_buffer_id": 1, "offset": 2, "size": 3},
    "Allocation": {"index": 1, "size": 2, "* assigned: Assigned": 9},
    "Event": {
        "kind": 1,
        "buffer_id": 2,
        "computation_name: string": 3,
        "instruction_name: string": 4,
        "share_with_canonical_id": 5,
    },
    "HeapTrace": {"* events: Event": 1, "buffer_allocation_index": 3},
    "BufferAssignment": {
        "* logical_buffers: LogicalBuffer": 1,
        "* buffer_allocations: Allocation": 3,
        "* heap_simulator_traces: HeapTrace": 4,
    },
    "Hlo": {"hlo_module: Module": 1, "buffer_assignment: BufferAssignment": 3},
}


@cache
def hlo_proto() -> Any:
    """Return the class of the outermost message, for which `protobuf` has to be installed."""
    descriptors = require("google.protobuf.descriptor_pb2", extra="xla")
    pools = require("google.protobuf.descriptor_pool", extra="xla")
    factory = require("google.protobuf.message_factory", extra="xla")
    kinds = descriptors.FieldDescriptorProto
    file = descriptors.FileDescriptorProto(
        name="memplan/hlo.proto", package="memplan.hlo", syntax="proto3"
    )
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for text, number in fields.items():
            name, _, kind = text.removeprefix("* ").partition(": ")
            field = declared.field.add(name=name, number=number, json_name=name)
            many = text.startswith("*")
            field.label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            if kind in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".memplan.hlo.{kind}"
            else:
                field.type = kinds.TYPE_STRING if kind else kinds.TYPE_INT64
    pool = pools.DescriptorPool()  # XLA's own messages may be loaded too
    pool.AddSerializedFile(file.SerializeToString())
    return factory.GetMessageClass(pool.FindMessageTypeByName("memplan.hlo.Hlo"))
