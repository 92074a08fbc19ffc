/* What the page calls in the core: one problem in columns of doubles, which are whole numbers up to
 * 2^53, and its plan in the same memory. A compiler for WebAssembly makes a module of it. */
#include <stdlib.h>

#include "memplan.h"

static char error[512];

static int64_t* convert(size_t count, const double* column) {
  int64_t* made = malloc(8 * count + 8);
  for (size_t at = 0; made != NULL && at < count; ++at) made[at] = (int64_t)column[at];
  return made;
}

/* Why solve() returned -1. */
const char* why(void) { return error; }

/* `rows` has six columns of `count` numbers: start, end, size, alignment, pin, hint. `gap` has five
 * of `gaps`: buffer, start, end, lower, upper. Offsets, peak and bound go to `out`. Returns the
 * status, or -1. */
int solve(int count, const double* rows, int gaps, const double* gap, double seconds, double* out) {
  const size_t n = (size_t)count, m = (size_t)gaps;
  int64_t *c = convert(6 * n, rows), *g = convert(5 * m, gap);
  int32_t* buffer = malloc(4 * m + 4);
  memplan_problem* problem = NULL;
  memplan_plan* plan = NULL;
  int status = -1;
  error[0] = 0;
  if (c != NULL && g != NULL && buffer != NULL) {
    problem = memplan_problem_create(n, c, c + n, c + 2 * n, error, sizeof error);
  }
  if (problem != NULL) {
    memplan_options options;
    memplan_default_options(&options, sizeof options);
    options.seconds = seconds;
    for (size_t at = 0; at < m; ++at) buffer[at] = (int32_t)g[at];
    if (memplan_problem_set_alignment(problem, c + 3 * n, error, sizeof error) &&
        memplan_problem_set_pins(problem, c + 4 * n, error, sizeof error) &&
        memplan_problem_set_hints(problem, c + 5 * n, error, sizeof error) &&
        memplan_problem_set_gaps(problem, m, buffer, g + m, g + 2 * m, g + 3 * m, g + 4 * m, error,
                                 sizeof error)) {
      plan = memplan_solve(problem, &options, error, sizeof error);
    }
  }
  if (plan != NULL) {
    const int64_t* offsets = memplan_plan_offsets(plan);
    status = memplan_plan_status(plan);
    for (size_t at = 0; offsets != NULL && at < n; ++at) out[at] = (double)offsets[at];
    out[n] = (double)memplan_plan_peak(plan);
    out[n + 1] = (double)memplan_plan_lower_bound(plan);
  }
  memplan_plan_free(plan);
  memplan_problem_free(problem);
  free(c);
  free(g);
  free(buffer);
  return status;
}
