// What the core does when it cannot go on. Without exceptions (-fno-exceptions) the program ends
// there, so that the C API checks what it is given before it calls what may fail.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

namespace memplan {

// Throws an exception with this sentence; without exceptions, writes it and ends the program.
template <typename Exception = std::invalid_argument>
[[noreturn]] void fail(const std::string& sentence) {
#ifdef __cpp_exceptions
  throw Exception(sentence);
#else
  std::fprintf(stderr, "memplan: %s\n", sentence.c_str());
  std::abort();
#endif
}

// Runs `body`, and returns what it threw, or null.
template <typename Body>
std::exception_ptr caught(const Body& body) {
#ifdef __cpp_exceptions
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
#else
  body();
#endif
  return nullptr;
}

}  // namespace memplan
