"""Tests of `examples/inductor`: memplan as the planner of torch.compile, where that needs least."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from compilers import can_build

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[3] / "examples" / "inductor"
NETWORK = "vision transformer"

# What PyTorch compiles its kernels with.
needs_compiler = pytest.mark.skipif(
    not can_build("g++", "-std=c++20", "-shared", "-fPIC", "-fopenmp"), reason="there is no g++"
)

LOADER = r"""
#include <fstream>
#include <iterator>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>
int main(int, char** arguments) {
  c10::InferenceMode inference;
  std::ifstream file(arguments[2], std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  auto input = torch::from_blob(bytes.data(), {2, 64, 192}).clone();
  torch::inductor::AOTIModelPackageLoader loader(arguments[1]);
  auto output = loader.run({input})[0].contiguous();
  std::ofstream(arguments[3], std::ios::binary)
      .write(static_cast<const char*>(output.data_ptr()), output.nbytes());
}
"""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """Return the module that measures; what is compiled goes to a folder of the test."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield importlib.import_module("measure")
    for name in ("measure", "planning", "networks"):
        del sys.modules[name]


def make(example: Any, name: str = NETWORK) -> tuple[Any, tuple[Any, ...]]:
    """Return a network, always with the same weights."""
    torch.manual_seed(0)
    model, inputs = example.NETWORKS[name]()
    return model.eval(), inputs


@needs_compiler
def test_the_least_is_chosen(example: Any) -> None:
    """Tests a network whose pools are best by memplan, and one whose default is."""
    choice = example.count(*make(example))
    assert choice.memplan < min(choice.default, choice.stock)
    assert choice.chosen == "memplan"
    choice = example.count(*make(example, "two towers"))
    assert choice.default < choice.memplan <= choice.stock
    assert choice.chosen == "default"
    assert not choice.note
    choice = example.count(*make(example, "U-Net"))
    assert choice.chosen == "default"
    assert choice.note.startswith("some kernels allocate memory themselves")


@needs_compiler
def test_what_keeps_the_default(example: Any) -> None:
    """Tests symbolic sizes, a wrong mode, and that Inductor is as it was."""
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    stock = PythonWrapperCodegen.run_wrapper_ir_passes
    choice = example.count(*make(example, "two towers"), dynamic=True)
    assert choice.chosen == "default"
    assert choice.memplan is None
    assert choice.note.endswith("has a symbolic size")
    with pytest.raises(ValueError, match="'auto' or 'memplan'"), example.planning("all"):
        pass
    assert PythonWrapperCodegen.run_wrapper_ir_passes is stock


@pytest.mark.parametrize(("bundled", "precompiled"), [(False, False), (True, False), (False, True)])
def test_caches_of_graphs(example: Any, bundled: bool, precompiled: bool) -> None:
    """Tests that a graph in a cache is planned, and that no cache gets what was planned."""
    import torch._dynamo.config as dynamo
    import torch._functorch.config as autograd
    from torch._dynamo.utils import counters

    def compile_again() -> dict[str, int]:
        torch._dynamo.reset()
        counters.clear()
        outputs.append(torch.compile(multiply)(rows))
        found = {name: count for each in counters.values() for name, count in each.items()}
        return {name: count for name, count in found.items() if "cache" in name}

    # Products of matrices need no compiler. Each case has sizes of its own.
    wide = torch.ones(8, 16 + 8 * bundled + 16 * precompiled)
    rows, outputs = torch.ones(8, 8), []
    multiply = lambda x: x @ wide @ wide.T @ wide  # noqa: E731
    with (
        torch.no_grad(),
        autograd.patch(bundled_autograd_cache=bundled),
        dynamo.patch(caching_precompile=precompiled),
    ):
        for at in range(2):
            with example.planning("memplan") as choices:
                assert compile_again() == {}
            assert [choice.chosen for choice in choices] == ["memplan"]
            found = sum(count for name, count in compile_again().items() if name.endswith("_hit"))
            assert (found > 0) == (at > 0)
    assert all(torch.equal(each, outputs[0]) for each in outputs)


def test_threads_and_contexts_in_which_nothing_is_planned(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that another thread compiles as ever, what warns, and a mode that is refused."""
    from torch._inductor import compile_fx

    def work() -> None:
        with torch.no_grad():
            torch.compile(lambda x: x @ x @ x @ x)(torch.ones(4, 4))

    def plan_beside() -> Any:
        with example.planning() as choices:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return choices

    torch._dynamo.reset()
    with pytest.warns(UserWarning, match="compiled nothing"):
        assert plan_beside() == []
    monkeypatch.setattr(compile_fx, "fx_compile_mode", compile_fx.FxCompileMode.SUBPROCESS)
    with pytest.raises(RuntimeError, match="COMPILE_MODE"), example.planning():
        pass


@pytest.mark.deep
@needs_compiler
def test_what_runs_needs_what_was_counted(example: Any) -> None:
    """Tests the bytes of the profiler in all ways against the lines, and outputs."""
    model, inputs = make(example)
    choice = example.count(model, inputs)
    found = {way: example.run(model, inputs, way) for way in ("default", "stock", "auto")}
    assert found["default"][0] == choice.default
    assert found["stock"][0] == choice.stock
    assert found["auto"][0] == choice.memplan
    assert len({digest for _, digest in found.values()}) == 1


@pytest.mark.deep
@needs_compiler
def test_a_package_runs_in_python_and_in_cpp(example: Any, tmp_path: Path) -> None:
    """Tests a `.pt2` of AOTInductor with memplan's offsets, against the compiled model."""
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    model, inputs = make(example)
    with torch.no_grad():
        program = torch.export.export(model, inputs)
        paths = [str(tmp_path / name) for name in ("default.pt2", "memplan.pt2")]
        aoti_compile_and_package(program, package_path=paths[0])
        with example.planning() as choices:
            aoti_compile_and_package(program, package_path=paths[1])
        assert [choice.chosen for choice in choices] == ["memplan"]
        first, second = (aoti_load_package(path)(*inputs) for path in paths)
    assert torch.equal(first, second)
    (tmp_path / "load.cpp").write_text(LOADER, encoding="utf-8")
    (tmp_path / "input").write_bytes(inputs[0].numpy().tobytes())
    home = Path(torch.__file__).parent
    include = [home / "include", home / "include/torch/csrc/api/include"]
    libraries = [f"-L{home / 'lib'}", f"-Wl,-rpath,{home / 'lib'}", "-ltorch", "-ltorch_cpu"]
    subprocess.run(
        ["g++", "-std=c++20", "-w", "load.cpp", "-o", "load"]
        + [f"-I{each}" for each in include]
        + [*libraries, "-lc10"],
        cwd=tmp_path,
        check=True,
    )
    command = [tmp_path / "load", paths[1], tmp_path / "input", tmp_path / "output"]
    subprocess.run(command, check=True)
    assert (tmp_path / "output").read_bytes() == second.numpy().tobytes()
