// The state of a repacker as numbers, to store it and to make the same repacker again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "memplan/types.h"
#include "util/failure.h"

namespace memplan::repack {

// A list of numbers that is written from variables, or read into the same variables in the same
// order, so that one function does both.
class Words {
 public:
  Words() = default;  // writes
  explicit Words(std::vector<std::int64_t> words) : words_(std::move(words)), reads_(true) {}

  bool reads() const { return reads_; }
  std::vector<std::int64_t> take() { return std::move(words_); }
  // Throws std::invalid_argument, for a state that was not written by write() of this version.
  static void require(bool condition) {
    if (!condition) fail("this is no state of a repacker of this version.");
  }
  void require_end() const { require(at_ == words_.size()); }

  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  void pass(T& value) {
    if (!reads_) {
      words_.push_back(static_cast<std::int64_t>(value));
      return;
    }
    require(at_ < words_.size());
    value = static_cast<T>(words_[at_++]);
    require(static_cast<std::int64_t>(value) == words_[at_ - 1]);
  }
  void pass(double& value) {
    std::int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    pass(bits);
    std::memcpy(&value, &bits, sizeof bits);
  }
  // Each is passed by pass_each(element).
  template <typename T, typename Pass>
  void pass_all(std::vector<T>& values, Pass pass_each) {
    std::size_t count = values.size();
    pass(count);
    if (reads_) {
      require(count <= words_.size() - at_);  // each takes a word at least
      values.resize(count);
    }
    for (T& value : values) pass_each(value);
  }
  template <typename T>
  void pass_all(std::vector<T>& values) {
    pass_all(values, [this](T& value) { pass(value); });
  }

 private:
  std::vector<std::int64_t> words_;
  std::size_t at_ = 0;
  bool reads_ = false;
};

}  // namespace memplan::repack
