"""Plans at work: frameworks that run their models from one slab."""
