"""Make a problem that is hard to plan by hand, plan it, and leave what comes of it in a folder.

Run it as `python examples/demo.py [FOLDER]`.
"""

import sys
from pathlib import Path

import memplan as mp
from memplan.view import plot
from memplan_lab.bench.generators import perfect_packing


def main(folder: Path) -> None:
    """Write a problem, its plan and a picture of it."""
    folder.mkdir(parents=True, exist_ok=True)
    # 50 buffers cut from a full rectangle: not one byte may be wasted.
    problem = perfect_packing(50, seed=1)
    plan = mp.solve(problem, nodes=1_000_000)
    mp.verify(problem, plan)
    print(plan.summary())
    mp.save(problem, folder / "packing.csv")
    mp.save(plan, folder / "packing.plan.csv")
    plot.save(problem, plan, folder / "packing.png")
    print(f"\nin {folder}/:", *sorted(path.name for path in folder.iterdir()))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
