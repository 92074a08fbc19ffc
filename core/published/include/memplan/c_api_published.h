/* The published searches for C: an addition to c_api.h, in the library memplan_published. */
#ifndef MEMPLAN_C_API_PUBLISHED_H_
#define MEMPLAN_C_API_PUBLISHED_H_

#include "memplan/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As memplan_solve(), by "minimalloc", "telamalloc", "somas", "csp" or "meta_csp": the options must
 * name one of them. */
memplan_plan* memplan_solve_published(const memplan_problem* problem,
                                      const memplan_options* options, char* error,
                                      size_t error_size);

#ifdef __cplusplus
}
#endif

#endif /* MEMPLAN_C_API_PUBLISHED_H_ */
