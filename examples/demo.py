"""Make a problem that is hard to plan by hand, plan it, and leave what comes of it in a folder.

Run it as `python examples/demo.py [FOLDER]`.
"""

import random
import sys
from pathlib import Path

import memplan as mp


def cut_rectangle(count: int, seed: int) -> mp.Problem:
    """Return buffers cut from a full rectangle: not one byte of their arena may be wasted."""
    chance = random.Random(seed)
    boxes = [(0, 1000, 0, 1 << 20)]  # start, end, lower, upper
    while len(boxes) < count:
        start, end, lower, upper = boxes.pop(chance.randrange(len(boxes)))
        if chance.random() < 0.5:
            at = chance.randint(start + 1, end - 1) if end - start > 1 else end
            boxes += [(start, at, lower, upper), (at, end, lower, upper)]
        else:
            at = chance.randint(lower + 1, upper - 1) if upper - lower > 1 else upper
            boxes += [(start, end, lower, at), (start, end, at, upper)]
        boxes = [box for box in boxes if box[0] < box[1] and box[2] < box[3]]
    return mp.Problem(
        mp.Buffer(f"b{row}", start, end, upper - lower)
        for row, (start, end, lower, upper) in enumerate(boxes)
    )


def main(folder: Path) -> None:
    """Write a problem, its plan and a picture of it."""
    folder.mkdir(parents=True, exist_ok=True)
    problem = cut_rectangle(50, seed=1)
    plan = mp.solve(problem, nodes=1_000_000)
    mp.verify(problem, plan)
    print(plan.summary())
    mp.save(problem, folder / "packing.csv")
    mp.save(plan, folder / "packing.plan.csv")
    plan.plot().savefig(folder / "packing.png", dpi=300)
    print(f"\nin {folder}/:", *sorted(path.name for path in folder.iterdir()))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
