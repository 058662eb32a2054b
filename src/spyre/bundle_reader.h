// A bundle's folder (or one SuperDSC file) back to the OpSpecs it was written from.
// Must not know: kernels, captures, what the numbers are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/plan.h"
#include "spyre/superdsc_reader.h"

namespace kerntrail::spyre {

inline constexpr std::size_t kMaxBundleFiles = 100'000;
inline constexpr std::size_t kMaxBundleBytes = std::size_t{512} << 20;  // of all files that a program runs
inline constexpr std::string_view kBundleProgram = "bundle.mlir";

// One SuperDSC file. What could not be read has `error` and neither of the others; what was read but cannot be an
// OpSpec has `refusal`.
struct BundleEntry {
  std::string file;  // name inside the folder
  std::string text;
  base::Json document;
  std::optional<Error> error;
  std::optional<SuperdscContent> content;
  std::optional<OpSpec> spec;
  std::optional<Error> refusal;
};

struct Bundle {
  std::string directory;             // empty for a single file
  std::string name;                  // last part of the path
  std::vector<BundleEntry> entries;  // in the order they run; without a program in the order of their numbers
  std::optional<std::string> program;        // text of bundle.mlir
  std::optional<Error> program_error;        // it is there and cannot be read as a list of files
  std::vector<std::string> unlisted;         // sdsc files of the folder that the program does not run
};

// The files that a bundle.mlir runs, in order. kSchema with the line for anything that is not the static form,
// kUnsupported for operands, loops and maps, and for names that lead out of the folder or are no sdsc file's.
Expected<std::vector<std::string>> read_bundle_program(std::string_view text);

// Whether `path` looks like a bundle: a folder with sdsc files or a bundle.mlir, or a .json file of one SuperDSC.
// Looks at names and the first kilobytes only.
bool is_bundle(const std::string& path);

// Reads everything; a file that is damaged is an entry with an error. Fails only where there is nothing to read (kIo),
// no sdsc file is in it (kSchema), or limits are exceeded (kTooLarge). `max_bytes`: of all files that are run.
Expected<Bundle> read_bundle(const std::string& path, std::size_t max_bytes = kMaxBundleBytes);
// The same from memory: `files` are names and texts.
Bundle bundle_of(std::string name, std::vector<std::pair<std::string, std::string>> files);

// How the bundle's files are written, and their OpSpecs; the first error where some entry has none.
Expected<std::vector<OpSpec>> op_specs_of(const Bundle& bundle);
EmitOptions style_of(const Bundle& bundle);

}  // namespace kerntrail::spyre
