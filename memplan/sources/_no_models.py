"""Files that stand for a model but have none: pointers, pages, archives, sources and logs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memplan.sources._recognise import (
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


# By the first bytes of a file: the tool that compressed it, and what unpacks it.
_COMPRESSED: Final = (
    (b"\x1f\x8b", "gzip", "gunzip --keep"),
    (b"BZh", "bzip2", "bunzip2 --keep"),
    (b"\xfd7zXZ\0", "xz", "xz --decompress --keep"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd --decompress"),
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
    ForeignFormat(
        lambda head, path: head.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in head,
        "text in UTF-16",
        ("save it as UTF-8:", "iconv -f UTF-16 -t UTF-8 {name} > {stem}.utf8"),
    ),
    ForeignFormat(
        is_text(r'\{(?s:.{0,2000})"traceEvents"\s*:'),
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
    ForeignFormat(
        mentions(
            r"XlaRuntimeError|BufferAssignment OOM|buffer assignment|jaxlib|/xla/|XLA Label"
            r"|hlo_rematerialization|RESOURCE_EXHAUSTED"
        ),
        "a log of XLA, which has no lifetimes of buffers",
        (
            "let XLA dump its buffer assignment; a file *after_optimizations*.hlo.pb of the dump, "
            "or *buffer-assignment.txt with *live-range.txt beside it, has what a plan needs, and "
            "so has the folder:",
            *XLA_DUMP,
        ),
    ),
    ForeignFormat(
        mentions(
            r"OutOfMemoryError|(?:CUDA|HIP) out of memory|CUDA error: out of memory"
            r"|PyTorch CUDA memory summary"
        ),
        "a log of PyTorch, which has no lifetimes of tensors",
        ("in Python, record a snapshot of the allocator:", *_SNAPSHOT),
    ),
    ForeignFormat(
        mentions(
            r"AllocateTensors\(\) failed|Failed to (?:resize|allocate tail|allocate) "
            r"|Arena size is too small|tensor arena|Invoke failed"
        ),
        "a log of TFLite Micro",
        ("plan the model that it ran, and see what its arena needs:", "memplan plan model.tflite"),
    ),
    ForeignFormat(
        mentions(r"BFCArena|onnxruntime|OrtException"),
        "a log of onnxruntime",
        ("plan the model that it ran:", "memplan plan model.onnx"),
    ),
    ForeignFormat(
        mentions(r"bfc_allocator|OOM when allocating tensor|ResourceExhaustedError"),
        "a log of TensorFlow",
        ("convert the model to TFLite or ONNX, and plan that",),
    ),
    ForeignFormat(
        mentions(r"^Traceback \(most recent call last\):"),
        "a traceback of Python",
        ("plan the model, trace or problem that the program used",),
    ),
)
