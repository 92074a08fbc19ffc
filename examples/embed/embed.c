/* The same from C, or from any language that can call it. */
#include <memplan/c_api.h>
#include <stdio.h>

int main(void) {
  const int64_t start[] = {0, 3, 0, 9, 0};
  const int64_t end[] = {3, 9, 9, 21, 21};
  const int64_t size[] = {4, 4, 4, 4, 4};
  char error[256] = "";

  memplan_problem* problem = memplan_problem_create(5, start, end, size, error, sizeof error);
  if (problem == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  memplan_problem_set_capacity(problem, 12, NULL, 0);

  memplan_options options;
  memplan_default_options(&options, sizeof options);
  options.objective = MEMPLAN_FIT;
  options.nodes = 100000;

  memplan_plan* plan = memplan_solve(problem, &options, error, sizeof error);
  if (plan == NULL) fprintf(stderr, "%s\n", error);
  const int64_t* offsets = memplan_plan_offsets(plan); /* NULL without a plan */
  const int fits = offsets != NULL;
  for (size_t i = 0; fits && i < memplan_plan_count(plan); ++i) {
    printf("buffer %zu at %lld\n", i, (long long)offsets[i]);
  }
  memplan_plan_free(plan);
  memplan_problem_free(problem);
  return fits ? 0 : 1;
}
