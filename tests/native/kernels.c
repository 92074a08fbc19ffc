/* A plain kernel for every operator that has a map of rows: each returns one element of a result.

   `p` has what the operator says, in an order that stands beside the kernel. */
#include "kernels.h"

#include <math.h>
#include <string.h>

static size_t element_at(const Tensor* t, int i, int j, int k, int l) {
  return (((size_t)i * (size_t)t->shape[1] + (size_t)j) * (size_t)t->shape[2] + (size_t)k) *
             (size_t)t->shape[3] +
         (size_t)l;
}

static double activate(double v, double kind) { /* as the schema of TFLite numbers them */
  if (kind == 1) return v > 0 ? v : 0;
  if (kind == 2) return clamp(v, -1, 1);
  if (kind == 3) return clamp(v, 0, 6);
  return v;
}

/* Kernels: p holds {weights, bias, factor, activation} and then what each one says. */

enum {
  WEIGHTS,
  BIAS,
  FACTOR,
  ACTIVATION,
  STEP_Y,
  STEP_X,
  HOLE_Y,
  HOLE_X,
  PAD_Y,
  PAD_X,
  GROUPS,
  HEIGHT,
  WIDTH,
  FLAG,
  POWER
};

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
  const int high = weights->shape[is_nchw ? 2 : 1], wide = weights->shape[is_nchw ? 3 : 2];
  double sum = begin_sum(op, c);
  int i, j, k;
  for (i = 0; i < high; i++) {
    const int row = y * (int)op->p[STEP_Y] - (int)op->p[PAD_Y] + i * (int)op->p[HOLE_Y];
    if (row < 0 || row >= rows(input)) continue;
    for (j = 0; j < wide; j++) {
      const int column = x * (int)op->p[STEP_X] - (int)op->p[PAD_X] + j * (int)op->p[HOLE_X];
      if (column < 0 || column >= columns(input)) continue;
      for (k = 0; k < each; k++) {
        size_t at = is_nchw ? element_at(weights, c, k, i, j) : element_at(weights, c, i, j, k);
        if (op->p[FLAG] != 0) at = element_at(weights, 0, i, j, c); /* depthwise, in NHWC */
        sum += get(op, 0, row, column, first + k) * get_flat(op, w, at);
      }
    }
  }
  return end_sum(op, sum);
}

static double transpose(Op* op, int y, int x, int c) {
  const int w = (int)op->p[WEIGHTS], from = is_nchw ? 0 : 2;
  const Tensor *input = op->sources[from].tensor, *weights = op->sources[w].tensor;
  const int groups = (int)op->p[GROUPS], each = depth(input) / groups;
  const int made = depth(op->result) / groups, first = c / made * each;
  const int high = weights->shape[is_nchw ? 2 : 1], wide = weights->shape[is_nchw ? 3 : 2];
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
        const size_t at = is_nchw ? element_at(weights, first + k, c % made, i, j)
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
  const double zero = has(op, 2) ? get_flat(op, 2, (size_t)c) : 0,
               scale = get_flat(op, 1, (size_t)c);
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

/* clang-format off */
#define ELEMENT(name, what)                                  \
  static double name##_(double a, double b, const double* p) { \
    (void)a, (void)b, (void)p;                                 \
    return what;                                               \
  }
ELEMENT(same, a) ELEMENT(abs, fabs(a)) ELEMENT(neg, -a) ELEMENT(ceil, ceil(a))
ELEMENT(floor, floor(a)) ELEMENT(round, rint(a)) ELEMENT(sign, (a > 0) - (a < 0))
ELEMENT(exp, exp(a)) ELEMENT(log, log(a)) ELEMENT(sin, sin(a)) ELEMENT(cos, cos(a))
ELEMENT(sqrt, sqrt(a)) ELEMENT(rsqrt, 1 / sqrt(a)) ELEMENT(square, a * a)
ELEMENT(reciprocal, a != 0 ? 1 / a : 0) ELEMENT(tanh, tanh(a)) ELEMENT(erf, erf(a))
ELEMENT(sigmoid, 1 / (1 + exp(-a))) ELEMENT(softplus, log(exp(a) + 1))
ELEMENT(relu, a > 0 ? a : 0) ELEMENT(relu6, clamp(a, 0, 6)) ELEMENT(elu, a > 0 ? a : exp(a) - 1)
ELEMENT(leaky, a > 0 ? a : a * p[1]) ELEMENT(hardswish, a * clamp(a + 3, 0, 6) / 6)
ELEMENT(not, a == 0) ELEMENT(prelu, a > 0 ? a : a * b)
ELEMENT(clip, a > b ? a : b) ELEMENT(zeroslike, 0)
ELEMENT(add, a + b) ELEMENT(sub, a - b) ELEMENT(mul, a * b) ELEMENT(div, b != 0 ? a / b : 0)
ELEMENT(max, a > b ? a : b) ELEMENT(min, a < b ? a : b)
ELEMENT(squareddifference, (a - b) * (a - b))
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
    ROW(prelu) ROW(clip) ROW(zeroslike) ROW(add) ROW(sub) ROW(mul) ROW(div) ROW(max) ROW(min)
    ROW(squareddifference) ROW(floordiv) ROW(floormod) ROW(equal) ROW(notequal) ROW(less)
    ROW(lessequal) ROW(greater) ROW(greaterequal) ROW(and) ROW(or) ROW(xor)
};
/* clang-format on */

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
    {"conv", convolve}, {"tconv", transpose}, {"pool", pool},         {"resize", resize},
    {"pad", pad},       {"join", join},       {"space", to_space},    {"depth", to_depth},
    {"slice", slice},   {"connect", connect}, {"softmax", softmax},   {"l2norm", normalize},
    {"lrn", respond},   {"batchnorm", shift}, {"quantize", quantize}, {"average", average},
    {"keep", keep},     {"each", each},       {"choose", choose},
};

Kernel find_kernel(const char* name) {
  size_t row;
  for (row = 0; row < sizeof kKernels / sizeof *kKernels; row++)
    if (!strcmp(kKernels[row].name, name)) return kKernels[row].kernel;
  return NULL;
}

int find_element(const char* name) {
  size_t row;
  for (row = 0; row < sizeof kElements / sizeof *kElements; row++)
    if (!strcmp(kElements[row].name, name)) return (int)row;
  return -1;
}

static int overlaps(int first, int last, int begin, int end) { return first < end && begin < last; }

int is_needed(const Op* op, int input, const Piece* made) {
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
