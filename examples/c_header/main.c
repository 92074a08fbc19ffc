/* A small network whose tensors all lie in one planned arena.
 *
 *     memplan plan network.graph.json -o network.h
 *     cc -std=c99 -O2 main.c -o main -lm && ./main
 *
 * It runs twice: in the arena, and with every tensor in memory of its own. A plan in which two
 * tensors that are needed together share a byte would give other results.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NETWORK_DEFINE_ARENA
#define NETWORK_DEFINE_TABLE
#include "network.h"

typedef struct tensors {
  float *image, *conv1, *relu1, *pool1, *conv2, *value, *gate, *gated, *sum, *flat, *scores;
  float* probabilities;
  float *conv1_workspace, *conv2_workspace;
} tensors;

/* Weights, the same on every machine: a generator in place of a file. */
static float weight(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(int)(*state >> 16 & 0x3ff) / 2048.0f - 0.25f;
}

/* A convolution of 3 x 3 over `channels` squares, from a copy with a border of zeros. */
static void conv(const float* in, float* out, float* padded, int channels, int side, int filters) {
  const int wide = side + 2;
  unsigned seed = (unsigned)filters;
  memset(padded, 0, sizeof(float) * (size_t)(channels * wide * wide));
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < side; ++y) {
      memcpy(padded + (c * wide + y + 1) * wide + 1, in + (c * side + y) * side,
             sizeof(float) * (size_t)side);
    }
  }
  memset(out, 0, sizeof(float) * (size_t)(filters * side * side));
  for (int f = 0; f < filters; ++f) {
    for (int tap = 0; tap < 9 * channels; ++tap) {
      const float w = weight(&seed);
      const float* from = padded + (tap / 9 * wide + tap % 9 / 3) * wide + tap % 3;
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) out[(f * side + y) * side + x] += w * from[y * wide + x];
      }
    }
  }
}

static void relu(const float* in, float* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = in[i] > 0 ? in[i] : 0;
}

static void max_pool(const float* in, float* out, int channels, int side) {
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < side; y += 2) {
      for (int x = 0; x < side; x += 2) {
        const float* at = in + (c * side + y) * side + x;
        *out++ = fmaxf(fmaxf(at[0], at[1]), fmaxf(at[side], at[side + 1]));
      }
    }
  }
}

static void gate(const float* value, const float* by, float* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = value[i] / (1 + expf(-by[i]));
}

static void add(const float* a, const float* b, float* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

static void dense(const float* in, float* out, int count, int rows) {
  unsigned seed = (unsigned)rows;
  for (int r = 0; r < rows; ++r) {
    out[r] = 0;
    for (int i = 0; i < count; ++i) out[r] += weight(&seed) * in[i];
  }
}

static void softmax(const float* in, float* out, int count) {
  float top = in[0], total = 0;
  for (int i = 1; i < count; ++i) top = fmaxf(top, in[i]);
  for (int i = 0; i < count; ++i) total += out[i] = expf(in[i] - top);
  for (int i = 0; i < count; ++i) out[i] /= total;
}

/* The operators of network.graph.json, in its order. Views need none. */
static void run(const tensors* t) {
  unsigned seed = 7;
  for (int i = 0; i < 256; ++i) t->image[i] = weight(&seed);
  conv(t->image, t->conv1, t->conv1_workspace, 1, 16, 8);
  relu(t->conv1, t->relu1, 2048);
  max_pool(t->relu1, t->pool1, 8, 16);
  conv(t->pool1, t->conv2, t->conv2_workspace, 8, 8, 16);
  gate(t->value, t->gate, t->gated, 512);
  add(t->gated, t->pool1, t->sum, 512);
  dense(t->flat, t->scores, 512, 10);
  softmax(t->scores, t->probabilities, 10);
}

/* Memory of its own, full of what is no number. */
static float* apart(size_t bytes) {
  float* memory = malloc(bytes);
  if (memory == NULL) exit(2);
  memset(memory, 0xff, bytes);
  return memory;
}

#define IN_ARENA(name) (float*)(void*)(network_arena + NETWORK_OFFSET_##name)
#define APART(name) apart(NETWORK_SIZE_##name)

/* Every tensor that is not a view of another one; PLACE says where it lies. */
#define PLACED(PLACE)                         \
  {.image = PLACE(image),                     \
   .conv1 = PLACE(conv1),                     \
   .relu1 = PLACE(relu1),                     \
   .pool1 = PLACE(pool1),                     \
   .conv2 = PLACE(conv2),                     \
   .gated = PLACE(gated),                     \
   .sum = PLACE(sum),                         \
   .scores = PLACE(scores),                   \
   .probabilities = PLACE(probabilities),     \
   .conv1_workspace = PLACE(conv1_workspace), \
   .conv2_workspace = PLACE(conv2_workspace)}

int main(void) {
  tensors planned = PLACED(IN_ARENA);
  planned.value = IN_ARENA(value);
  planned.gate = IN_ARENA(gate);
  planned.flat = IN_ARENA(flat);
  tensors separate = PLACED(APART);
  separate.value = separate.conv2;
  separate.gate = separate.conv2 + 512;
  separate.flat = separate.sum;

  memset(network_arena, 0xff, sizeof network_arena);
  run(&planned);
  run(&separate);

  unsigned long long bytes = 0;
  for (const network_entry* e = network_table; e->name != NULL; ++e) {
    printf("%-20s %6llu bytes at %6llu\n", e->name, (unsigned long long)e->size,
           (unsigned long long)e->offset);
    bytes += e->size;
  }
  const int same = memcmp(planned.probabilities, separate.probabilities, 10 * sizeof(float)) == 0;
  printf("arena %lu bytes for %llu; %s\n", (unsigned long)sizeof network_arena, bytes,
         same ? "the same results, bit for bit" : "DIFFERENT RESULTS");
  for (int i = 0; i < 10; ++i) printf("%s%a", i == 0 ? "" : " ", (double)planned.probabilities[i]);
  printf("\n");

  float* owned[] = {separate.image,
                    separate.conv1,
                    separate.relu1,
                    separate.pool1,
                    separate.conv2,
                    separate.gated,
                    separate.sum,
                    separate.scores,
                    separate.probabilities,
                    separate.conv1_workspace,
                    separate.conv2_workspace};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; ++i) free(owned[i]);
  return same ? 0 : 1;
}
