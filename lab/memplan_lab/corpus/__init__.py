"""The corpus: how its problems are made of real networks, without their weights.

    from memplan_lab import corpus

    made = corpus.build(families=["timm"], limit=20)
    corpus.write(made, "corpus.parquet")

Networks are run on PyTorch's meta device, where tensors have shapes and no memory; nothing is
downloaded or computed. The same versions of the libraries give the same file.
`memplan_lab.bench.corpus()` reads the file of the package.
"""

from memplan_lab.corpus.building import FAMILIES, Built, Failure, build, recipes, write

__all__ = ["FAMILIES", "Built", "Failure", "build", "recipes", "write"]
