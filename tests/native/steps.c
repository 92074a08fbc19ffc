/* Runs networks as their headers say, with a plain kernel for every operator that has a map.

   A network is first computed as a whole, each tensor in memory of its own. Then its header is
   followed in one arena of the size that the header names, in which every byte has a tag: which
   byte of which tensor was written there last. A kernel may read only bytes of the piece that it
   was given, with the tag of what it asks for, and each result has to be that of the whole.

   steps NETWORKS DATA   the networks as words and numbers, and the values of what they are given
                         Results of the whole go to standard output, as hexadecimal bytes. */
#include "steps.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { FLOAT32, INT8, UINT8, INT32, INT64, BOOL };

static const size_t kWidths[] = {4, 1, 1, 4, 8, 1};

typedef struct Network {
  char name[NAME];
  int tensors_count, ops_count;
  Tensor* tensors;
  Op* ops;
} Network;

int is_nchw;
static Network net;
static unsigned char* arena;
static uint64_t* tags;
static size_t arena_bytes;
static const char* where = "";

void fail(const char* format, ...) {
  va_list rest;
  fprintf(stderr, "%s, %s: ", net.name, where);
  va_start(rest, format);
  vfprintf(stderr, format, rest);
  va_end(rest);
  fputc('\n', stderr);
  exit(1);
}

void* allocate(size_t bytes) {
  void* found = calloc(bytes ? bytes : 1, 1);
  if (!found) fail("no memory");
  return found;
}

/* Axes */

static int dim(const Tensor* t, int axis) { /* of the shape with leading ones to four axes */
  const int at = axis - (4 - t->rank);
  return at < 0 ? 1 : t->shape[at];
}
int rows(const Tensor* t) { return dim(t, is_nchw ? 2 : 1); }
int columns(const Tensor* t) { return dim(t, is_nchw ? 3 : 2); }
int depth(const Tensor* t) { return dim(t, is_nchw ? 1 : 3); }

size_t index_of(const Piece* part, int channels, int y, int x, int c) {
  const size_t high = (size_t)(part->bottom - part->top), wide = (size_t)(part->right - part->left);
  const size_t row = (size_t)(y - part->top), column = (size_t)(x - part->left);
  if (is_nchw) return ((size_t)c * high + row) * wide + column;
  return (row * wide + column) * (size_t)channels + (size_t)c;
}

Piece all_of(const Tensor* t) {
  Piece found = {0, 0, 0, 0, 0};
  found.bottom = rows(t);
  found.right = columns(t);
  return found;
}

/* Elements */

static double load(int dtype, const unsigned char* at) {
  float f;
  int32_t i;
  int64_t l;
  switch (dtype) {
    case FLOAT32:
      memcpy(&f, at, 4);
      return f;
    case INT8:
      return (double)(at[0] < 128 ? at[0] : at[0] - 256);
    case INT32:
      memcpy(&i, at, 4);
      return i;
    case INT64:
      memcpy(&l, at, 8);
      return (double)l;
    default:
      return at[0];
  }
}

double clamp(double v, double low, double high) { return v > low ? (v < high ? v : high) : low; }

static void store(int dtype, unsigned char* at, double v) {
  const float f = (float)clamp(v, -3e38, 3e38);
  int32_t i;
  int64_t l;
  switch (dtype) {
    case FLOAT32:
      memcpy(at, &f, 4);
      break;
    case INT8:
      at[0] = (unsigned char)(int)rint(clamp(v, -128, 127));
      break;
    case UINT8:
      at[0] = (unsigned char)rint(clamp(v, 0, 255));
      break;
    case INT32:
      i = (int32_t)rint(clamp(v, -1e9, 1e9));
      memcpy(at, &i, 4);
      break;
    case INT64:
      l = (int64_t)rint(clamp(v, -1e15, 1e15));
      memcpy(at, &l, 8);
      break;
    default:
      at[0] = v != 0;
      break;
  }
}

static uint64_t tag_of(const Tensor* t, uint64_t byte) {
  return ((uint64_t)(t->root + 1) << 40) | (t->root_at + byte);
}

static void check_arena(uint64_t first, size_t count) {
  if (first > arena_bytes || count > arena_bytes - first)
    fail("byte %llu is not in the arena", (unsigned long long)first);
}

static double read_at(const Source* s, size_t within, size_t element) {
  const Tensor* t = s->tensor;
  const size_t width = kWidths[t->dtype];
  size_t byte;
  if ((element + 1) * width > t->bytes)
    fail("element %zu of %s is beyond its end", element, t->name);
  if (!s->in_arena) return load(t->dtype, t->whole + element * width);
  check_arena(s->piece.offset + within * width, width);
  for (byte = 0; byte < width; byte++) {
    const uint64_t tag = tags[s->piece.offset + within * width + byte];
    if (!tag) fail("reads %s where no byte was written", t->name);
    if (tag != tag_of(t, element * width + byte))
      fail("reads %s [%zu], but tensor %llu lies there", t->name, element,
           (unsigned long long)(tag >> 40));
  }
  return load(t->dtype, arena + s->piece.offset + within * width);
}

double get(Op* op, int input, int y, int x, int c) {
  const Source* s = &op->sources[input];
  const Piece all = all_of(s->tensor);
  if (s->is_piece &&
      (y < s->piece.top || y >= s->piece.bottom || x < s->piece.left || x >= s->piece.right))
    fail("needs row %d, column %d of %s, whose piece has rows %d to %d, columns %d to %d", y, x,
         s->tensor->name, s->piece.top, s->piece.bottom, s->piece.left, s->piece.right);
  return read_at(s, index_of(s->is_piece ? &s->piece : &all, depth(s->tensor), y, x, c),
                 index_of(&all, depth(s->tensor), y, x, c));
}

double get_broadcast(Op* op, int input, int y, int x, int c) {
  const Tensor* t = op->sources[input].tensor;
  return get(op, input, rows(t) == 1 ? 0 : y, columns(t) == 1 ? 0 : x, depth(t) == 1 ? 0 : c);
}

int has(const Op* op, int input) {
  return input < op->inputs_count && op->sources[input].tensor != NULL;
}

double get_flat(Op* op, int input, size_t at) {
  const Source* s = &op->sources[input];
  if (s->is_piece) fail("%s is a picture", s->tensor->name);
  if (s->tensor->bytes == kWidths[s->tensor->dtype]) at = 0;
  return read_at(s, at, at);
}

/* Reading */

static FILE* words;

static long next(void) {
  long found;
  if (fscanf(words, "%ld", &found) != 1) fail("a number is missing");
  return found;
}

static void next_word(char* to) {
  if (fscanf(words, "%63s", to) != 1) fail("a word is missing");
}

static void read_tensor(Tensor* t, FILE* data) {
  int axis;
  long at;
  next_word(t->name);
  t->dtype = (int)next();
  t->is_held = (int)next();
  t->root = (int)next();
  t->root_at = (uint64_t)next();
  at = next();
  t->rank = (int)next();
  t->bytes = kWidths[t->dtype];
  for (axis = 0; axis < t->rank; axis++) {
    t->shape[axis] = (int)next();
    t->bytes *= (size_t)t->shape[axis];
  }
  t->whole = allocate(t->bytes);
  if (at < 0) return;
  if (fseek(data, at, SEEK_SET) || fread(t->whole, 1, t->bytes, data) != t->bytes)
    fail("the values of %s are missing", t->name);
}

static void read_op(Op* op) {
  int at, count;
  char element[NAME];
  next_word(op->kind);
  op->inputs_count = (int)next();
  for (at = 0; at < op->inputs_count; at++) op->inputs[at] = (int)next();
  op->outputs_count = (int)next();
  for (at = 0; at < op->outputs_count; at++) op->outputs[at] = (int)next();
  count = (int)next();
  for (at = 0; at < count; at++)
    if (fscanf(words, "%lf", &op->p[at]) != 1) fail("a parameter is missing");
  op->kernel = find_kernel(op->kind);
  if (!op->kernel) fail("there is no kernel %s", op->kind);
  if (strcmp(op->kind, "each") != 0) return;
  next_word(element);
  op->p[0] = find_element(element);
  if (op->p[0] < 0) fail("there is no operator %s on elements", element);
}

static void read_network(FILE* data) {
  int at;
  next_word(net.name);
  is_nchw = (int)next();
  net.tensors_count = (int)next();
  net.ops_count = (int)next();
  net.tensors = allocate((size_t)net.tensors_count * sizeof(Tensor));
  net.ops = allocate((size_t)net.ops_count * sizeof(Op));
  for (at = 0; at < net.tensors_count; at++) read_tensor(&net.tensors[at], data);
  for (at = 0; at < net.ops_count; at++) read_op(&net.ops[at]);
}

static void drop_network(void) {
  int at;
  for (at = 0; at < net.tensors_count; at++) free(net.tensors[at].whole);
  free(net.tensors);
  free(net.ops);
}

/* Running */

static void compute(Op* op, const Piece* part, unsigned char* to) {
  const int channels = depth(op->result);
  const size_t width = kWidths[op->result->dtype];
  int y, x, c;
  for (y = part->top; y < part->bottom; y++)
    for (x = part->left; x < part->right; x++)
      for (c = 0; c < channels; c++)
        store(op->result->dtype, to + index_of(part, channels, y, x, c) * width,
              op->kernel(op, y, x, c));
}

static void compute_whole(Op* op) {
  Piece all;
  int at;
  op->result = &net.tensors[op->outputs[0]];
  all = all_of(op->result);
  for (at = 0; at < op->inputs_count; at++) {
    memset(&op->sources[at], 0, sizeof(Source));
    if (op->inputs[at] >= 0) op->sources[at].tensor = &net.tensors[op->inputs[at]];
  }
  compute(op, &all, net.tensors[op->outputs[0]].whole);
}

static const Entry* find_entry(const Header* header, const char* name) {
  size_t at;
  for (at = 0; at < header->entries_count; at++)
    if (!strcmp(header->entries[at].name, name)) return &header->entries[at];
  return NULL;
}

static uint64_t find_offset(const Header* header, const Tensor* t) {
  const Entry* found = find_entry(header, t->name);
  if (!found) fail("%s is not in the table", t->name);
  if (found->size < t->bytes) fail("%s is too small in the table", t->name);
  return found->offset;
}

/* Put a part of a picture into the arena, element by element, with its tags. */
static void write_part(const Tensor* t, uint64_t offset, const Piece* part,
                       const unsigned char* from) {
  const Piece all = all_of(t);
  const size_t width = kWidths[t->dtype];
  int y, x, c;
  for (y = part->top; y < part->bottom; y++)
    for (x = part->left; x < part->right; x++)
      for (c = 0; c < depth(t); c++) {
        const size_t at = index_of(part, depth(t), y, x, c) * width;
        const size_t element = index_of(&all, depth(t), y, x, c) * width;
        size_t byte;
        check_arena(offset + at, width);
        if (memcmp(from + at, t->whole + element, width))
          fail("row %d, column %d, channel %d of %s is not that of the whole", y, x, c, t->name);
        memcpy(arena + offset + at, from + at, width);
        for (byte = 0; byte < width; byte++) tags[offset + at + byte] = tag_of(t, element + byte);
      }
}
/* The pieces of a step are those of its inputs that are in the arena and have rows and columns. */
static void find_pieces(const Header* header, Op* op, const Step* step) {
  unsigned next_piece = 0;
  int at;
  for (at = 0; at < op->inputs_count; at++) {
    Source* s = &op->sources[at];
    if (!s->tensor || s->tensor->is_held) continue;
    if (s->tensor->rank != 4) {
      s->in_arena = 1;
      s->piece.offset = find_offset(header, s->tensor);
      continue;
    }
    if (!is_needed(op, at, &step->output)) continue;
    if (next_piece == step->count) fail("no piece of input %d", at);
    if (step->first + next_piece >= header->inputs_count) fail("a piece is beyond the table");
    s->piece = header->inputs[step->first + next_piece++];
    s->in_arena = s->is_piece = 1;
    if (s->piece.top < 0 || s->piece.bottom > rows(s->tensor) || s->piece.left < 0 ||
        s->piece.right > columns(s->tensor) || s->piece.top >= s->piece.bottom ||
        s->piece.left >= s->piece.right)
      fail("a piece of input %d has rows or columns that the picture lacks", at);
  }
  if (!next_piece && step->count == 1) { /* nothing is read: one piece without rows says so */
    const Piece* none = &header->inputs[step->first];
    if (none->top != none->bottom) fail("a piece that no input has");
  } else if (next_piece != step->count) {
    fail("%u pieces for %u inputs", step->count, next_piece);
  }
}

/* Whole operators find their inputs by name. */
static void run_operator(const Header* header, int number, const Step* step) {
  Op* op = &net.ops[number];
  Piece made;
  unsigned char* result;
  uint64_t offset;
  int at;
  where = op->kind;
  op->result = &net.tensors[op->outputs[0]];
  if (op->result->is_held) return; /* a view of what the caller keeps */
  made = all_of(op->result);
  for (at = 0; at < op->inputs_count; at++) {
    memset(&op->sources[at], 0, sizeof(Source));
    if (op->inputs[at] >= 0) op->sources[at].tensor = &net.tensors[op->inputs[at]];
  }
  if (step && step->count) {
    made = step->output;
    offset = made.offset;
    find_pieces(header, op, step);
    if (step->point != (unsigned)depth(op->result) * kWidths[op->result->dtype])
      fail("a point of %s has other bytes", op->result->name);
    if (step->planes != (is_nchw ? (unsigned)depth(op->result) : 1u)) fail("other planes");
    if (made.top < 0 || made.bottom > rows(op->result) || made.left < 0 ||
        made.right > columns(op->result) || made.top >= made.bottom || made.left >= made.right)
      fail("makes rows that %s lacks", op->result->name);
  } else {
    offset = find_offset(header, op->result);
    for (at = 0; at < op->inputs_count; at++) {
      Source* s = &op->sources[at];
      if (!s->tensor || s->tensor->is_held) continue;
      s->in_arena = 1;
      s->piece.offset = find_offset(header, s->tensor);
    }
    if (step && op->result->rank == 4 && step->output.offset != offset)
      fail("a step and the table have two places for %s", op->result->name);
  }
  result = allocate((size_t)(made.bottom - made.top) * (size_t)(made.right - made.left) *
                    (size_t)depth(op->result) * kWidths[op->result->dtype]);
  compute(op, &made, result);
  write_part(op->result, offset, &made, result);
  free(result);
}

/* Copy what a piece and the output share; of the layout, a step says all that this needs. */
static void copy_piece(const Step* step, const Piece* from) {
  const Piece* to = &step->output;
  const size_t width = step->point / step->planes;
  int y, x;
  unsigned plane;
  for (plane = 0; plane < step->planes; plane++)
    for (y = from->top > to->top ? from->top : to->top; y < from->bottom && y < to->bottom; y++)
      for (x = from->left > to->left ? from->left : to->left; x < from->right && x < to->right;
           x++) {
        const size_t high[2] = {(size_t)(from->bottom - from->top), (size_t)(to->bottom - to->top)};
        const size_t wide[2] = {(size_t)(from->right - from->left), (size_t)(to->right - to->left)};
        const size_t a = from->offset + ((plane * high[0] + (size_t)(y - from->top)) * wide[0] +
                                         (size_t)(x - from->left)) *
                                            width;
        const size_t b =
            to->offset +
            ((plane * high[1] + (size_t)(y - to->top)) * wide[1] + (size_t)(x - to->left)) * width;
        size_t byte;
        check_arena(a, width);
        check_arena(b, width);
        for (byte = 0; byte < width; byte++) {
          if (!tags[a + byte]) fail("copies what was not written");
          arena[b + byte] = arena[a + byte];
          tags[b + byte] = tags[a + byte];
        }
      }
}

static void run_steps(const Header* header) {
  size_t at;
  unsigned input;
  for (at = 0; at < header->steps_count; at++) {
    const Step* step = &header->steps[at];
    if (step->operator_ >= 0) {
      run_operator(header, step->operator_, step);
      continue;
    }
    where = "copy";
    if (!step->count || !step->planes || step->point % step->planes) fail("copies nothing");
    for (input = 0; input < step->count; input++)
      copy_piece(step, &header->inputs[step->first + input]);
  }
}

static void run(const Header* header, int outputs_count, const int* outputs) {
  int at;
  arena_bytes = header->arena;
  arena = allocate(arena_bytes);
  memset(arena, 0xA5, arena_bytes);
  tags = allocate(arena_bytes * sizeof(uint64_t));
  where = "inputs";
  for (at = 0; at < net.tensors_count; at++) { /* what no operator makes is given */
    const Tensor* t = &net.tensors[at];
    int op, is_made = t->is_held;
    for (op = 0; op < net.ops_count; op++) is_made |= net.ops[op].outputs[0] == at;
    if (!is_made) {
      const Piece all = all_of(t);
      write_part(t, find_offset(header, t), &all, t->whole);
    }
  }
  if (header->steps_count) {
    run_steps(header);
  } else {
    for (at = 0; at < net.ops_count; at++)
      run_operator(header, header->order_count ? (int)header->order[at] : at, NULL);
  }
  where = "outputs";
  for (at = 0; at < outputs_count; at++) {
    const Tensor* t = &net.tensors[outputs[at]];
    const uint64_t offset = t->is_held ? 0 : find_offset(header, t);
    size_t byte;
    for (byte = 0; byte < t->bytes && !t->is_held; byte++)
      if (tags[offset + byte] != tag_of(t, byte) || arena[offset + byte] != t->whole[byte])
        fail("byte %zu of %s is not there", byte, t->name);
    for (byte = 0; byte < t->bytes; byte++) printf("%02x", t->whole[byte]);
    printf("\n");
  }
  free(arena);
  free(tags);
}

int main(int count, char** arguments) {
  FILE* data = count == 3 ? fopen(arguments[2], "rb") : NULL;
  size_t at;
  words = count == 3 ? fopen(arguments[1], "r") : NULL;
  if (!words || !data) fail("no files");
  for (at = 0; at < headers_count; at++) {
    Header header;
    int outputs[MAX_INPUTS], outputs_count, op;
    memset(&header, 0, sizeof header);
    memset(&net, 0, sizeof net);
    read_network(data);
    outputs_count = (int)next();
    for (op = 0; op < outputs_count; op++) outputs[op] = (int)next();
    where = "whole";
    for (op = 0; op < net.ops_count; op++) compute_whole(&net.ops[op]);
    read_header(at, &header);
    run(&header, outputs_count, outputs);
    free(header.entries);
    free(header.order);
    free(header.steps);
    free(header.inputs);
    drop_network();
  }
  fclose(words);
  fclose(data);
  return 0;
}
