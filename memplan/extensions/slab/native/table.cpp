#include "table.h"

#include <algorithm>
#include <utility>

namespace memplan {
namespace {

// The table is at most half full, so that searches are short.
std::size_t table_size(std::size_t entries) {
  std::size_t size = 4;
  while (size < 2 * entries) size *= 2;
  return size;
}

}  // namespace

Table::Table(std::vector<Row> rows) : rows_(std::move(rows)) {
  std::vector<std::int64_t> sizes(1);
  for (const Row& row : rows_) {
    if (row.offset == kNotPlanned) continue;
    if (row.memory >= sizes.size()) sizes.resize(row.memory + std::size_t{1});
    sizes[row.memory] = std::max(sizes[row.memory], row.offset + row.size);
  }
  begins_.assign(1, 0);
  for (const std::int64_t size : sizes) begins_.push_back(begins_.back() + size);

  std::vector<std::int64_t> cuts;
  for (Row& row : rows_) {
    if (row.offset == kNotPlanned) continue;
    row.offset += begins_[row.memory];
    cuts.push_back(row.offset);
    cuts.push_back(row.offset + row.size);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  cells_ = static_cast<std::uint32_t>(cuts.size());

  const auto none = static_cast<std::uint32_t>(rows_.size());
  mask_ = table_size(rows_.size() + 1) - 1;
  for (const By by : {kModules, kOperators}) {
    index_[by].assign(mask_ + 1, none);
    for (std::uint32_t row = 0; row < none; ++row) {
      std::size_t at = rows_[row].key[by] & mask_;
      while (index_[by][at] != none) at = (at + 1) & mask_;
      index_[by][at] = row;
    }
  }

  starts_.resize(mask_ + 1);
  const auto cell = [&](std::int64_t cut) {
    return static_cast<std::uint32_t>(std::lower_bound(cuts.begin(), cuts.end(), cut) -
                                      cuts.begin());
  };
  for (Row& row : rows_) {
    if (row.offset == kNotPlanned) continue;
    row.first = cell(row.offset);
    row.last = cell(row.offset + row.size) - 1;
    std::size_t at = first_place(row.offset);
    while (starts_[at].offset != kNotPlanned && starts_[at].offset != row.offset) {
      at = (at + 1) & mask_;
    }
    starts_[at] = {row.offset, row.first};
  }
  rows_.push_back({{0, 0}, 0, kNotPlanned, 0, 0, 0});
}

}  // namespace memplan
