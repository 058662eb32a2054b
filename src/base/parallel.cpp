#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace kerntrail::base {

void parallel_for(std::size_t n, const std::function<void(std::size_t)>& work) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> thrown(n);
  const auto run = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  others.reserve(std::min(n, cores));  // nothing may throw but the start of a thread once one runs
  try {
    for (std::size_t i = 1; i < std::min(n, cores); ++i) others.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads to be had: those that are there do it all.
  }
  run();
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

}  // namespace kerntrail::base
