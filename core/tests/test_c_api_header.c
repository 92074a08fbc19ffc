/* Compiled as strict C99: that it compiles is half of the test. */
#include "memplan/c_api.h"

int c99_round_trip(void);

/* The least peak of two buffers of 4 and 8 bytes that live at once, or -1. */
int c99_round_trip(void) {
  const int64_t start[] = {0, 1};
  const int64_t end[] = {2, 3};
  const int64_t size[] = {4, 8};
  int64_t peak = -1;
  memplan_plan* plan;
  memplan_problem* problem = memplan_problem_create(2, start, end, size, NULL, 0);
  if (problem == NULL) return -1;
  plan = memplan_solve(problem, NULL, NULL, 0);
  if (plan != NULL && memplan_plan_status(plan) == MEMPLAN_OPTIMAL) peak = memplan_plan_peak(plan);
  memplan_plan_free(plan);
  memplan_problem_free(problem);
  return (int)peak;
}
