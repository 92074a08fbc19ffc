#include "policy.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "columns.h"

namespace memplan::python {

namespace {

using Numbers = Array<std::int64_t, 1>;

// An array with `value` of each row.
template <typename Row, typename Value>
Numbers column_of(const std::vector<Row>& rows, const Value& value) {
  std::vector<std::int64_t> cells;
  cells.reserve(rows.size());
  for (const Row& row : rows) cells.push_back(value(row));
  return given<std::int64_t>(std::move(cells), {rows.size()});
}

template <typename Row>
Numbers column_of(const std::vector<Row>& rows) {
  return column_of(rows, [](Row row) -> std::int64_t { return row; });
}

class PythonPolicy : public SearchPolicy {
 public:
  PythonPolicy(nb::object choose, nb::object go_back)
      : choose_(std::move(choose)), go_back_(std::move(go_back)) {}

  void meet(Caller* caller) { caller_ = caller; }

  Choice choose(const SearchState& now) override {
    Choice choice;
    caller_->call([&] {
      const nb::object answer = ask(choose_, now);
      if (answer.is_none()) return;
      const auto [row, offset] = nb::cast<std::pair<BufferIdx, std::optional<Bytes>>>(answer);
      choice = {row, offset.value_or(kNoOffset)};
    });
    return choice;
  }
  std::int32_t go_back(const SearchState& now) override {
    std::int32_t level = kByRule;
    caller_->call([&] {
      const nb::object answer = ask(go_back_, now);
      if (!answer.is_none()) level = nb::cast<std::int32_t>(answer);
    });
    return level;
  }

 private:
  static nb::object ask(const nb::object& function, const SearchState& now) {
    const auto& [capacity, path, candidates, failed, culprits] = now;
    return function(capacity, column_of(path, [](const Placement& p) { return p.buffer; }),
                    column_of(path, [](const Placement& p) { return p.offset; }),
                    column_of(candidates, [](const ValidRange& r) { return r.buffer; }),
                    column_of(candidates, [](const ValidRange& r) { return r.lower; }),
                    column_of(candidates, [](const ValidRange& r) { return r.upper; }),
                    column_of(failed), column_of(culprits));
  }

  Caller* caller_ = nullptr;
  nb::object choose_;
  nb::object go_back_;
};

}  // namespace

Policy make_policy(nb::object choose, nb::object go_back) {
  auto policy = std::make_shared<PythonPolicy>(std::move(choose), std::move(go_back));
  return {policy, [policy](Caller* caller) { policy->meet(caller); }};
}

}  // namespace memplan::python
