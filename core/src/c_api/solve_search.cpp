#include "c_api/door.h"
#include "solve/alone.h"

memplan_plan* memplan_solve_search(const memplan_problem* problem, const memplan_options* options,
                                   char* error, size_t error_size) {
  return memplan::c_api::solved(problem, options, error, error_size, memplan::try_search);
}
