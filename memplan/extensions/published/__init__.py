"""The searches of MiniMalloc, TelaMalloc and SOMAS, and rectangle packing, as published."""
