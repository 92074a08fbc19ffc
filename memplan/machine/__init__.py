"""Where buffers are placed: in several memories, in blocks, apart from each other, or again."""
