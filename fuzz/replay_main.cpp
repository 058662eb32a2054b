// Runs a fuzz target over the files of its corpus, each whole and cut short: the fuzzer's finds as an ordinary test,
// with any compiler. Exit status 2: the folder is missing or empty.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kCuts = 16;  // per file

void run(const std::vector<std::uint8_t>& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  for (std::size_t i = 0; i < kCuts; ++i) {
    const std::vector<std::uint8_t> part(bytes.begin(),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * i / kCuts));
    LLVMFuzzerTestOneInput(part.data(), part.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream in(path, std::ios::binary);
      run(std::vector<std::uint8_t>(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()));
      ++files;
    }
  }
  std::printf("%zu inputs\n", files);
  return files == 0 ? 2 : 0;
}
