// Starts a verb.
#include <unistd.h>

#include <iostream>

#include "cli/verbs.h"

int main(int argc, char** argv) {
  kerntrail::cli::Streams streams{std::cout, std::cerr, isatty(STDOUT_FILENO) == 1};
  const int exit = kerntrail::cli::run_command({argv + 1, argv + (argc > 0 ? argc : 1)}, streams);
  std::cout.flush();
  return std::cout.good() ? exit : 3;
}
