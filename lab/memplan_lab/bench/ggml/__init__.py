"""The compute buffers of ggml: recorded lists of events, and llama.cpp with memplan behind it."""
