/* A program in several memories, from its header: every operator runs with its tensors where the
 * header says, and once more with each tensor in memory of its own. It prints for each memory the
 * bytes that operators read and wrote there, and fails where a result differs.
 *
 * net.h       the header
 * program.h   OPERATORS: {result, inputs}, by number of a tensor; TENSORS: {name, bytes}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NET_DEFINE_ARENA
#define NET_DEFINE_TABLE
#include "net.h"

typedef struct tensor {
  const char* name;
  unsigned long size;
} tensor;
typedef struct step {
  int result;
  int inputs[4]; /* -1 ends them */
} step;
typedef struct range {
  unsigned char* begin;
  unsigned long size;
  unsigned long long read, written;
} range;

#include "program.h"

static unsigned char* own[sizeof tensors / sizeof *tensors];

/* Where a tensor lies at a step; copies of it come after its home in the table. */
static unsigned char* find(int number, int at) {
  unsigned char* found = NULL;
  for (const net_entry* e = net_table; e->name != NULL; ++e) {
    if (strcmp(e->name, tensors[number].name) == 0 && e->first <= at && at <= e->last) {
      found = e->memory + e->offset;
    }
  }
  if (found == NULL) exit(3);
  return found;
}

static range* memory_of(const unsigned char* place) {
  for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
    if (ranges[i].begin <= place && place < ranges[i].begin + ranges[i].size) return &ranges[i];
  }
  exit(4);
}

#ifdef LATE
/* Copies as early as they can be, or as late. Between both ends of one, others change neither its
 * source nor its place. */
static struct flight {
  unsigned char *to, *seen;
  const unsigned char* from;
} flights[NET_COPY_COUNT];

void start_copy(unsigned number, unsigned char* to, const unsigned char* from,
                unsigned long long bytes) {
  struct flight* const flight = &flights[number];
  if (flight->seen != NULL) exit(5);
  memory_of(from)->read += bytes;
  memory_of(to)->written += bytes;
  flight->to = to;
  flight->from = from;
  flight->seen = (unsigned char*)malloc(bytes);
  if (flight->seen == NULL) exit(2);
  memcpy(flight->seen, from, bytes);
  if (LATE) {
    memset(to, 0x5a, bytes);
  } else {
    memcpy(to, from, bytes);
  }
}

void wait_for(unsigned number) {
  struct flight* const flight = &flights[number];
  const unsigned long long bytes = net_copies[number].bytes;
  if (flight->seen == NULL) exit(6);
  if (memcmp(flight->from, flight->seen, bytes) != 0) exit(7);
  for (unsigned long long b = 0; b < bytes; ++b) {
    if (flight->to[b] != (LATE ? 0x5a : flight->seen[b])) exit(8);
  }
  memcpy(flight->to, flight->seen, bytes);
  free(flight->seen);
  flight->seen = NULL;
}

static void end_copies(void) {
  for (unsigned i = 0; i < NET_COPY_COUNT; ++i) {
    if (flights[i].seen != NULL) exit(9);
  }
}
#else
static void end_copies(void) {}
#endif

/* Each byte of a result depends on each byte of all inputs. */
static void run(int at, unsigned char* const* in, unsigned char* out) {
  unsigned long long hash = 1469598103934665603ull + (unsigned)at;
  for (int i = 0; i < 4 && steps[at].inputs[i] >= 0; ++i) {
    for (unsigned long b = 0; b < tensors[steps[at].inputs[i]].size; ++b) {
      hash = (hash ^ in[i][b]) * 1099511628211ull;
    }
  }
  for (unsigned long b = 0; b < tensors[steps[at].result].size; ++b) {
    hash = hash * 6364136223846793005ull + 1442695040888963407ull;
    out[b] = (unsigned char)(hash >> 56);
  }
}

int main(void) {
  for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
    memset(ranges[i].begin, 0xa5, ranges[i].size);
  }
  for (unsigned i = 0; i < sizeof tensors / sizeof *tensors; ++i) {
    own[i] = (unsigned char*)malloc(tensors[i].size);
    if (own[i] == NULL) return 2;
  }
  for (int at = 0; at < (int)(sizeof steps / sizeof *steps); ++at) {
    const step* s = &steps[at];
    unsigned char *planned[4], *apart[4];
    BEGIN(at);
    for (int i = 0; i < 4 && s->inputs[i] >= 0; ++i) {
      planned[i] = find(s->inputs[i], at);
      apart[i] = own[s->inputs[i]];
      memory_of(planned[i])->read += tensors[s->inputs[i]].size;
    }
    unsigned char* const result = find(s->result, at);
    memory_of(result)->written += tensors[s->result].size;
    run(at, planned, result);
    run(at, apart, own[s->result]);
    if (memcmp(result, own[s->result], tensors[s->result].size) != 0) {
      printf("operator %d: DIFFERENT RESULTS\n", at);
      return 1;
    }
  }
  end_copies();
  for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
    printf("%llu %llu\n", ranges[i].read, ranges[i].written);
  }
  for (unsigned i = 0; i < sizeof tensors / sizeof *tensors; ++i) free(own[i]);
  return 0;
}
