// The tables of the program minimalloc, read and written as it does.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "memplan/minimalloc_compat.h"

namespace minimalloc {
inline namespace memplan_compat {

namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kHint, kGaps, kPin, kColumns };
constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

struct Name {
  std::string_view name;
  Column column;
};
constexpr std::array<Name, 13> kNames = {{{"id", kId},
                                          {"buffer", kId},
                                          {"buffer_id", kId},
                                          {"lower", kLower},
                                          {"start", kLower},
                                          {"begin", kLower},
                                          {"upper", kUpper},
                                          {"end", kUpper},
                                          {"size", kSize},
                                          {"alignment", kAlignment},
                                          {"hint", kHint},
                                          {"gaps", kGaps},
                                          {"offset", kPin}}};

// Where each column is, and what is added to ends, which are inclusive in a column "end".
struct Header {
  std::array<std::size_t, kColumns> place;
  std::size_t count = 0;
  std::int64_t added = 0;
};

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(by, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// A whole number, with spaces around it and perhaps a plus.
std::optional<std::int64_t> number(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

detail::Outcome fail(std::size_t line, const std::string& what, int code = detail::kInvalid) {
  return {code, "line " + std::to_string(line) + ": " + what};
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

detail::Outcome read_header(const std::vector<std::string_view>& fields, std::size_t line,
                            Header* header) {
  header->place.fill(kAbsent);
  header->count = fields.size();
  std::vector<std::string_view> others;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto known = std::find_if(kNames.begin(), kNames.end(),
                                    [&](const Name& each) { return each.name == fields[i]; });
    const bool twice = known != kNames.end()
                           ? header->place[known->column] != kAbsent
                           : std::count(others.begin(), others.end(), fields[i]) != 0;
    if (twice) return fail(line, "two columns mean the same as " + quoted(fields[i]));
    if (known == kNames.end()) {
      others.push_back(fields[i]);
      continue;
    }
    header->place[known->column] = i;
    if (fields[i] == "end") header->added = 1;
  }
  for (const Name& each : kNames) {
    if (each.column <= kSize && header->place[each.column] == kAbsent) {
      return fail(line, "there is no column " + quoted(each.name), detail::kNotFound);
    }
  }
  return {};
}

// "3-7" or "3-7@0:4".
bool read_gap(std::string_view text, std::int64_t added, Gap* gap) {
  const std::vector<std::string_view> parts = split(text, '@');
  const std::vector<std::string_view> times = split(parts[0], '-');
  if (times.size() != 2) return false;
  const auto lower = number(times[0]);
  const auto upper = number(times[1]);
  if (!lower || !upper || *upper > kLatest - added) return false;
  gap->lifespan = {*lower, *upper + added};
  if (parts.size() == 1) return true;
  const std::vector<std::string_view> ends = split(parts[1], ':');
  if (ends.size() != 2) return false;
  const auto bottom = number(ends[0]);
  const auto top = number(ends[1]);
  if (!bottom || !top) return false;
  gap->window = Window{*bottom, *top};
  return true;
}

detail::Outcome read_buffer(const std::vector<std::string_view>& fields, std::size_t line,
                            const Header& header, Buffer* buffer) {
  if (fields.size() != header.count) {
    return fail(line, "there are " + std::to_string(fields.size()) + " fields and " +
                          std::to_string(header.count) + " columns");
  }
  std::array<std::int64_t, kColumns> value{};
  for (const Column column : {kLower, kUpper, kSize, kAlignment, kHint, kPin}) {
    if (header.place[column] == kAbsent) continue;
    const std::string_view text = fields[header.place[column]];
    const auto found = number(text);
    if (!found) return fail(line, quoted(text) + " is not a whole number");
    value[column] = *found;
  }
  if (value[kUpper] > kLatest - header.added) {
    return fail(line, "the end is too large");
  }
  buffer->id = fields[header.place[kId]];
  buffer->lifespan = {value[kLower], value[kUpper] + header.added};
  buffer->size = value[kSize];
  if (header.place[kAlignment] != kAbsent) buffer->alignment = value[kAlignment];
  if (header.place[kHint] != kAbsent && value[kHint] >= 0) buffer->hint = value[kHint];
  if (header.place[kPin] != kAbsent) buffer->offset = value[kPin];
  if (header.place[kGaps] == kAbsent) return {};
  for (const std::string_view text : split(fields[header.place[kGaps]], ' ')) {
    if (text.empty()) continue;
    Gap gap;
    if (!read_gap(text, header.added, &gap)) {
      return fail(line, quoted(text) + " is not a gap, such as 3-7 or 3-7@0:4");
    }
    buffer->gaps.push_back(gap);
  }
  return {};
}

std::string written(const Gap& gap, std::int64_t added) {
  std::string text =
      std::to_string(gap.lifespan.lower()) + "-" + std::to_string(gap.lifespan.upper() - added);
  if (gap.window) {
    text += "@" + std::to_string(gap.window->lower()) + ":" + std::to_string(gap.window->upper());
  }
  return text;
}

template <typename Test>
bool any(const Problem& problem, Test test) {
  return std::any_of(problem.buffers.begin(), problem.buffers.end(), test);
}

}  // namespace

detail::Outcome detail::FromCsv(std::string_view text, Problem* problem) {
  Header header;
  std::size_t line = 0;
  for (std::string_view record : split(text, '\n')) {
    if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
    if (record.empty()) break;
    const std::vector<std::string_view> fields = split(record, ',');
    detail::Outcome outcome;
    if (++line == 1) {
      outcome = read_header(fields, line, &header);
    } else {
      problem->buffers.emplace_back();
      outcome = read_buffer(fields, line, header, &problem->buffers.back());
    }
    if (outcome.code != 0) return outcome;
  }
  return {};
}

std::string ToCsv(const Problem& problem, const Solution* solution, bool old_format) {
  const std::int64_t added = old_format ? 1 : 0;
  const bool alignment = any(problem, [](const Buffer& each) { return each.alignment != 1; });
  const bool hint = any(problem, [](const Buffer& each) { return each.hint.has_value(); });
  const bool gaps = any(problem, [](const Buffer& each) { return !each.gaps.empty(); });
  std::string text = old_format ? "id,start,end,size" : "id,lower,upper,size";
  if (alignment) text += ",alignment";
  if (hint) text += ",hint";
  if (gaps) text += ",gaps";
  text += solution != nullptr ? ",offset\n" : "\n";
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    text += buffer.id + "," + std::to_string(buffer.lifespan.lower()) + "," +
            std::to_string(buffer.lifespan.upper() - added) + "," + std::to_string(buffer.size);
    if (alignment) text += "," + std::to_string(buffer.alignment);
    if (hint) text += "," + std::to_string(buffer.hint.value_or(-1));
    for (std::size_t g = 0; g < buffer.gaps.size(); ++g) {
      text += (g == 0 ? "," : " ") + written(buffer.gaps[g], added);
    }
    if (gaps && buffer.gaps.empty()) text += ",";
    if (solution != nullptr) text += "," + std::to_string(solution->offsets[i]);
    text += "\n";
  }
  return text;
}

}  // namespace memplan_compat
}  // namespace minimalloc
