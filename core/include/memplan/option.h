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

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace memplan {

struct BacktrackModel;  // learning.h
class SearchPolicy;     // policy.h

using Names = std::vector<std::string>;

// An option of a solver, as data.
struct Option {
  const char* name;
  const char* says;  // what it does, or what it does when it is on
  // Where its value is, in the options of a call.
  std::variant<bool*, std::string*, Names*, std::shared_ptr<const BacktrackModel>*,
               std::shared_ptr<SearchPolicy>*>
      value;
};

}  // namespace memplan

// The field of a row.
#define MEMPLAN_FIELD(type, name, preset, says) type name = preset;
