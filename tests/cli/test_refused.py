"""Tests what the command line refuses: a transcript of mistakes, each with its one sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import FIVE, assert_refused, memplan
from small_programs import training_step

from memplan.problem import Buffer, Problem, formats
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.graph_json import write_graph

EXAMPLES = Path(__file__).parents[2] / "examples"

# A command line, and words of the sentence behind "=>"; the exit code is 2, or that in front.
MISTAKES = """
plna five.csv => did you mean 'plan'?
plan five.csv --solver exat => (see memplan solvers); did you mean "exact"?
plan five.csv --capcity 12 => no such option: --capcity; did you mean --capacity?
plan five.csv -c 12 --capacity 13 => invalid value for '--capacity': it is given twice
plan five.csv --arena-budget=1 -c 1 => invalid value for '--capacity': it is given twice
plan five.csv --timeout 1 -t 2 => invalid value for '--timeout': it is given twice
plan five.csv -c 0 => capacity
plan five.csv -c 1XB => 1XB
plan five.csv -c=-5 => -5
plan five.csv -c 1_000 => 1_000
plan five.csv --pin b1 => 'b1' is not ID=OFFSET
plan five.csv --pin b1=x => 'b1=x' is not ID=OFFSET
plan five.csv --pin b1=0 --pin b1=4 => twice
plan five.csv --pin b9=0 => b9
plan five.csv --pin b1=0 --pin b3=2 => b3
plan five.csv --reserve 5 => LOWER:UPPER
plan five.csv --reserve 5:5 => reserved
plan five.csv --timeout nan => nan
plan five.csv --timeout 0 => 0
plan five.csv --nodes 0 => --nodes
plan five.csv --format xml => xml
plan five.csv --solver nobody => nobody
plan five.csv --no-such-option => --no-such-option
plan => INPUT
plan nothing.csv => nothing.csv:
plan . => .:
plan five.csv -o five.csv => is the input
plan five.csv -o link.csv => is the input
plan five.csv -o . => is a folder
plan five.csv -o five.csv/folder.csv => is a file, not a folder
plan five.csv --dim b=1 => has no symbolic dimensions
plan five.csv --alignment 0 => --alignment
plan five.csv --alignment 8 --pin b1=4 => pin is 4, not a multiple of the alignment (8)
verify five.csv => say what to check: a PLAN, a --proof, or both
nix.onnx => nix.onnx: is neither a command nor a file
convert five.csv => name one file to write: OUT, or --output FILE
convert five.csv a.json -o b.json => name one file to write
convert five.csv five.csv => is the input
convert five.csv out.csv --dialect rows => rows
compare five.csv five.csv --json --format text => --format names another format
view five.csv five.csv -o out.gif => out.gif
dance => dance

plan five.csv -o x.xyz => must be .json for JSON or .csv for a table or
plan five.csv -o x.tflite => only TFLite models carry their plan
convert five.csv x.txt => .graphml for the graph
record net.py:net -o x.pt => must be .json for the trace
recompute net.json -c 1MiB -o x.pt2 => must be .json for the program
apply net.tflite -o x.onnx => must be .tflite for the model
apply net.tflite --order -o x.h => must be .tflite for the model
apply net.tflite --c-header x.tflite => must be .h, .hh, .hpp, .hxx, .inc for a
apply net.tflite --shim x.json => must be .h, .hh, .hpp, .hxx, .inc for a header
fit net.tflite 64KiB -o x.xyz => is not written as x.xyz
compare five.csv five.csv -o x.htm => or .html for html

plan five.csv --proof it.proof --solver greedy => greedy writes no proof; choose one of auto, exact
plan five.csv --proof it.proof --solver minimalloc => minimalloc writes no proof
plan five.csv --proof it.proof --solver large => large writes no proof
plan five.csv --proof five.csv => is the input
plan five.csv --proof . => is a folder
plan five.csv --proof five.csv/it.proof => is a file, not a folder
plan five.csv --proof it.proof -o it.proof => --output names the same file

plan abc.json --allow a=sram => it needs --memory
plan abc.json MEMORIES --levers order => order: a problem has no operators
plan abc.json MEMORIES --threads 2 => it is of one arena
plan abc.json MEMORIES --board esp32 => only TFLM's kernels need a board
fit abc.json MEMORIES --board esp32 => a board is for the file of a TFLite model
plan abc.json MEMORIES --memory sram=20 => two memories have the name "sram"
plan abc.json MEMORIES --memory ddr=20,read=1 => name the fastest memory, with the lowest costs
plan abc.json MEMORIES --memory d/r=20 => "d/r" is no memory; write NAME=SIZE
plan abc.json MEMORIES --memory ddr= => memory "ddr": "" is not a size
plan abc.json MEMORIES --memory ddr=many => memory "ddr": "many" is not a size
plan abc.json MEMORIES --memory ddr=1,base=4,reads=4 => is none of its fields; did you mean "read"?
plan abc.json MEMORIES --memory ddr=1,read=4,read=5 => memory "ddr": "read=5" is given twice
plan abc.json MEMORIES --memory ddr=1,read=-4 => "read=-4" is no cost of a byte; write 8, 12.5,
plan abc.json MEMORIES --memory ddr=1,read=80MB => "read=80MB" is no cost of a byte
plan abc.json MEMORIES --memory ddr=1,read=1/0 => "read=1/0" is no cost of a byte
plan abc.json MEMORIES --memory ddr=1,base=1.5 => "base=1.5" needs a whole number
plan abc.json --memory a=10,read=1 --memory b=10,read=8MB/s => some costs are rates
plan abc.json --memory a=10,base=16 --memory b=10,base=20 => addresses of memories "a" and "b"
plan abc.json --reads CONV=2 => it needs --memory
plan abc.json MEMORIES --reads CONV=2 => there are no operators
plan abc.json MEMORIES --reads CONV=two => "CONV=two" does not say how often
plan abc.json MEMORIES --reads A=2 --reads A=3 => type "A" read is given twice
plan abc.json MEMORIES --allow x=sram => "x"
plan abc.json MEMORIES --allow a=ddr => buffer "a" may lie in "ddr", but the memories are
plan abc.json MEMORIES --allow sram => 'sram' is not ID=NAME
plan abc.json MEMORIES -o plan.json => is no folder
verify abc.json plans => this folder has no plan (*.plan.json), as
verify abc.json plans --proof x => a proof is of one arena
1 plan abc.json --memory sram=9B --memory b=5B -o plans => proved: there is no room in "sram", "b"
1 fit net.json --memory sram=9B --memory b=5B -o plans => and there are fewer in "sram"

plan abc.json --block-limit 5 --strict => more than the limit of a block
1 plan abc.json --block-limit 10 --pin a=5 => beyond the limit of a block, 10
1 plan abc.json --block-limit 10 --capacity 15 => need at least 16 bytes, and all blocks may have 15
plan abc.json --block-limit 10 --in-place => in place: a problem has no operators
plan abc.json --block-limit 10 -o abc.json => is no folder

plan abc.json --keep a => it is of several programs
plan abc.json five.csv --keep z => no tensor "z"
plan abc.json five.csv --overlap abc => 'abc' is not A,B
plan abc.json five.csv --overlap abc,abc => cannot overlap with itself
plan abc.json five.csv --levers order => order: a problem has no operators
plan abc.json five.csv --progress => it is of one program
plan abc.json five.csv --spill 1GB/s => it needs --levers again
plan abc.json five.csv -o plan.json => is no folder
plan abc.json none.json => none.json
1 plan abc.json five.csv -c 10 => do not fit into one arena of 10 bytes

plan abc.json --penalties pairs.csv => penalties need a capacity
plan abc.json --penalties pairs.csv -c 9 --levers order => has no operators
plan abc.json --penalties pairs.csv -c 9 --in-place => has no operators
plan abc.json --penalties pairs.csv -c 9 --threads 2 => runs in one thread
plan abc.json --penalties wrong.csv -c 20 => wrong.csv:2: there is no buffer "x"
plan streams.json --levers waits => give a capacity
plan streams.json --levers waits --program x.csv => must be .json
plan abc.json --levers waits -c 9 => has no operators

plan step.json --levers order -o plan.csv => cannot say which order
plan step.json --levers order --format csv => of one program as it is
plan step.json --levers order --measure => of one program as it is
plan step.json --pure Conv => needs --levers order
view step.json --pure Conv => needs --order
view step.json --order -o page.html => no plan
order five.csv => operators
plan five.csv --levers order => operators
view five.csv --order => operators

recompute step.json -c 1040 --spill fast => "fast" is not a rate
plan step.json --spill 1GB/s -c 1040 => it needs --levers again
plan step.json --levers again => give a capacity
plan step.json --levers again -c 1040 -o p.csv => write JSON
apply step.json --recompute --c-header p.h => give --capacity
apply step.json --recompute -c 1040 -o p.onnx => -o FILE.h
apply net.tflite --recompute -c 20K -o p.tflite => runs no copies of
1 plan step.json --levers again -c 600 => below the floor of 640
1 apply step.json --recompute --c-header p.h -c 600 => memplan fit step.json 600B -o p.h tries

tradeoff step.json -o a.csv => the suffix must be .html for a page
tradeoff step.json -o step.json => this is the input
tradeoff step.json --costs pairs.csv -o pairs.csv => this is the input
tradeoff step.json --pure Missing => no operator is of the type "Missing"
tradeoff step.json --costs times.csv => the file cannot be read
tradeoff five.csv => a problem has no operators
"""
ROWS = [row.partition(" => ") for row in MISTAKES.splitlines() if row]


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder with an input of each kind."""
    Path("plans").mkdir()
    Path("five.csv").write_text(FIVE)
    Path("link.csv").symlink_to("five.csv")
    shutil.copy(EXAMPLES / "models" / "mobile.tflite", "net.tflite")
    shutil.copy(EXAMPLES / "c_header" / "network.graph.json", "net.json")
    Path("net.py").touch()
    formats.save(Problem([Buffer(id, 0, 4, 5 + (id == "a")) for id in "abc"]), "abc.json")
    Path("pairs.csv").write_text("first,second,cost\n")
    Path("wrong.csv").write_text("first,second,cost\na,x,5\n")
    Path("step.json").write_text(write_graph(training_step()))
    tensors = tuple(Tensor(name, 10, Kind.INTERMEDIATE) for name in "abc")
    made = (("make", (), (0,), 0), ("use", (0,), (), 0), ("other", (), (1,), 1))
    operators = tuple(
        Operator(name, "OP", ins, outs, stream=stream) for name, ins, outs, stream in made
    )
    Path("streams.json").write_text(write_graph(Graph("s", tensors, operators, (), ())))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [pytest.param(line, sentence, id=line) for line, _, sentence in ROWS],
)
def test_a_mistake_is_one_sentence(line: str, sentence: str) -> None:
    """Tests the sentence, the exit code, and that every file is as it was."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    code, _, rest = line.partition(" ")
    words = (rest if code == "1" else line).replace(
        "MEMORIES", "--memory sram=10 --memory psram=1KiB"
    )
    assert_refused(memplan(*words.split()), sentence, code=1 if code == "1" else 2)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
