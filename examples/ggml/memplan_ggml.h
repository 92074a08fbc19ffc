/* memplan behind ggml's graph allocator: a graph is laid out twice. The first time ggml chooses the
 * addresses as it always does, and every block that it allocates and frees is noted. memplan then
 * plans all blocks at once. The second time the same requests, in the same order, get the addresses
 * of the plan. Where the plan is not better, ggml's own addresses stay.
 *
 * ggml_blocks.h and ggml_graph.h call these functions from ggml-alloc.c. The state belongs to the
 * thread that lays out a graph.
 */
#ifndef MEMPLAN_GGML_H_
#define MEMPLAN_GGML_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of one allocator of a graph. */
typedef struct memplan_ggml_result {
  size_t blocks;
  size_t host_bytes, bytes; /* of all chunks: by ggml, and as they are now */
  int host_chunks, chunks;
  size_t bound;       /* the most bytes that are needed at once: no plan has fewer */
  double cpu_seconds; /* of planning */
} memplan_ggml_result;

/* A graph is laid out from here on. */
void memplan_ggml_begin(void);

/* `allocator` has given `size` bytes, which are a multiple of `alignment`; `limit` is the most
 * bytes of a chunk. The second call says that some or all bytes of such a block are free; it
 * returns 1 while addresses are taken from a plan, when ggml has nothing to free. */
void memplan_ggml_allocated(const void* allocator, size_t alignment, size_t limit, size_t size,
                            int chunk, size_t offset);
int memplan_ggml_freed(const void* allocator, int chunk, size_t offset, size_t size);

/* Plans what was noted. 1: lay the graph out again; memplan_ggml_take() has the addresses. */
int memplan_ggml_plan(void);

/* 1 and the address of the next block of this allocator, or 0 if ggml shall choose it. */
int memplan_ggml_take(const void* allocator, size_t size, int* chunk, size_t* offset);

/* The graph has its addresses. */
void memplan_ggml_end(void);

/* 0: ggml's own addresses stay for every graph of this thread; 1 is the default. */
void memplan_ggml_enable(int enabled);

/* Called behind each plan, once for each allocator. `events` is the list of what it allocated and
 * freed, as docs/ggml.md describes it, or NULL if a block was not freed from its end. */
typedef void (*memplan_ggml_observer)(const memplan_ggml_result* result, const char* events,
                                      void* user_data);
void memplan_ggml_observe(memplan_ggml_observer observer, void* user_data);

#ifdef __cplusplus
}
#endif

#endif /* MEMPLAN_GGML_H_ */
