/* What the headers of a batch of networks say, and what runs it. */
#ifndef STEPS_H
#define STEPS_H

#include <stddef.h>
#include <stdint.h>

typedef struct Piece {
  uint64_t offset;
  int top, bottom, left, right;
} Piece;

typedef struct Step {
  int operator_;
  unsigned first, count, point, planes;
  Piece output;
} Step;

typedef struct Entry {
  const char* name;
  uint64_t offset, size;
} Entry;

/* One header; `order` for one in another order, `steps` and `inputs` for one in bands. */
typedef struct Header {
  size_t arena, entries_count, order_count, steps_count, inputs_count;
  Entry* entries;
  uint32_t* order;
  Step* steps;
  Piece* inputs;
} Header;

/* Each header has types of its own, so its tables are copied field by field. */
#define COPY_TABLE(h, lower, UPPER)                              \
  do {                                                           \
    size_t at_;                                                  \
    (h)->arena = UPPER##_ARENA_SIZE;                             \
    (h)->entries_count = UPPER##_TABLE_COUNT;                    \
    (h)->entries = allocate((h)->entries_count * sizeof(Entry)); \
    for (at_ = 0; at_ < (h)->entries_count; at_++) {             \
      (h)->entries[at_].name = lower##_table[at_].name;          \
      (h)->entries[at_].offset = lower##_table[at_].offset;      \
      (h)->entries[at_].size = lower##_table[at_].size;          \
    }                                                            \
  } while (0)

#define COPY_ORDER(h, lower, UPPER)                             \
  do {                                                          \
    size_t at_;                                                 \
    (h)->order_count = UPPER##_ORDER_COUNT;                     \
    (h)->order = allocate((h)->order_count * sizeof(uint32_t)); \
    for (at_ = 0; at_ < (h)->order_count; at_++) {              \
      (h)->order[at_] = lower##_order[at_];                     \
    }                                                           \
  } while (0)

#define COPY_PIECE(to, from)     \
  do {                           \
    (to).offset = (from).offset; \
    (to).top = (from).top;       \
    (to).bottom = (from).bottom; \
    (to).left = (from).left;     \
    (to).right = (from).right;   \
  } while (0)

#define COPY_STEPS(h, lower, UPPER)                                  \
  do {                                                               \
    size_t at_;                                                      \
    (h)->steps_count = UPPER##_STEPS_COUNT;                          \
    (h)->inputs_count = UPPER##_INPUTS_COUNT;                        \
    (h)->steps = allocate((h)->steps_count * sizeof(Step));          \
    (h)->inputs = allocate((h)->inputs_count * sizeof(Piece));       \
    for (at_ = 0; at_ < (h)->steps_count; at_++) {                   \
      (h)->steps[at_].operator_ = (int)lower##_steps[at_].operator_; \
      (h)->steps[at_].first = lower##_steps[at_].first;              \
      (h)->steps[at_].count = lower##_steps[at_].count;              \
      (h)->steps[at_].point = lower##_steps[at_].point;              \
      (h)->steps[at_].planes = lower##_steps[at_].planes;            \
      COPY_PIECE((h)->steps[at_].output, lower##_steps[at_].output); \
    }                                                                \
    for (at_ = 0; at_ < (h)->inputs_count; at_++) {                  \
      COPY_PIECE((h)->inputs[at_], lower##_inputs[at_]);             \
    }                                                                \
  } while (0)

void* allocate(size_t bytes);

/* Defined by the batch: the number of its headers, and what each says. */
extern const size_t headers_count;
void read_header(size_t at, Header* header);

#endif
