// Independent pieces of work on all cores.
// Must not know: what the work is.
#pragma once

#include <cstddef>
#include <functional>

namespace kerntrail::base {

// Calls work(0) ... work(n - 1), each once, on as many threads as the machine has cores, this one among them, and
// returns when all are done. Pieces must not touch each other's data. Where pieces throw, the exception of the first of
// them by number is thrown on.
void parallel_for(std::size_t n, const std::function<void(std::size_t)>& work);

}  // namespace kerntrail::base
