/* The door of solve.h for C, and for every language that can call C.
 *
 *     memplan_problem* problem = memplan_problem_create(n, start, end, size, error, sizeof error);
 *     memplan_options options;
 *     memplan_default_options(&options, sizeof options);
 *     memplan_plan* plan = memplan_solve(problem, &options, error, sizeof error);
 *     if (plan != NULL && memplan_plan_offsets(plan) != NULL) ...
 *     memplan_plan_free(plan);
 *     memplan_problem_free(problem);
 *
 * No exception leaves a function. What can fail takes `error`, a buffer of `error_size` bytes for
 * one sentence (cut to fit, always ended by a NUL; NULL and 0 if the sentence is not wanted), and
 * says so by returning NULL or 0. A NULL pointer where none is allowed is such a failure, and so is
 * every value out of range: bytes are from 0 to 2^62, times from -2^62 to 2^62. What is behind a
 * pointer cannot be checked: a column is as long as it is said to be. Functions of the caller's
 * return: they neither throw nor jump. A problem may be solved by several threads at once, as long
 * as none changes it. A library that was compiled without exceptions is the same, but ends the
 * program when memory runs out.
 */
#ifndef MEMPLAN_C_API_H_
#define MEMPLAN_C_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stands for "not pinned", "no hint" and "no capacity". */
#define MEMPLAN_NONE ((int64_t)-1)

typedef struct memplan_problem memplan_problem;
typedef struct memplan_plan memplan_plan;

/* Numbers of a fixed size, and not enums, whose size is the compiler's choice. */
typedef int32_t memplan_status;
enum {
  MEMPLAN_OPTIMAL = 0,    /* the peak is proved to be the least: it equals the lower bound */
  MEMPLAN_FEASIBLE = 1,   /* a plan, not proved to be the best */
  MEMPLAN_INFEASIBLE = 2, /* proved: there is no plan within the capacity */
  MEMPLAN_UNKNOWN = 3,    /* the budget ran out without a plan */
  MEMPLAN_FITS = 4        /* a plan within the capacity; MEMPLAN_FIT asked for no smaller peak */
};

typedef int32_t memplan_objective;
enum {
  MEMPLAN_FIT = 0,     /* stop at the first plan within the capacity */
  MEMPLAN_MIN_PEAK = 1 /* find the smallest peak (within the capacity, if there is one) */
};

/* What is known while a solver is at work. Fields are only ever added at the end. */
typedef struct memplan_progress {
  double seconds;      /* since the start */
  int32_t has_plan;    /* 0: peak means nothing yet */
  int64_t peak;        /* of the best plan */
  int64_t lower_bound; /* no plan has a smaller peak */
  const char* phase;   /* what is at work: "greedy", "exact", ...; valid during the call */
  int64_t nodes;       /* so far */
} memplan_progress;

/* Fields are only ever added at the end; `struct_size` says how many of them the caller knows. A
 * library that knows fewer refuses options in which one of the others is set, which is: not 0. */
typedef struct memplan_options {
  size_t struct_size;          /* set by memplan_default_options() */
  const char* solver;          /* "auto", or one of those that memplan::solvers() has (solve.h):
                                  "greedy", "exact", "prover" or "large" */
  memplan_objective objective; /* MEMPLAN_MIN_PEAK */
  double seconds;              /* negative: no limit */
  int64_t nodes;               /* negative: no limit */
  int32_t threads;             /* 1; changes the time, and the answer only where seconds end it */
  uint64_t seed;               /* 0 */
  int (*interrupt)(void* user_data); /* NULL, or asked every 20 ms: other than 0 stops */
  void* user_data;                   /* handed to it, and to progress() */
  /* NULL, or called when the best plan or the bound has changed and about twice a second, by the
   * thread that solves. */
  void (*progress)(const memplan_progress* known, void* user_data);
} memplan_options;

/* `options_size` is sizeof(memplan_options) as the caller was compiled with. NULL does nothing. */
void memplan_default_options(memplan_options* options, size_t options_size);

/* Buffer i holds size[i] bytes during [start[i], end[i]). The columns are copied. */
memplan_problem* memplan_problem_create(size_t count, const int64_t* start, const int64_t* end,
                                        const int64_t* size, char* error, size_t error_size);
void memplan_problem_free(memplan_problem* problem); /* NULL is fine */

/* Each of these replaces what was set before, and copies. A column has a value for every buffer;
 * NULL removes it, and a count of 0 removes a list. They return 1, or 0 and one sentence; in that
 * case what was set before stays. Values are checked by memplan_solve() and
 * memplan_problem_check(), when all of them are known. */
int memplan_problem_set_alignment(memplan_problem* problem, const int64_t* alignment, char* error,
                                  size_t error_size);
int memplan_problem_set_pins(memplan_problem* problem, const int64_t* pin, char* error,
                             size_t error_size);
int memplan_problem_set_hints(memplan_problem* problem, const int64_t* hint, char* error,
                              size_t error_size);
/* In gap i, buffer[i] holds only [lower[i], upper[i]) of itself; nothing if they are equal. Sorted
 * by buffer and start, disjoint for each buffer. lower and upper may both be NULL. */
int memplan_problem_set_gaps(memplan_problem* problem, size_t count, const int32_t* buffer,
                             const int64_t* start, const int64_t* end, const int64_t* lower,
                             const int64_t* upper, char* error, size_t error_size);
/* Addresses [lower[i], upper[i]) that no buffer may touch; sorted and disjoint. */
int memplan_problem_set_reserved(memplan_problem* problem, size_t count, const int64_t* lower,
                                 const int64_t* upper, char* error, size_t error_size);
/* The buffers first[i] and second[i] may not share an address, whatever their lifetimes. The pairs
 * and their two buffers may be in any order. The numbers of buffers are checked at once. */
int memplan_problem_set_conflicts(memplan_problem* problem, size_t count, const int32_t* first,
                                  const int32_t* second, char* error, size_t error_size);
/* Buffers of one group lie one behind the other: offset - lead is the same for all of them. A group
 * is any number from 0, and MEMPLAN_NONE is none; the lead of a buffer in none is not read. Give
 * both columns, or NULL for both. */
int memplan_problem_set_groups(memplan_problem* problem, const int32_t* group, const int64_t* lead,
                               char* error, size_t error_size);
/* At least 1, or MEMPLAN_NONE. */
int memplan_problem_set_capacity(memplan_problem* problem, int64_t capacity, char* error,
                                 size_t error_size);

/* 1 if the problem is well formed; otherwise 0 and one sentence. */
int memplan_problem_check(const memplan_problem* problem, char* error, size_t error_size);

/* `options` may be NULL for the default ones. NULL if the problem is not well formed, if the
 * options are wrong or for lack of memory; a problem without a plan is no error but a status. */
memplan_plan* memplan_solve(const memplan_problem* problem, const memplan_options* options,
                            char* error, size_t error_size);
/* The same by one solver, whatever options->solver says. A program that calls one of these, and not
 * memplan_solve(), is linked with that solver alone (docs/embedding.md has the sizes). */
/* Tries many orders, with first and best fit; optimal only where the plan meets the bound. */
memplan_plan* memplan_solve_greedy(const memplan_problem* problem, const memplan_options* options,
                                   char* error, size_t error_size);
/* First fit, then the exact search: with enough nodes, the optimum or a proof that there is none.
 * NULL for a problem with gaps, conflicts or groups. */
memplan_plan* memplan_solve_search(const memplan_problem* problem, const memplan_options* options,
                                   char* error, size_t error_size);
/* As memplan_solve(), and writes down why no plan is better, or why there is none: the text of
 * docs/proofs.md from its third line on, handed to write() piece by piece, which returns 0 if it
 * cannot take any more. The first two lines are the caller's: "memplan-proof 1", and "problem "
 * with the fingerprint that memplan has of the problem. It has a
 * budget of its own, as large as that of the search (of conflicts, at least 20 000). The solver is
 * "auto", "exact" or "prover"; NULL for a problem with windows, conflicts or groups. */
memplan_plan* memplan_solve_with_proof(const memplan_problem* problem,
                                       const memplan_options* options,
                                       int (*write)(const char* text, size_t length,
                                                    void* user_data),
                                       void* user_data, char* error, size_t error_size);
void memplan_plan_free(memplan_plan* plan); /* NULL is fine */

/* Pointers are valid until the plan is freed. NULL for a plan has the status MEMPLAN_UNKNOWN, no
 * offsets, zeros and empty words. */
memplan_status memplan_plan_status(const memplan_plan* plan);
size_t memplan_plan_count(const memplan_plan* plan);           /* buffers; 0 without a plan */
const int64_t* memplan_plan_offsets(const memplan_plan* plan); /* or NULL without a plan */
int64_t memplan_plan_peak(const memplan_plan* plan);           /* 0 without a plan */
int64_t memplan_plan_lower_bound(const memplan_plan* plan);    /* no plan has a smaller peak */
size_t memplan_plan_conflict_count(const memplan_plan* plan);
const int32_t* memplan_plan_conflict(const memplan_plan* plan); /* cannot be placed together */
int64_t memplan_plan_nodes(const memplan_plan* plan);           /* search nodes, or placements */
const char* memplan_plan_solver(const memplan_plan* plan);      /* the one that answered */
const char* memplan_plan_note(const memplan_plan* plan);        /* what decided the answer */
int memplan_plan_interrupted(const memplan_plan* plan);         /* interrupt() said stop */
int memplan_plan_proof_complete(const memplan_plan* plan);      /* write() has all of a proof */

/* Operators, in an order that is legal, and the storages that they touch; order.h says what each
 * column means. A column of no rows may be NULL, and so may workspace, given and wanted: all 0. */
typedef struct memplan_program {
  size_t operators;
  const int64_t* workspace; /* by operator: bytes that only it needs */
  size_t arcs;
  const int32_t* arc_from; /* the lower number */
  const int32_t* arc_to;
  size_t storages;
  const int64_t* size;       /* by storage, in bytes */
  const uint8_t* given;      /* by storage: 1 if it is there before the first operator */
  const uint8_t* wanted;     /* by storage: 1 if it is needed after the last operator */
  const int64_t* user_begin; /* storages + 1 rows: user[user_begin[s]] .. touch storage s */
  const int32_t* user;       /* ascending, each once */
  size_t pairs;              /* operator pair_op[i] may write pair_output[i] over pair_input[i] */
  const int32_t* pair_op;
  const int32_t* pair_input;
  const int32_t* pair_output;
} memplan_program;

typedef struct memplan_order memplan_order;

/* The order of operators with the least load, found in one thread and without random numbers. Of
 * the options, only time, nodes (states of the search) and interrupt() mean something here. NULL if
 * a column is wrong, or for lack of memory. */
memplan_order* memplan_best_order(const memplan_program* program, const memplan_options* options,
                                  char* error, size_t error_size);
void memplan_order_free(memplan_order* order); /* NULL is fine */

/* Pointers are valid until the order is freed. NULL for an order has the status MEMPLAN_UNKNOWN,
 * no operators and zeros. */
memplan_status memplan_order_status(const memplan_order* order);
size_t memplan_order_count(const memplan_order* order);
const int32_t* memplan_order_operators(const memplan_order* order); /* in the order they run */
int64_t memplan_order_peak(const memplan_order* order);
int64_t memplan_order_lower_bound(const memplan_order* order); /* no order has a smaller peak */
int memplan_order_interrupted(const memplan_order* order);     /* interrupt() said stop */

/* "optimal", ...; "unknown" for what is no status. */
const char* memplan_status_name(memplan_status status);

#ifdef __cplusplus
}
#endif

#endif /* MEMPLAN_C_API_H_ */
