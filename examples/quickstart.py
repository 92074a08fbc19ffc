"""Five buffers: where they go, whether that is right, and why less memory does not do."""

import memplan as mp

problem = mp.Problem(
    [
        mp.Buffer("b1", start=0, end=3, size=4),
        mp.Buffer("b2", start=3, end=9, size=4),
        mp.Buffer("b3", start=0, end=9, size=4),
        mp.Buffer("b4", start=9, end=21, size=4),
        mp.Buffer("b5", start=0, end=21, size=4, pin=0),
    ],
    capacity=12,
)

plan = mp.solve(problem)
mp.verify(problem, plan)  # raises, and names the buffers, if the plan is not safe
print(f"{plan.status}: peak {plan.peak}, and no plan has less than {plan.lower_bound}")
for buffer in problem.buffers:
    print(f"  {buffer.id} at {plan.offset(buffer.id)}")

why = mp.explain(problem, capacity=11)
print(f"11 bytes are too few by {why.excess}: {why.required} are required")
