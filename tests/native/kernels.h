/* What a plain kernel computes with: an operator, and what it may read of its inputs. */
#ifndef KERNELS_H
#define KERNELS_H

#include "steps.h"

enum { MAX_RANK = 6, MAX_INPUTS = 16, MAX_PARAMS = 24, NAME = 64 };

typedef struct Tensor {
  char name[NAME];
  int dtype, rank, shape[MAX_RANK], is_held;
  size_t bytes;
  int root; /* the tensor in whose memory it lies, and where there */
  uint64_t root_at;
  unsigned char* whole; /* its values, computed as a whole */
} Tensor;

/* What a kernel may read of an input: all of it, or a piece in the arena. */
typedef struct Source {
  const Tensor* tensor; /* or none, if the input is left out */
  int in_arena, is_piece;
  Piece piece;
} Source;

struct Op;
typedef double (*Kernel)(struct Op* op, int y, int x, int c);

typedef struct Op {
  char kind[NAME];
  Kernel kernel;
  int inputs[MAX_INPUTS], inputs_count, outputs[MAX_INPUTS], outputs_count;
  double p[MAX_PARAMS];
  const Tensor* result;
  Source sources[MAX_INPUTS];
} Op;

/* Of kernels.c: none, and -1, if there is no such kernel or operator on elements. */
Kernel find_kernel(const char* name);
int find_element(const char* name);

/* Whether a part of a result has a row of an input: of pictures that are joined, not all do. */
int is_needed(const Op* op, int input, const Piece* made);

/* Of steps.c: whether channels come before rows. */
extern int is_nchw;

void fail(const char* format, ...);
double clamp(double v, double low, double high); /* what is no number becomes the lowest */

int rows(const Tensor* t);
int columns(const Tensor* t);
int depth(const Tensor* t);

/* The element of a part of a picture, which may be all of it. */
size_t index_of(const Piece* part, int channels, int y, int x, int c);
Piece all_of(const Tensor* t);

int has(const Op* op, int input);
/* An input by its row, column and channel. */
double get(Op* op, int input, int y, int x, int c);
/* An input that is broadcast to the result. */
double get_broadcast(Op* op, int input, int y, int x, int c);
/* An input without rows, or as a whole, by element; one element counts for all. */
double get_flat(Op* op, int input, size_t at);

#endif
