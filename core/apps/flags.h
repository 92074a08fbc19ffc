// Flags of a program, in all the forms that abseil's library for flags takes.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace memplan::apps {

// Seconds; the text is as "1h2m3.5s", "100ms", "0" or "inf".
struct Seconds {
  double count = 0;
};

struct Flag {
  const char* name;
  const char* says;
  std::variant<bool*, std::int64_t*, std::string*, Seconds*> value;
};

// Sets flags from the words behind the name of the program: "--name=value", "--name value",
// "-name", for a truth also "--name" and "--noname"; "-" may stand for "_". Words behind "--", and
// words without a dash, are left alone. "--undefok=a,b" allows unknown names, and "--flagfile=FILE"
// reads flags of a file. Returns what is wrong, a line each.
std::vector<std::string> parse(const std::vector<std::string>& words,
                               const std::vector<Flag>& flags);

}  // namespace memplan::apps
