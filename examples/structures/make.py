"""Make the structure files beside this script: real networks without a weight in them.

Run it with PyTorch installed: `python examples/structures/make.py`. The networks are those of
`memplan_lab.bench.models`; what is written has operators, tensors and sizes, and nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from memplan.programs.graph import Graph, Kind
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.torch.read import graph_of
from memplan_lab.bench.models import MODELS

NETWORKS = ("resnet50", "bert_base")
HERE = Path(__file__).parent


def without_constants(graph: Graph) -> Graph:
    """Return the graph without its weights, which take most of the file and no arena."""
    kept = [i for i, tensor in enumerate(graph.tensors) if tensor.kind is not Kind.CONSTANT]
    place = {old: new for new, old in enumerate(kept)}

    def mapped(indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place[index] for index in indices if index in place)

    return replace(
        graph,
        tensors=tuple(graph.tensors[index] for index in kept),
        operators=tuple(
            replace(
                operator,
                inputs=mapped(operator.inputs),
                outputs=mapped(operator.outputs),
                in_place=tuple((place[a], place[b]) for a, b in operator.in_place),
            )
            for operator in graph.operators
        ),
        inputs=mapped(graph.inputs),
        outputs=mapped(graph.outputs),
        views=tuple(
            replace(view, tensor=place[view.tensor], base=place[view.base])
            for view in graph.views
            if view.tensor in place and view.base in place
        ),
    )


def main() -> None:
    """Write one file for each network."""
    for name in NETWORKS:
        module, args = MODELS[name]()
        program = torch.export.export(module, args)
        graph = replace(without_constants(graph_of(program)), name=name, source="torch")
        (HERE / f"{name}.graph.json").write_text(write_graph(graph))


if __name__ == "__main__":
    main()
