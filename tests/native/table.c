/* A machine of bytes: buffers are filled when they are first used, and must be as they were when
 * they are last used. It knows nothing but the table of a header.
 *
 * plan.h      the header, with the prefix "plan"
 * MEMORY(e)   where the array of an entry begins
 * ONLY_LIST   the table is printed, and nothing is filled
 *
 * A byte tells few buffers apart, so it runs four times, with other bits of their numbers each
 * time.
 */
#include <stdio.h>
#include <string.h>

#define PLAN_DEFINE_ARENA
#define PLAN_DEFINE_TABLE
#include "plan.h"

#ifndef MEMORY
#define MEMORY(e) plan_arena
#endif
#ifdef ONLY_LIST
#define PASSES 0
#else
#define PASSES 4
#endif

static unsigned char tag(const plan_entry* e, int pass) {
  const unsigned number = (unsigned)(e - plan_table);
  return (unsigned char)(((number >> (6 * pass)) & 63u) | ((unsigned)pass << 6));
}

/* Return the first time behind another one at which a buffer begins or ends; `before` if none does.
 */
static int64_t next_time(int64_t before) {
  int64_t next = before;
  for (const plan_entry* e = plan_table; e->name != NULL; ++e) {
    if (e->first > before && (next == before || e->first < next)) next = e->first;
    if (e->last > before && (next == before || e->last < next)) next = e->last;
  }
  return next;
}

int main(void) {
  for (int pass = 0; pass < PASSES; ++pass) {
    int64_t time = INT64_MIN;
    for (int64_t next = next_time(time); next != time; next = next_time(time)) {
      time = next;
      for (const plan_entry* e = plan_table; e->name != NULL; ++e) {
        if (e->first == time && e->size != 0) {
          memset(MEMORY(e) + e->offset, tag(e, pass), (size_t)e->size);
        }
      }
      for (const plan_entry* e = plan_table; e->name != NULL; ++e) {
        for (uint64_t at = 0; e->last == time && at < e->size; ++at) {
          if (MEMORY(e)[e->offset + at] != tag(e, pass)) {
            printf("%s has lost a byte\n", e->name);
            return 1;
          }
        }
      }
    }
  }
  for (const plan_entry* e = plan_table; e->name != NULL; ++e) {
    printf("%s%c%llu %llu%c", e->name, 0, (unsigned long long)e->offset,
           (unsigned long long)e->size, 0);
  }
  return 0;
}
