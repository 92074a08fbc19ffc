"""Repacks, and chooses buffers for fast memory."""

import memplan as mp

r = mp.Repacker(
    [mp.Buffer("a", 0, 4, 8), mp.Buffer("b", 2, 6, 8), mp.Buffer("w", 0, 9, 4)], capacity=20
)
print(r.fits())
r.add(mp.Buffer("c", 3, 9, 8))
print(r.fits())
r.remove("a")
print(r.fits(), r.moved, "moved")
print(mp.pack_most_valuable(r.problem(), {"b": 3, "c": 2, "w": 9}, 12).chosen)
