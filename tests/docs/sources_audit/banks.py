"""Puts what an operator reads at one time into different banks."""

import memplan as mp
from memplan.machine.memories import assign

two = mp.Problem([mp.Buffer("left", 0, 2, 8), mp.Buffer("right", 0, 2, 8)])
banks = [mp.Memory("bank 0", 16), mp.Memory("bank 1", 16)]
found = assign(two, banks, apart=[("left", "right")])
print(found.memory_of("left"), "and", found.memory_of("right"))
