#include "flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

namespace memplan::apps {

namespace {

constexpr const char* kSpaces = " \t\n\v\f\r";
constexpr int kDeepest = 10;  // files of flags that name each other

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::string lowered(std::string text) {
  for (char& each : text) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return text;
}

bool assign(const std::string& text, bool* value) {
  static const std::set<std::string> yes = {"1", "t", "true", "y", "yes"};
  static const std::set<std::string> no = {"0", "f", "false", "n", "no"};
  const std::string word = lowered(trimmed(text));
  *value = yes.count(word) != 0;
  return *value || no.count(word) != 0;
}

bool assign(const std::string& text, std::int64_t* value) {
  std::string word = trimmed(text);
  const bool negative = !word.empty() && word[0] == '-';
  if (negative || (!word.empty() && word[0] == '+')) word.erase(0, 1);
  int base = 10;
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
    base = 16;
    word.erase(0, 2);
  }
  if (word.empty() || word[0] == '-') return false;
  word.insert(0, negative ? "-" : "");
  const char* const end = word.data() + word.size();
  const auto result = std::from_chars(word.data(), end, *value, base);
  return result.ec == std::errc() && result.ptr == end;
}

bool assign(const std::string& text, std::string* value) {
  *value = text;
  return true;
}

// The seconds of a unit at a place of the text, which is then moved; 0 if there is none.
double unit_at(const std::string& text, std::size_t* at) {
  static const std::pair<const char*, double> units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                                                         {"s", 1},     {"m", 60},    {"h", 3600}};
  for (const auto& unit : units) {
    const std::string name = unit.first;
    if (text.compare(*at, name.size(), name) == 0) {
      *at += name.size();
      return unit.second;
    }
  }
  return 0;
}

// Digits with a point, moved over; negative if there are none.
double digits_at(const std::string& text, std::size_t* at) {
  double number = 0;
  double place = 0;  // of the next digit behind the point; 0 before it
  std::size_t digits = 0;
  for (; *at < text.size(); ++*at) {
    const char each = text[*at];
    if (each == '.' && place == 0) {
      place = 0.1;
    } else if (each < '0' || each > '9') {
      break;
    } else if (place == 0) {
      number = number * 10 + (each - '0');
      ++digits;
    } else {
      number += place * (each - '0');
      place /= 10;
      ++digits;
    }
  }
  return digits == 0 ? -1 : number;
}

bool assign(const std::string& text, Seconds* value) {
  std::size_t at = 0;
  double sign = 1;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    sign = text[0] == '-' ? -1 : 1;
    at = 1;
  }
  const std::string rest = text.substr(at);
  value->count = 0;
  if (rest == "0") return true;
  if (rest == "inf") {
    value->count = sign * std::numeric_limits<double>::infinity();
    return true;
  }
  double sum = 0;
  if (rest.empty()) return false;
  while (at < text.size()) {
    const double number = digits_at(text, &at);
    const double unit = number < 0 ? 0 : unit_at(text, &at);
    if (unit == 0) return false;
    sum += number * unit;
  }
  value->count = sign * sum;
  return true;
}

class Parser {
 public:
  explicit Parser(const std::vector<Flag>& flags) : flags_(flags) {}

  void read(const std::vector<std::string>& words, int depth = 0) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == "--") return;
      if (word.size() < 2 || word[0] != '-') continue;
      const std::size_t equals = word.find('=');
      std::string name = word.substr(word[1] == '-' ? 2 : 1, equals - (word[1] == '-' ? 2 : 1));
      std::replace(name.begin(), name.end(), '-', '_');
      const bool given = equals != std::string::npos;
      std::string value = given ? word.substr(equals + 1) : "";
      if (const Flag* flag = find(name); flag == nullptr) {
        const bool own = name == "undefok" || name == "flagfile";
        if (own && !given && i + 1 < words.size()) value = words[++i];
        if (own) {
          read_own(name, value, depth);
        } else {
          read_negative(name, given);
        }
      } else if (!given && std::holds_alternative<bool*>(flag->value)) {
        *std::get<bool*>(flag->value) = true;
      } else if (!given && i + 1 == words.size()) {
        faults_.push_back("Missing the value for the flag '" + name + "'");
      } else {
        set(*flag, given ? value : words[++i]);
      }
    }
  }

  std::vector<std::string> faults() const {
    std::vector<std::string> all;
    for (const std::string& name : unknown_) {
      if (allowed_.count(name) == 0 &&
          allowed_.count(name.substr(0, 2) == "no" ? name.substr(2) : name) == 0) {
        all.push_back("Unknown command line flag '" + name + "'");
      }
    }
    all.insert(all.end(), faults_.begin(), faults_.end());
    return all;
  }

 private:
  const Flag* find(const std::string& name) const {
    for (const Flag& flag : flags_) {
      if (name == flag.name) return &flag;
    }
    return nullptr;
  }

  void set(const Flag& flag, const std::string& text) {
    const bool fine = std::visit([&](auto* value) { return assign(text, value); }, flag.value);
    if (!fine) {
      faults_.push_back("Illegal value '" + text + "' specified for flag '" + flag.name + "'");
    }
  }

  // "--noname" and, with dashes, "--no-name".
  void read_negative(const std::string& name, bool given) {
    const Flag* flag = nullptr;
    if (name.substr(0, 2) == "no") {
      flag = find(name.substr(2));
      if (flag == nullptr && name.size() > 2 && name[2] == '_') flag = find(name.substr(3));
    }
    if (flag == nullptr) {
      unknown_.push_back(name);
    } else if (!std::holds_alternative<bool*>(flag->value)) {
      faults_.push_back(std::string("Negative form is not valid for the flag '") + flag->name +
                        "'");
    } else if (given) {
      faults_.push_back(std::string("Negative form of the flag '") + flag->name +
                        "' takes no value");
    } else {
      *std::get<bool*>(flag->value) = false;
    }
  }

  void read_own(const std::string& name, const std::string& value, int depth) {
    std::istringstream items(value);
    for (std::string item; std::getline(items, item, ',');) {
      if (name == "undefok") {
        allowed_.insert(item);
        continue;
      }
      std::ifstream file(item);
      if (!file || depth == kDeepest) {
        faults_.push_back("The file of flags '" + item + "' cannot be read");
        continue;
      }
      std::vector<std::string> words;
      for (std::string line; std::getline(file, line);) {
        line = trimmed(line);
        if (!line.empty() && line[0] == '-') words.push_back(line);
      }
      read(words, depth + 1);
    }
  }

  const std::vector<Flag>& flags_;
  std::vector<std::string> unknown_;
  std::set<std::string> allowed_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> parse(const std::vector<std::string>& words,
                               const std::vector<Flag>& flags) {
  Parser parser(flags);
  parser.read(words);
  return parser.faults();
}

}  // namespace memplan::apps
