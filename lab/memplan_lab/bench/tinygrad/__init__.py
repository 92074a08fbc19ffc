"""Networks for tinygrad, and the process that runs one of them."""
