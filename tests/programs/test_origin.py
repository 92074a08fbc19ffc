"""Tests of where operators come from: stacks and scopes as frameworks write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.programs.sources.origin import line_at, line_in, module_path

PYTHON = """\
  File "/home/me/train.py", line 7, in forward
    return self.net(x)
  File "/home/me/net.py", line 41, in forward
    y = self.conv(x)
  File "/usr/lib/python3/site-packages/torch/nn/modules/conv.py", line 554, in forward
    return self._conv_forward(input, self.weight, self.bias)
"""
TORCH_SCRIPT = """\
/usr/lib/python3/site-packages/torch/nn/modules/conv.py(554): forward
/home/me/net.py(41): forward
/home/me/train.py(7): <module>
"""


class TestLines:
    """From a stack to a line."""

    @pytest.mark.parametrize("stack", [PYTHON, TORCH_SCRIPT])
    def test_the_innermost_of_the_users_own(self, stack: str) -> None:
        """Tests that lines of the framework are passed over, in both orders of frames."""
        assert line_in(stack) == "net.py:41"

    def test_a_stack_of_the_framework_alone(self) -> None:
        """Tests that its innermost line is better than none."""
        frames = PYTHON.splitlines(keepends=True)
        assert line_in("".join(frames[4:])) == "conv.py:554"

    @given(st.none() | st.text() | st.integers())
    def test_anything_else_has_no_line(self, stack: Any) -> None:
        """Tests that what is no stack says nothing."""
        assert line_in(stack) == ""

    @pytest.mark.parametrize(
        ("file", "line", "said"),
        [("C:\\\\me\\\\net.py", 3, "net.py:3"), ("net.py", 0, ""), ("", 3, ""), ("/me/", 3, "")],
    )
    def test_places(self, file: str, line: int, said: str) -> None:
        """Tests that folders are left out, and what is no place is nothing."""
        assert line_at(file, line) == said


@pytest.mark.parametrize(
    ("scopes", "path"),
    [
        (["", "layer1", "layer1.0", "conv"], "layer1.0.conv"),
        (["layer1", "layer10"], "layer1.layer10"),
        (["model", "dense"], "model.dense"),
        (["", "a", "a", "b"], "a.b"),
        ([], ""),
    ],
)
def test_modules(scopes: list[str], path: str) -> None:
    """Tests that scopes which repeat their path, and such as do not, lead to one module."""
    assert module_path(scopes) == path


class TestOnnx:
    """Nodes as three exporters write them."""

    @pytest.mark.parametrize(
        ("fields", "metadata", "place"),
        [
            ({"name": "/layer1/layer1.0/conv/Conv"}, {}, ("layer1.0.conv", "")),
            ({"name": "model/dense/MatMul"}, {}, ("model.dense", "")),
            ({"name": "Conv_7", "doc_string": "A note (41): nothing"}, {}, ("", "")),
            ({"name": "/conv/Conv", "doc_string": TORCH_SCRIPT}, {}, ("conv", "net.py:41")),
            (
                {"name": "node_conv2d"},
                {
                    "pkg.torch.onnx.name_scopes": "['', 'layer1', 'layer1.0', 'conv2d']",
                    "pkg.torch.onnx.stack_trace": PYTHON,
                },
                ("layer1.0", "net.py:41"),
            ),
        ],
    )
    def test_nodes(
        self,
        tmp_path: Path,
        fields: dict[str, str],
        metadata: dict[str, str],
        place: tuple[str, str],
    ) -> None:
        """Tests that a buffer has the module and the line of the node that makes it."""
        pytest.importorskip("onnx")
        from onnx_models import loaded, node, simple

        made = node("Exp", "x", "y", **fields)
        for key, value in metadata.items():
            made.metadata_props.add(key=key, value=value)
        (label,) = loaded(tmp_path, simple(made)).labels
        assert (label.module, label.line) == place
        assert label.operator == "Exp"
