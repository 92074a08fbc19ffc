"""Finds where in the user's code a node comes from, in what exporters store with it.

PyTorch's exporter has metadata for both the module and the stack. Its older one, for TorchScript,
writes scopes into the node's name (`/layer1/layer1.0/conv/Conv`) and a stack into the doc string.
Others write scopes alone (`model/dense/MatMul`).
"""

from __future__ import annotations

import re
from typing import Any

from memplan.programs.sources.origin import line_in, module_path

__all__ = ["line_of", "module_of"]

_SCOPES = "pkg.torch.onnx.name_scopes"
_STACK = "pkg.torch.onnx.stack_trace"
_QUOTED = re.compile(r"'([^']*)'")  # the texts of a list as Python writes it


def module_of(node: Any) -> str:
    """Return the module that a node belongs to, `layer1.0.conv`; empty where it does not say."""
    scopes = _QUOTED.findall(_metadata(node, _SCOPES)) or node.name.split("/")
    return module_path(scopes[:-1])  # the last one is the node's own


def line_of(node: Any) -> str:
    """Return the line of a node, `model.py:41`; empty where it does not say."""
    return line_in(_metadata(node, _STACK)) or line_in(node.doc_string)


def _metadata(node: Any, key: str) -> str:
    # Releases of the library before IR version 10 have no metadata on nodes.
    entries = getattr(node, "metadata_props", ())
    return next((entry.value for entry in entries if entry.key == key), "")
