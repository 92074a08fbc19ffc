// Columns of NumPy as vectors of the core, and vectors as arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace memplan::python {

template <typename T>
using Column =
    nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T>
std::vector<T> copied(const Column<T>& column) {
  return {column.data(), column.data() + column.size()};
}

template <typename T, std::size_t kDimensions>
using Array = nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<kDimensions>>;

// Passes the memory of a vector to an array, without a copy.
template <typename T, std::size_t kDimensions = 1>
Array<T, kDimensions> given(std::vector<T> cells, const std::size_t (&shape)[kDimensions]) {
  auto owned = std::make_unique<std::vector<T>>(std::move(cells));
  const T* data = owned->data();
  nanobind::capsule owner(owned.get(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  owned.release();
  return Array<T, kDimensions>(data, kDimensions, shape, owner);
}

}  // namespace memplan::python
