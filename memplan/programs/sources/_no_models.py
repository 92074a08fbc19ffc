"""Files that stand for a model but have none: pointers, pages, archives, sources and logs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from memplan.programs.sources.recognise import (
    COMMENTS,
    ForeignFormat,
    Matches,
    is_text,
    mentions,
    starts_with,
)

__all__ = ["NO_MODELS", "XLA_DUMP"]

XLA_DUMP: Final = (
    'XLA_FLAGS="--xla_dump_to=dump --xla_dump_hlo_as_proto" python script.py',
    "memplan plan dump",
)
_SNAPSHOT: Final = (
    "torch.cuda.memory._record_memory_history()",
    "...  # the code that runs out of memory, in a try block",
    'torch.cuda.memory._dump_snapshot("snapshot.pickle")',
    "memplan plan snapshot.pickle",
)


def _is_tar(head: bytes, path: Path) -> bool:
    return head[257:262] == b"ustar"


def _is_short(pattern: str) -> Matches:
    """Return a test for text that is nothing but one short line of a server."""
    begins = is_text(pattern)
    return lambda head, path: len(head) < 200 and begins(head, path)


def _has_beginning(pattern: bytes) -> Matches:
    """Return a test for first bytes that match a pattern."""
    begins = re.compile(pattern)
    return lambda head, path: begins.match(head) is not None


# Encodings of text with zero bytes in it, by a mark or by letters of ASCII. The first row counts.
_WIDE: Final = (
    ("UTF-32", rb"\xff\xfe\0\0|\0\0\xfe\xff"),
    ("UTF-16", rb"(?:\xff\xfe|\xfe\xff)(?s:.)*\0"),
    ("UTF-32LE", rb"(?:[\t\n\r -~]\0\0\0){4}"),
    ("UTF-16LE", rb"(?:[\t\n\r -~]\0){8}"),
    ("UTF-16BE", rb"(?:\0[\t\n\r -~]){8}"),
)
# By the first bytes of a file: the tool that compressed it, and what unpacks it.
_COMPRESSED: Final = (
    (b"\x1f\x8b", "gzip", "gunzip --keep"),
    (b"BZh", "bzip2", "bunzip2 --keep"),
    (b"\xfd7zXZ\0", "xz", "xz --decompress --keep"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd --decompress"),
)
# Logs and reports: what they mention, what they are, and what to give in their place. The first row
# that matches counts.
_LOGS: Final = (
    (
        r"\bPyTorch CUDA memory summary|OutOfMemoryError|(?:CUDA|HIP) out of memory"
        r"|CUDA error: out of memory",
        "a log of PyTorch, which has no lifetimes of tensors",
        ("in Python, record a snapshot of the allocator:", *_SNAPSHOT),
    ),
    (
        r"\biree[-_/]|\bIREE\b",
        "a log of IREE, which has no lifetimes of buffers",
        ("plan the model that it compiled:", "memplan plan model.onnx"),
    ),
    (
        r"XlaRuntimeError|BufferAssignment|buffer assignment|jaxlib|/xla/|XLA Label"
        r"|hlo_rematerialization|RESOURCE_EXHAUSTED|cumulative_size; total_size"
        r"|^Allocations sorted by size|Total hbm usage|Program hbm requirement|HLO temp\b"
        r"|CompiledMemoryStats\(|temp_size_in_bytes|Exceeded hbm capacity|memory space hbm",
        "a log of XLA, which has no lifetimes of buffers",
        (
            "plan the folder of a dump, its *.hlo.pb, or its *buffer-assignment.txt beside its "
            "*live-range.txt:",
            *XLA_DUMP,
        ),
    ),
    (
        r"Required memory for activation in bytes|\bexecutorch:\w+\.(?:cpp|h)\b|\bexecutorch/"
        r"|Memory allocation failed: \d+ ?B requested|^event_block_name,"
        r"|^Setting up planned buffer \d",
        "a log of ExecuTorch, which has no lifetimes of tensors",
        (
            "plan the exported program, or use memplan as the planner when the program is made:",
            "memplan plan model.pt2",
            "planning = MemoryPlanningPass(memplan.extensions.executorch.planner())",
        ),
    ),
    (
        r"\bkTfLite(?:ArenaRw|ArenaRwPersistent|MmapRo|Dynamic)\b"
        r"|^Interpreter has \d+ (?:subgraphs?|tensors)|^-+\s*Subgraph-\d+ has \d+ tensors"
        r"|Inference timings in us|The input model file size \(MB\)|\bTfLite\w+Delegate\b"
        r"|^Number of nodes executed:|^INFO: (?:STARTING!|Loaded model )",
        "a report of TFLite's interpreter, which has no lifetimes of tensors",
        ("plan the model that it ran:", "memplan plan model.tflite"),
    ),
    (
        r"AllocateTensors\(\) failed|Failed to (?:resize|allocate tail|allocate) "
        r"|Arena size is too small|tensor arena|Invoke failed"
        r"|\[RecordingMicroAllocator\]|micro_allocator|Arena allocation (?:total|head|tail)",
        "a log of TFLite Micro",
        ("plan the model that it ran, and see what its arena needs:", "memplan plan model.tflite"),
    ),
    (
        r"\bllama_(?:context|model|kv_cache|new_context|init|memory|model_load)\w*:|\bllm_load_\w+:"
        r"|\bggml_\w+:|\bload_tensors:|compute buffer size\b|\bprint_info:",
        "a log of llama.cpp, which has sizes and no lifetimes",
        (
            "write the list of what ggml's allocator did (memplan_ggml_observe, docs/ggml.md), and "
            "plan that:",
            "memplan plan graph.events",
        ),
    ),
    (
        r"\[TRT\]|\bTensorRT\b|\btrtexec\b|\[MemUsage(?:Change|Stats)\]"
        r"|Total (?:Activation|Scratch|Weights|(?:Host|Device) Persistent) Memory"
        r"|^Engine Layer Information:",
        "a log of TensorRT, which has no lifetimes of tensors",
        ("plan the model that it was built from:", "memplan plan model.onnx"),
    ),
    (
        r"^Network summary for |Accelerator configuration\s|\baccelerator_configuration\b"
        r"|Total (?:SRAM|DRAM|On-chip Flash|Off-chip Flash) used\b|\bEthos_U\d"
        r"|^Start Time -\s+End Time:|#\s+Tensor Allocation for mem_area|\bNNG Operator\b"
        r"|Unsupported TensorFlow Lite semantics for ",
        "a report of Vela, which memplan does not read",
        ("plan the file that Vela wrote:", "memplan plan model_vela.tflite"),
    ),
    (
        r"\bST Edge AI\b|\bST\.AI\b|Neural Network Tools for STM"
        r"|\bSTM(?:32)?\.?AI\b|X-CUBE-AI|\bstedgeai\b|Exec/report summary",
        "a report of ST Edge AI, which has no lifetimes of tensors",
        ("plan the model that it was made from:", "memplan plan model.tflite"),
    ),
    (
        r"^\[Step \d+/\d+\]|\bOpenVINO\b|\bbenchmark_app\b",
        "a log of OpenVINO, which has no lifetimes of tensors",
        ("plan the model that it ran:", "memplan plan model.xml"),
    ),
    (
        r"\bTVMError\b|\btvm(?:::|\.error|\.relay|\.tir|/src/)",
        "a log of TVM, which has no lifetimes of buffers",
        ("plan the model that it compiled:", "memplan plan model.onnx"),
    ),
    (
        r"BFCArena|onnxruntime|OrtException",
        "a log of onnxruntime",
        ("plan the model that it ran:", "memplan plan model.onnx"),
    ),
    (
        r"bfc_allocator|OOM when allocating tensor|ResourceExhaustedError",
        "a log of TensorFlow",
        ("convert the model to TFLite or ONNX, and plan that",),
    ),
    (
        r"\bNVIDIA-SMI\b|\bnvidia-smi\b|\bmemory\.(?:used|free|total) \[",
        "what nvidia-smi says of whole processes, without their tensors",
        ("in Python, record a snapshot of PyTorch's allocator:", *_SNAPSHOT),
    ),
    (
        r"^Traceback \(most recent call last\):",
        "a traceback of Python",
        ("plan the model, trace or problem that the program used",),
    ),
)

NO_MODELS: Final = (
    ForeignFormat(
        is_text(r"version https://git-lfs\.github\.com/spec"),
        "a pointer of Git LFS, not the file itself",
        ("in the repository, get the file:", "git lfs pull --include {name}"),
    ),
    ForeignFormat(
        is_text(r"(?:\.\./)*(?:\.git)?/?annex/objects/"),
        "a pointer of git-annex, not the file itself",
        ("in the repository, get the file:", "git annex get {name}"),
    ),
    ForeignFormat(
        is_text(rf"(?i:(?:<\?xml[^>]*>\s*)?{COMMENTS}<(?:!doctype\s+html|html|head|body)\b)"),
        "a web page, as a server sends it in place of a file",
        (
            "download the file itself (from GitHub with `raw` in place of `blob` in the address, "
            "from Hugging Face with `resolve`), and log in where a login is asked for",
        ),
    ),
    ForeignFormat(
        _is_short(
            r"(?i:404\b|403\b|not found|entry not found|access (?:to \S+ is )?(?:denied|restricted)"
            r"|invalid (?:username|credentials)|repository not found|unauthori[sz]ed|forbidden"
            r'|(?:<\?xml[^>]*>\s*)?<error>|\{\s*"(?:error|message)"\s*:)'
        ),
        "the answer of a server that did not send the file",
        ("download the file again, from its right address, and log in where a login is asked for",),
    ),
    ForeignFormat(
        mentions(
            r"\b(?:char|u?int8_t|byte|u8)\b[^;={]{0,80}\[[^\]]{0,40}\][^;={]{0,80}=\s{0,9}\{\s{0,9}"
            r"(?:0[xX][0-9a-fA-F]{1,2}|-?\d{1,3})\s*[,}]"
        ),
        "source code with a file as an array of bytes, as `xxd -i` writes it",
        (
            "give the file that it was made from, or convert the array back with `xxd -r`:",
            "grep -oE '0x[0-9a-fA-F]{2}' {name} | cut -c3- | xxd -r -p > {stem}.tflite",
            "memplan plan {stem}.tflite",
        ),
    ),
    ForeignFormat(
        is_text(r"0{7,8}:?\s+(?:[0-9a-f]{2,4}\s){4}"),
        "a hexadecimal dump of a file",
        ("give the file that it was made from, or convert what `xxd` wrote back with `xxd -r`",),
    ),
    ForeignFormat(
        lambda head, path: (
            head.startswith(b"\x1f\x8b") and path.name.lower().endswith((".tar.gz", ".tgz"))
        ),
        "an archive (tar, compressed)",
        ("unpack it, and plan the model in it:", "tar -xvf {name}"),
    ),
    *(
        ForeignFormat(
            starts_with(magic),
            f"a file that {tool} compressed",
            ("unpack it first:", f"{command} {{name}}", "memplan plan {stem}"),
        )
        for magic, tool, command in _COMPRESSED
    ),
    ForeignFormat(
        starts_with(b"7z\xbc\xaf\x27\x1c", b"Rar!"),
        "an archive",
        ("unpack it, and plan the model in it",),
    ),
    ForeignFormat(
        _is_tar, "an archive (tar)", ("unpack it, and plan the model in it:", "tar -xvf {name}")
    ),
    ForeignFormat(
        starts_with(b"\x93NUMPY"),
        "an array of NumPy, which has no program",
        ("plan the model that uses it",),
    ),
    ForeignFormat(
        starts_with(b"ftrt", b"RKNN"),
        "a compiled engine, whose memory is already planned",
        ("plan the model that it was compiled from:", "memplan plan {stem}.onnx"),
    ),
    ForeignFormat(
        starts_with(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"RIFF", b"BM6"),
        "a picture or a document",
        ("give a model, a trace, or a problem as CSV or JSON",),
    ),
    ForeignFormat(
        starts_with(b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
        "a program or a library",
        ("give the model that it runs, or a problem as CSV or JSON",),
    ),
    *(
        ForeignFormat(
            _has_beginning(begins),
            f"text in {encoding}",
            ("save it as UTF-8:", f"iconv -f {encoding} -t UTF-8 {{name}} > {{stem}}.utf8"),
        )
        for encoding, begins in _WIDE
    ),
    ForeignFormat(
        is_text(r'(?:\{(?s:.{0,2000})"traceEvents"|\[\s*\{[^{}]{0,300}"ph")\s*:'),
        "a trace of a profiler (Chrome's format), which has no lifetimes of tensors",
        (
            "name a function that returns a PyTorch module and its inputs, and record a run:",
            "memplan record model.py:make_model -o trace.json",
            "memplan plan trace.json",
        ),
    ),
    ForeignFormat(
        is_text(r'\{(?:\s*"cells"|(?s:.{0,2000})"nbformat")\s*:'),
        "a notebook",
        ("export the model in it to a file, and plan that",),
    ),
    ForeignFormat(
        is_text(r'\{\s*"(?:_name_or_path|architectures|model_type|class_name|add_bos_token)"\s*:'),
        "the settings of a model, without its program",
        ("plan the exported model itself (.onnx, .tflite, .pt2)",),
    ),
    ForeignFormat(
        is_text(r"ir_version\s*:\s*\d"),
        "an ONNX model as text",
        (
            "in Python, convert it to the binary form:",
            'onnx.save(onnx.load("{name}", format="textproto"), "{stem}.onnx")',
            "memplan plan {stem}.onnx",
        ),
    ),
    ForeignFormat(
        mentions(r"^[ \t]*(?:strict\s+)?(?:di)?graph\b[^\n{]*\{"),
        "a graph for drawing (DOT), which has no sizes that memplan reads",
        ("give the problem that it was drawn from",),
    ),
    ForeignFormat(
        is_text(r"(?:HloLiveRange|Total bytes used|Allocations sorted by size|Used values:)"),
        "a report of XLA that lacks sizes or lifetimes",
        (
            "give the file *buffer-assignment.txt with *live-range.txt beside it, *.hlo.pb of the "
            "same dump, or the folder:",
            "memplan plan FOLDER",
        ),
    ),
    *(ForeignFormat(mentions(pattern), what, steps) for pattern, what, steps in _LOGS),
)
