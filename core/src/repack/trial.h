// Whether a way of repacking is worth trying, learned from how often it failed.
#pragma once

#include <algorithm>

#include "repack/words.h"

namespace memplan::repack {

// Learns whether something is worth trying: after so many failures in a row it pauses, longer and
// longer up to kLongestPause calls.
class Trial {
 public:
  explicit Trial(int patience) : patience_(patience) {}

  // To be asked once for each call.
  bool due() {
    if (waits_ == 0) return true;
    --waits_;
    return false;
  }
  bool pauses() const { return waits_ > 0; }
  void end(bool success) {
    failures_ = success ? 0 : failures_ + 1;
    pause_ = failures_ < patience_ ? 0 : std::min(2 * pause_ + 1, kLongestPause);
    waits_ = pause_;
  }
  void pass(Words& words) {
    for (int* each : {&failures_, &pause_, &waits_}) {
      words.pass(*each);
      Words::require(*each >= 0);
    }
  }

 private:
  static constexpr int kLongestPause = 15;

  int patience_;
  int failures_ = 0;
  int pause_ = 0;  // between two trials, in calls
  int waits_ = 0;  // calls that are left of it
};

}  // namespace memplan::repack
