// The options of solvers. Each is written once, so that no second description can drift.
//
// A header with options has them as a table, a macro with one row
//
//     OPTION(type, name, default, sentence)
//
// for each option. The fields of the struct are made of the table, and so is what options_of() of
// solve.h returns, from which the Python module, the command line and the tests of the documents
// read.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace memplan {

using Names = std::vector<std::string>;

// An option of a solver, as data. Solvers outside of the core have options of `More` types.
template <typename... More>
struct OptionOf {
  const char* name;
  const char* says;  // what it does, or what it does when it is on
  std::variant<bool*, std::string*, Names*, More*...> value;  // in the options of a call
};

using Option = OptionOf<>;

}  // namespace memplan

// The field of a row.
#define MEMPLAN_FIELD(type, name, preset, says) type name = preset;
