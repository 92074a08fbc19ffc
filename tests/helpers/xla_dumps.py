"""Small dumps in XLA's layout, made from the numbers of the fields."""

from __future__ import annotations

from typing import Any

ALLOC, FREE, SHARE = 0, 1, 2

# A loop: the state `s` is copied (`c`), and made again in its place; meanwhile `t` lies there.
#        0        1        2        3        4       5        6         7        8
LOOP = [
    (ALLOC, 1, 0),
    (ALLOC, 2, 0),
    (FREE, 1, 0),
    (ALLOC, 3, 0),
    (FREE, 3, 0),
    (SHARE, 4, 1),
    (FREE, 2, 0),
    (FREE, 4, 0),
]


def hlo(events: list[tuple[int, int, int]] = LOOP, **changes: Any) -> Any:
    """Return an `HloProto` of a module with one temporary allocation."""
    from memplan.extensions.xla.schema import hlo_proto

    message = hlo_proto()()
    message.hlo_module.name = changes.get("module", "jit_step")
    main = message.hlo_module.computations.add(name="main")
    names = ("s", "c", "t", "next", "table")
    for id, name in enumerate(names, 1):
        instruction = main.instructions.add(id=id, name=name, opcode="fusion")
        instruction.operand_ids.extend([id - 1] if id > 1 else [])
        message.buffer_assignment.logical_buffers.add(
            id=id, size=64, defined_at={"instruction_id": id}
        )
    main.instructions[0].metadata.op_name = "jit(step)/tanh"
    allocation = message.buffer_assignment.buffer_allocations.add(
        index=7, size=changes.get("size", 192)
    )
    offsets = changes.get("offsets", {1: 0, 2: 64, 3: 0, 4: 0, 5: 128})
    for id, offset in offsets.items():
        allocation.assigned.add(logical_buffer_id=id, offset=offset, size=64)
    trace = message.buffer_assignment.heap_simulator_traces.add(buffer_allocation_index=2)
    for kind, id, shared in events:
        trace.events.add(kind=kind, buffer_id=id, share_with_canonical_id=shared)
    return message


ASSIGNMENT = """\
BufferAssignment:
allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:
 value: <9 x.1 @0> (size=64,offset=0): f32[16]{0}
allocation 1: size 192, preallocated-temp:
 value: <1 s @0> (size=64,offset=0): f32[16]{0}
 value: <2 c @0> (size=64,offset=64): f32[16]{0}
 value: <3 t @0> (size=64,offset=128): f32[16]{0}
 value: <4 w{1} (phi) @0> (size=64,offset=0): f32[16]{0}
 value: <5 late @0> (size=64,offset=64): f32[16]{0}

Total bytes used: 256 (256B)
"""

RANGES = """\
HloLiveRange (max 9):
  InstructionSequence:
    0:x.1
  BufferLiveRange:
    s{}:0-1
    c{}:1-3
    t{}:3-4
    w{1}:5-6
    late{}:4-9
  Live ranges at 14 (peak):
    s{}: 64 bytes (cumulative: 64 bytes)
"""
