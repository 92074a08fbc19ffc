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

enum { MAX_RANK = 6, MAX_INPUTS = 16, MAX_PARAMS = 24, NAME = 64 };
enum { FLOAT32, INT8, UINT8, INT32, INT64, BOOL };

static const size_t kWidths[] = {4, 1, 1, 4, 8, 1};

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

typedef struct Network {
  char name[NAME];
  int is_nchw, tensors_count, ops_count;
  Tensor* tensors;
  Op* ops;
} Network;

static Network net;
static unsigned char* arena;
static uint64_t* tags;
static size_t arena_bytes;
static const char* where = "";

static void fail(const char* format, ...) {
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
static int rows(const Tensor* t) { return dim(t, net.is_nchw ? 2 : 1); }
static int columns(const Tensor* t) { return dim(t, net.is_nchw ? 3 : 2); }
static int depth(const Tensor* t) { return dim(t, net.is_nchw ? 1 : 3); }

/* The element of a part of a picture, which may be all of it. */
static size_t index_of(const Piece* part, int channels, int y, int x, int c) {
  const size_t high = (size_t)(part->bottom - part->top), wide = (size_t)(part->right - part->left);
  const size_t row = (size_t)(y - part->top), column = (size_t)(x - part->left);
  if (net.is_nchw) return ((size_t)c * high + row) * wide + column;
  return (row * wide + column) * (size_t)channels + (size_t)c;
}

static Piece all_of(const Tensor* t) {
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
    case FLOAT32: memcpy(&f, at, 4); return f;
    case INT8: return (double)(at[0] < 128 ? at[0] : at[0] - 256);
    case INT32: memcpy(&i, at, 4); return i;
    case INT64: memcpy(&l, at, 8); return (double)l;
    default: return at[0];
  }
}

static double clamp(double v, double low, double high) {
  return v > low ? (v < high ? v : high) : low; /* what is no number becomes the lowest */
}

static void store(int dtype, unsigned char* at, double v) {
  const float f = (float)clamp(v, -3e38, 3e38);
  int32_t i;
  int64_t l;
  switch (dtype) {
    case FLOAT32: memcpy(at, &f, 4); break;
    case INT8: at[0] = (unsigned char)(int)rint(clamp(v, -128, 127)); break;
    case UINT8: at[0] = (unsigned char)rint(clamp(v, 0, 255)); break;
    case INT32: i = (int32_t)rint(clamp(v, -1e9, 1e9)); memcpy(at, &i, 4); break;
    case INT64: l = (int64_t)rint(clamp(v, -1e15, 1e15)); memcpy(at, &l, 8); break;
    default: at[0] = v != 0; break;
  }
}

static uint64_t tag_of(const Tensor* t, uint64_t byte) {
  return ((uint64_t)(t->root + 1) << 40) | (t->root_at + byte);
}

static void check_arena(uint64_t first, size_t count) {
  if (first > arena_bytes || count > arena_bytes - first) fail("byte %llu is not in the arena",
                                                              (unsigned long long)first);
}

static double read_at(const Source* s, size_t within, size_t element) {
  const Tensor* t = s->tensor;
  const size_t width = kWidths[t->dtype];
  size_t byte;
  if ((element + 1) * width > t->bytes) fail("element %zu of %s is beyond its end", element, t->name);
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

/* An input by its row, column and channel. */
static double get(Op* op, int input, int y, int x, int c) {
  const Source* s = &op->sources[input];
  const Piece all = all_of(s->tensor);
  if (s->is_piece && (y < s->piece.top || y >= s->piece.bottom || x < s->piece.left ||
                      x >= s->piece.right))
    fail("needs row %d, column %d of %s, whose piece has rows %d to %d, columns %d to %d", y, x,
         s->tensor->name, s->piece.top, s->piece.bottom, s->piece.left, s->piece.right);
  return read_at(s, index_of(s->is_piece ? &s->piece : &all, depth(s->tensor), y, x, c),
                 index_of(&all, depth(s->tensor), y, x, c));
}

/* An input that is broadcast to the result. */
static double get_broadcast(Op* op, int input, int y, int x, int c) {
  const Tensor* t = op->sources[input].tensor;
  return get(op, input, rows(t) == 1 ? 0 : y, columns(t) == 1 ? 0 : x, depth(t) == 1 ? 0 : c);
}

static int has(const Op* op, int input) {
  return input < op->inputs_count && op->sources[input].tensor != NULL;
}

/* An input without rows, or as a whole, by element; one element counts for all. */
static double get_flat(Op* op, int input, size_t at) {
  const Source* s = &op->sources[input];
  if (s->is_piece) fail("%s is a picture", s->tensor->name);
  if (s->tensor->bytes == kWidths[s->tensor->dtype]) at = 0;
  return read_at(s, at, at);
}

static size_t element_at(const Tensor* t, int i, int j, int k, int l) {
  return (((size_t)i * (size_t)t->shape[1] + (size_t)j) * (size_t)t->shape[2] + (size_t)k) *
             (size_t)t->shape[3] + (size_t)l;
}

static double activate(double v, double kind) { /* as the schema of TFLite numbers them */
  if (kind == 1) return v > 0 ? v : 0;
  if (kind == 2) return clamp(v, -1, 1);
  if (kind == 3) return clamp(v, 0, 6);
  return v;
}

/* Kernels: p holds {weights, bias, factor, activation} and then what each one says. */

enum { WEIGHTS, BIAS, FACTOR, ACTIVATION, STEP_Y, STEP_X, HOLE_Y, HOLE_X, PAD_Y, PAD_X, GROUPS,
       HEIGHT, WIDTH, FLAG, POWER };

static double begin_sum(Op* op, int c) {
  const int bias = (int)op->p[BIAS];
  return bias >= 0 && has(op, bias) ? get_flat(op, bias, (size_t)c) : 0;
}

static double end_sum(Op* op, double sum) {
  return activate(sum * op->p[FACTOR], op->p[ACTIVATION]);
}

static double convolve(Op* op, int y, int x, int c) {
  const int w = (int)op->p[WEIGHTS];
  const Tensor *input = op->sources[0].tensor, *weights = op->sources[w].tensor;
  const int groups = (int)op->p[GROUPS], each = depth(input) / groups;
  const int first = c / (depth(op->result) / groups) * each;
  const int high = weights->shape[net.is_nchw ? 2 : 1], wide = weights->shape[net.is_nchw ? 3 : 2];
  double sum = begin_sum(op, c);
  int i, j, k;
  for (i = 0; i < high; i++) {
    const int row = y * (int)op->p[STEP_Y] - (int)op->p[PAD_Y] + i * (int)op->p[HOLE_Y];
    if (row < 0 || row >= rows(input)) continue;
    for (j = 0; j < wide; j++) {
      const int column = x * (int)op->p[STEP_X] - (int)op->p[PAD_X] + j * (int)op->p[HOLE_X];
      if (column < 0 || column >= columns(input)) continue;
      for (k = 0; k < each; k++) {
        size_t at = net.is_nchw ? element_at(weights, c, k, i, j) : element_at(weights, c, i, j, k);
        if (op->p[FLAG] != 0) at = element_at(weights, 0, i, j, c); /* depthwise, in NHWC */
        sum += get(op, 0, row, column, first + k) * get_flat(op, w, at);
      }
    }
  }
  return end_sum(op, sum);
}

static double transpose(Op* op, int y, int x, int c) {
  const int w = (int)op->p[WEIGHTS], from = net.is_nchw ? 0 : 2;
  const Tensor *input = op->sources[from].tensor, *weights = op->sources[w].tensor;
  const int groups = (int)op->p[GROUPS], each = depth(input) / groups;
  const int made = depth(op->result) / groups, first = c / made * each;
  const int high = weights->shape[net.is_nchw ? 2 : 1], wide = weights->shape[net.is_nchw ? 3 : 2];
  double sum = begin_sum(op, c);
  int i, j, k;
  for (i = 0; i < high; i++) {
    const int row = y + (int)op->p[PAD_Y] - i * (int)op->p[HOLE_Y], step = (int)op->p[STEP_Y];
    if (row < 0 || row % step || row / step >= rows(input)) continue;
    for (j = 0; j < wide; j++) {
      const int column = x + (int)op->p[PAD_X] - j * (int)op->p[HOLE_X];
      const int stride = (int)op->p[STEP_X];
      if (column < 0 || column % stride || column / stride >= columns(input)) continue;
      for (k = 0; k < each; k++) {
        const size_t at = net.is_nchw ? element_at(weights, first + k, c % made, i, j)
                                      : element_at(weights, c, i, j, k);
        sum += get(op, from, row / step, column / stride, first + k) * get_flat(op, w, at);
      }
    }
  }
  return end_sum(op, sum);
}

/* POWER: 0 for the largest, 1 for the mean, -2 for the root of the mean of squares, more for Lp. */
static double pool(Op* op, int y, int x, int c) {
  const Tensor* input = op->sources[0].tensor;
  const double power = op->p[POWER];
  double most = -INFINITY, sum = 0;
  int count = 0, i, j;
  for (i = 0; i < (int)op->p[HEIGHT]; i++) {
    const int row = y * (int)op->p[STEP_Y] - (int)op->p[PAD_Y] + i * (int)op->p[HOLE_Y];
    for (j = 0; j < (int)op->p[WIDTH]; j++) {
      const int column = x * (int)op->p[STEP_X] - (int)op->p[PAD_X] + j * (int)op->p[HOLE_X];
      double v;
      count += op->p[FLAG] != 0; /* the padding counts */
      if (row < 0 || row >= rows(input) || column < 0 || column >= columns(input)) continue;
      count += op->p[FLAG] == 0;
      v = get(op, 0, row, column, c);
      most = v > most ? v : most;
      sum += power == 1 ? v : pow(fabs(v), fabs(power));
    }
  }
  if (power == 0) return activate(most, op->p[ACTIVATION]);
  if (power > 1) return pow(sum, 1 / power);
  sum = count ? sum / count : 0;
  return activate(power < 0 ? sqrt(sum) : sum, op->p[ACTIVATION]);
}

/* p: linear, which positions, how to round, each for rows and columns alike. */
static double find_position(Op* op, int at, int size, int made) {
  const double scale = (double)size / made;
  if (op->p[1] == 1) return (at + 0.5) * scale - 0.5;
  if (op->p[1] == 2) return made > 1 ? at * (size - 1.0) / (made - 1) : 0;
  return at * scale;
}

static int find_nearest(Op* op, int at, int size, int made) {
  const double place = find_position(op, at, size, made);
  double found = floor(place);
  if (op->p[2] == 1) found = ceil(place);
  if (op->p[2] == 2) found = ceil(place - 0.5);
  if (op->p[2] == 3) found = floor(place + 0.5);
  if (op->p[2] == 4) found = floor((at + 0.5) * size / made);
  return (int)clamp(found, 0, size - 1);
}

static double resize(Op* op, int y, int x, int c) {
  const Tensor *t = op->sources[0].tensor, *result = op->result;
  double place[2], sum = 0;
  int i, j;
  if (op->p[0] == 0)
    return get(op, 0, find_nearest(op, y, rows(t), rows(result)),
               find_nearest(op, x, columns(t), columns(result)), c);
  place[0] = clamp(find_position(op, y, rows(t), rows(result)), 0, rows(t) - 1);
  place[1] = clamp(find_position(op, x, columns(t), columns(result)), 0, columns(t) - 1);
  for (i = 0; i < 2; i++) {
    const double down = place[0] - floor(place[0]), high = i ? down : 1 - down;
    for (j = 0; j < 2; j++) {
      const double right = place[1] - floor(place[1]), wide = j ? right : 1 - right;
      if (high == 0 || wide == 0) continue; /* it may be beyond the picture */
      sum += high * wide * get(op, 0, (int)floor(place[0]) + i, (int)floor(place[1]) + j, c);
    }
  }
  return sum;
}

static double pad(Op* op, int y, int x, int c) { /* p: before rows, columns, channels; value */
  const Tensor* t = op->sources[0].tensor;
  y -= (int)op->p[0];
  x -= (int)op->p[1];
  c -= (int)op->p[2];
  if (y >= 0 && y < rows(t) && x >= 0 && x < columns(t) && c >= 0 && c < depth(t))
    return get(op, 0, y, x, c);
  return op->p[3] >= 0 ? get_flat(op, (int)op->p[3], 0) : op->p[4];
}

static double join(Op* op, int y, int x, int c) { /* p: 0 for rows, 1 for columns, 2 for channels */
  int spot[3], at, axis = (int)op->p[0];
  spot[0] = y;
  spot[1] = x;
  spot[2] = c;
  for (at = 0; at < op->inputs_count; at++) {
    const Tensor* t = op->sources[at].tensor;
    const int size = axis == 0 ? rows(t) : axis == 1 ? columns(t) : depth(t);
    if (spot[axis] < size) return get(op, at, spot[0], spot[1], spot[2]);
    spot[axis] -= size;
  }
  fail("a result is larger than what is joined");
  return 0;
}

static double to_space(Op* op, int y, int x, int c) { /* p: side of a block, channels first */
  const int side = (int)op->p[0], place = y % side * side + x % side;
  const int from = op->p[1] != 0 ? c * side * side + place : place * depth(op->result) + c;
  return get(op, 0, y / side, x / side, from);
}

static double to_depth(Op* op, int y, int x, int c) {
  const int side = (int)op->p[0], channels = depth(op->sources[0].tensor), place = c / channels;
  return get(op, 0, y * side + place / side, x * side + place % side, c % channels);
}

static double slice(Op* op, int y, int x, int c) { /* p: the first channel, and the step */
  return get(op, 0, y, x, (int)op->p[0] + c * (int)op->p[1]);
}

static double connect(Op* op, int y, int x, int c) {
  const int count = depth(op->sources[0].tensor);
  double sum = begin_sum(op, c);
  int k;
  for (k = 0; k < count; k++)
    sum += get(op, 0, y, x, k) * get_flat(op, (int)op->p[WEIGHTS], (size_t)(c * count + k));
  return end_sum(op, sum);
}

static double softmax(Op* op, int y, int x, int c) { /* p: logarithm, factor of an integer */
  double most = -INFINITY, sum = 0;
  int k;
  for (k = 0; k < depth(op->result); k++) {
    const double v = get(op, 0, y, x, k) * op->p[1];
    most = v > most ? v : most;
  }
  for (k = 0; k < depth(op->result); k++) sum += exp(get(op, 0, y, x, k) * op->p[1] - most);
  most = get(op, 0, y, x, c) * op->p[1] - most;
  return op->p[0] != 0 ? most - log(sum) : exp(most) / sum / op->p[1];
}

static double normalize(Op* op, int y, int x, int c) {
  double sum = 0;
  int k;
  for (k = 0; k < depth(op->result); k++) sum += pow(get(op, 0, y, x, k), 2);
  return get(op, 0, y, x, c) / sqrt(sum > 1e-6 ? sum : 1e-6) / op->p[1];
}

static double respond(Op* op, int y, int x, int c) { /* LRN; p: size, alpha, beta, bias */
  const int size = (int)op->p[0];
  const int first = c - (size - 1) / 2, last = c + size / 2;
  double sum = 0;
  int k;
  for (k = first < 0 ? 0 : first; k <= last && k < depth(op->result); k++)
    sum += pow(get(op, 0, y, x, k), 2);
  return get(op, 0, y, x, c) / pow(op->p[3] + op->p[1] / size * sum, op->p[2]);
}

static double shift(Op* op, int y, int x, int c) { /* BatchNormalization; p: epsilon */
  const size_t at = (size_t)c;
  const double deviation = sqrt(get_flat(op, 4, at) + op->p[0]);
  return (get(op, 0, y, x, c) - get_flat(op, 3, at)) / deviation * get_flat(op, 1, at) +
         get_flat(op, 2, at);
}

static double quantize(Op* op, int y, int x, int c) { /* p: to numbers with a point */
  const double zero = has(op, 2) ? get_flat(op, 2, (size_t)c) : 0, scale = get_flat(op, 1, (size_t)c);
  const double v = get(op, 0, y, x, c);
  return op->p[0] != 0 ? (v - zero) * scale : rint(v / scale) + zero;
}

static double average(Op* op, int y, int x, int c) { /* over all rows and columns */
  const Tensor* t = op->sources[0].tensor;
  double sum = 0;
  (void)y, (void)x;
  for (y = 0; y < rows(t); y++)
    for (x = 0; x < columns(t); x++) sum += get(op, 0, y, x, c);
  return sum / (rows(t) * columns(t));
}

static double keep(Op* op, int y, int x, int c) { /* all elements, in another shape */
  const Piece all = all_of(op->result);
  return get_flat(op, 0, index_of(&all, depth(op->result), y, x, c));
}

/* Operators on elements. */

typedef double (*Element)(double a, double b, const double* p);

#define ELEMENT(name, what) \
  static double name##_(double a, double b, const double* p) { (void)a, (void)b, (void)p; return what; }
ELEMENT(same, a) ELEMENT(abs, fabs(a)) ELEMENT(neg, -a) ELEMENT(ceil, ceil(a))
ELEMENT(floor, floor(a)) ELEMENT(round, rint(a)) ELEMENT(sign, (a > 0) - (a < 0))
ELEMENT(exp, exp(a)) ELEMENT(log, log(a)) ELEMENT(sin, sin(a)) ELEMENT(cos, cos(a))
ELEMENT(sqrt, sqrt(a)) ELEMENT(rsqrt, 1 / sqrt(a)) ELEMENT(square, a * a)
ELEMENT(reciprocal, a != 0 ? 1 / a : 0) ELEMENT(tanh, tanh(a)) ELEMENT(erf, erf(a))
ELEMENT(sigmoid, 1 / (1 + exp(-a))) ELEMENT(softplus, log(exp(a) + 1))
ELEMENT(relu, a > 0 ? a : 0) ELEMENT(relu6, clamp(a, 0, 6)) ELEMENT(elu, a > 0 ? a : exp(a) - 1)
ELEMENT(leaky, a > 0 ? a : a * p[1]) ELEMENT(hardswish, a * clamp(a + 3, 0, 6) / 6)
ELEMENT(not, a == 0) ELEMENT(prelu, a > 0 ? a : a * b)
ELEMENT(clip, a > b ? a : b)
ELEMENT(add, a + b) ELEMENT(sub, a - b) ELEMENT(mul, a * b) ELEMENT(div, b != 0 ? a / b : 0)
ELEMENT(max, a > b ? a : b) ELEMENT(min, a < b ? a : b) ELEMENT(squareddifference, (a - b) * (a - b))
ELEMENT(floordiv, b != 0 ? floor(a / b) : 0) ELEMENT(floormod, b != 0 ? a - floor(a / b) * b : 0)
ELEMENT(equal, a == b) ELEMENT(notequal, a != b) ELEMENT(less, a < b) ELEMENT(lessequal, a <= b)
ELEMENT(greater, a > b) ELEMENT(greaterequal, a >= b)
ELEMENT(and, a != 0 && b != 0) ELEMENT(or, a != 0 || b != 0) ELEMENT(xor, (a != 0) != (b != 0))

static const struct {
  const char* name;
  Element find;
} kElements[] = {
#define ROW(name) {#name, name##_},
    ROW(same) ROW(abs) ROW(neg) ROW(ceil) ROW(floor) ROW(round) ROW(sign) ROW(exp) ROW(log)
    ROW(sin) ROW(cos) ROW(sqrt) ROW(rsqrt) ROW(square) ROW(reciprocal) ROW(tanh) ROW(erf)
    ROW(sigmoid) ROW(softplus) ROW(relu) ROW(relu6) ROW(elu) ROW(leaky) ROW(hardswish) ROW(not)
    ROW(prelu) ROW(clip) ROW(add) ROW(sub) ROW(mul) ROW(div) ROW(max) ROW(min)
    ROW(squareddifference) ROW(floordiv) ROW(floormod) ROW(equal) ROW(notequal) ROW(less)
    ROW(lessequal) ROW(greater) ROW(greaterequal) ROW(and) ROW(or) ROW(xor)
};

static double each(Op* op, int y, int x, int c) { /* p: which of them, one number, activation */
  const Element find = kElements[(int)op->p[0]].find;
  double found = get_broadcast(op, 0, y, x, c);
  int at;
  for (at = 1; at < op->inputs_count || at == 1; at++)
    found = find(found, has(op, at) ? get_broadcast(op, at, y, x, c) : 0, op->p);
  return activate(found * op->p[2], op->p[3]);
}

static double choose(Op* op, int y, int x, int c) {
  const int at = get_broadcast(op, 0, y, x, c) != 0 ? 1 : 2;
  return get_broadcast(op, at, y, x, c);
}

static const struct {
  const char* name;
  Kernel kernel;
} kKernels[] = {
    {"conv", convolve}, {"tconv", transpose}, {"pool", pool}, {"resize", resize}, {"pad", pad},
    {"join", join}, {"space", to_space}, {"depth", to_depth}, {"slice", slice},
    {"connect", connect}, {"softmax", softmax}, {"l2norm", normalize}, {"lrn", respond},
    {"batchnorm", shift}, {"quantize", quantize}, {"average", average}, {"keep", keep},
    {"each", each}, {"choose", choose},
};

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
  size_t row;
  char element[NAME];
  next_word(op->kind);
  op->inputs_count = (int)next();
  for (at = 0; at < op->inputs_count; at++) op->inputs[at] = (int)next();
  op->outputs_count = (int)next();
  for (at = 0; at < op->outputs_count; at++) op->outputs[at] = (int)next();
  count = (int)next();
  for (at = 0; at < count; at++)
    if (fscanf(words, "%lf", &op->p[at]) != 1) fail("a parameter is missing");
  for (row = 0; row < sizeof kKernels / sizeof *kKernels; row++)
    if (!strcmp(kKernels[row].name, op->kind)) op->kernel = kKernels[row].kernel;
  if (!op->kernel) fail("there is no kernel %s", op->kind);
  if (op->kernel != each) return;
  next_word(element);
  op->p[0] = -1;
  for (row = 0; row < sizeof kElements / sizeof *kElements; row++)
    if (!strcmp(kElements[row].name, element)) op->p[0] = (double)row;
  if (op->p[0] < 0) fail("there is no operator %s on elements", element);
}

static void read_network(FILE* data) {
  int at;
  next_word(net.name);
  net.is_nchw = (int)next();
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
static void write_part(const Tensor* t, uint64_t offset, const Piece* part, const unsigned char* from) {
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
        for (byte = 0; byte < width; byte++)
          tags[offset + at + byte] = tag_of(t, element + byte);
      }
}

static int overlaps(int first, int last, int begin, int end) { return first < end && begin < last; }

/* Whether a part of a result has a row of an input: of pictures that are joined, not all do. */
static int is_needed(const Op* op, int input, const Piece* made) {
  const int axis = (int)op->p[0];
  int offset = 0, at, size;
  if (op->kernel != join || axis == 2) return 1;
  for (at = 0; at < input; at++) {
    const Tensor* t = op->sources[at].tensor;
    offset += axis ? columns(t) : rows(t);
  }
  size = axis ? columns(op->sources[input].tensor) : rows(op->sources[input].tensor);
  if (axis) return overlaps(made->left, made->right, offset, offset + size);
  return overlaps(made->top, made->bottom, offset, offset + size);
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
    if (step->planes != (net.is_nchw ? (unsigned)depth(op->result) : 1u)) fail("other planes");
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
      for (x = from->left > to->left ? from->left : to->left; x < from->right && x < to->right; x++) {
        const size_t high[2] = {(size_t)(from->bottom - from->top), (size_t)(to->bottom - to->top)};
        const size_t wide[2] = {(size_t)(from->right - from->left), (size_t)(to->right - to->left)};
        const size_t a = from->offset + ((plane * high[0] + (size_t)(y - from->top)) * wide[0] +
                                         (size_t)(x - from->left)) * width;
        const size_t b = to->offset + ((plane * high[1] + (size_t)(y - to->top)) * wide[1] +
                                       (size_t)(x - to->left)) * width;
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
