/* Included in ggml-alloc.c behind the function ggml_dyn_tallocr_free_bytes: from there on, blocks
 * are allocated and freed through these two functions. */
#include "memplan_ggml.h"

static struct buffer_address memplan_alloc(struct ggml_dyn_tallocr* alloc, size_t size,
                                           const struct ggml_tensor* tensor) {
  struct buffer_address at;
  size = aligned_offset(NULL, size, alloc->alignment);
  if (memplan_ggml_take(alloc, size, &at.chunk, &at.offset)) {
    while (alloc->n_chunks <= at.chunk) ggml_dyn_tallocr_new_chunk(alloc, 0);
    const size_t end = at.offset + size;
    if (end > alloc->chunks[at.chunk]->max_size) alloc->chunks[at.chunk]->max_size = end;
    return at;
  }
  at = ggml_dyn_tallocr_alloc(alloc, size, tensor);
  memplan_ggml_allocated(alloc, alloc->alignment, alloc->max_chunk_size, size, at.chunk, at.offset);
  return at;
}

static void memplan_free(struct ggml_dyn_tallocr* alloc, struct buffer_address at, size_t size) {
  size = aligned_offset(NULL, size, alloc->alignment);
  if (memplan_ggml_freed(alloc, at.chunk, at.offset, size)) return;
  ggml_dyn_tallocr_free_bytes(alloc, at, size);
}

#define ggml_dyn_tallocr_alloc memplan_alloc
#define ggml_dyn_tallocr_free_bytes memplan_free
