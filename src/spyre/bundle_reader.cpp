// Bundles: files in, OpSpecs out. Buffers get names from the places they lie in.
#include "spyre/bundle_reader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/files.h"
#include "base/strings.h"
#include "spyre/bundle.h"
#include "spyre/checked.h"
#include "spyre/index_expr.h"
#include "spyre/layout.h"

namespace kerntrail::spyre {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxProgramBytes = std::size_t{16} << 20;
constexpr std::size_t kPeekBytes = 4096;
constexpr std::string_view kPrefix = "sdsc_";
constexpr std::string_view kSuffix = ".json";

bool is_sdsc_name(std::string_view name) {
  return name.starts_with(kPrefix) && name.ends_with(kSuffix) && name.size() > kPrefix.size() + kSuffix.size() &&
         name.find_first_of("/\\\"") == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

// sdsc_2 before sdsc_10.
std::pair<std::uint64_t, std::string> in_order(const std::string& name) {
  std::uint64_t number = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  return {number, name};
}

// --- bundle.mlir ----------------------------------------------------------------------------------------------------

constexpr std::string_view kOpen = "\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"";
constexpr std::string_view kClose = "\"}";

class ProgramReader {
 public:
  explicit ProgramReader(std::string_view text) : text_(text) {}

  Expected<std::vector<std::string>> run() {
    KERNTRAIL_CHECK(expect("module {"));
    KERNTRAIL_CHECK(expect("\tfunc.func @sdsc_bundle() {"));
    std::vector<std::string> files;
    std::string_view line;
    while ((line = next_line()) != "\t\treturn") {
      if (line.empty() && text_.empty())
        return fail(ErrorCode::kTorn, "the program ends before its return", "", number_);
      if (!line.starts_with(kOpen) || !line.ends_with(kClose)) return refuse(line);
      const std::string_view name = line.substr(kOpen.size(), line.size() - kOpen.size() - kClose.size());
      if (!is_sdsc_name(name))
        return fail(ErrorCode::kUnsupported, fmt::format("\"{}\" is no name of a file beside the program", name), "",
                    number_);
      if (files.size() == kMaxBundleFiles) return fail(ErrorCode::kTooLarge, "it runs too many files", "", number_);
      files.emplace_back(name);
    }
    KERNTRAIL_CHECK(expect("\t}"));
    KERNTRAIL_CHECK(expect("}"));
    if (!text_.empty()) return fail(ErrorCode::kSchema, "there is text after the module", "", number_ + 1);
    return files;
  }

 private:
  std::string_view next_line() {
    const std::size_t end = text_.find('\n');
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    ++number_;
    return line;
  }
  Expected<void> expect(std::string_view wanted) {
    const std::string_view line = next_line();
    if (line == wanted) return {};
    return refuse(line);
  }
  tl::unexpected<Error> refuse(std::string_view line) const {
    for (const std::string_view later : {"affine", "scf.", "arith.", "input_arg", "symbol_ids", "device_mem"}) {
      if (line.find(later) == std::string_view::npos) continue;
      return fail(ErrorCode::kUnsupported, fmt::format("'{}' belongs to programs with operands or loops", later), "",
                  number_);
    }
    return fail(ErrorCode::kSchema, "the line is none of a static program's", "", number_);
  }

  std::string_view text_;
  std::uint64_t number_ = 0;
};

// --- Buffers --------------------------------------------------------------------------------------------------------

using Place = std::tuple<Memory, std::int64_t, std::vector<std::int64_t>, DType>;

Place place_of(const TensorArg& arg) { return {arg.memory, arg.base, arg.layout.device_size, arg.dtype}; }

bool is_partial(const SdscTensor& tensor) {
  return std::any_of(tensor.order.begin(), tensor.order.end(), [](const SdscTensorDim& e) { return e.gap != 0; });
}

// A view begins inside a larger tensor of the same extents: the base goes to the tensor's own, the rest into the
// coordinates. Says whether it fits.
bool move_base(TensorArg& arg, const std::vector<IterDim>& loops, std::int64_t base) {
  const auto bytes = static_cast<std::int64_t>(device_element_size(arg.dtype));
  std::int64_t rest = (arg.base - base) / bytes;
  std::vector<std::int64_t> digits(arg.layout.device_size.size(), 0);
  for (std::size_t k = digits.size(); k-- > 0;) {
    digits[k] = rest % arg.layout.device_size[k];
    rest /= arg.layout.device_size[k];
  }
  if (rest != 0 || digits.back() != 0) return false;
  std::int64_t host = 0;
  for (std::size_t k = 0; k + 1 < digits.size(); ++k) {
    if (digits[k] == 0) continue;
    std::int64_t iterated = 1;
    for (const IterDim& loop : loops) {
      if (arg.device_coordinates[k] == loop.symbol) iterated = loop.extent;
      if (arg.device_coordinates[k].starts_with("floor(" + loop.symbol + "/"))
        iterated = ceil_divide(loop.extent, arg.layout.device_size.back());
    }
    if (digits[k] + iterated > arg.layout.device_size[k] || arg.layout.stride_map[k] < 0) return false;
    host += digits[k] * arg.layout.stride_map[k];
  }
  for (std::size_t k = 0; k + 1 < digits.size(); ++k) {
    if (digits[k] != 0) arg.device_coordinates[k] += fmt::format(" + {}", digits[k]);
  }
  arg.base = base;
  arg.index = fmt::format("{} + {}", arg.index, host);
  return true;
}

// Names buffers over the whole bundle: a place that is written anew holds a new buffer, unless only a part of it is.
class BufferNames {
 public:
  explicit BufferNames(std::vector<BundleEntry>& entries) : entries_(entries) {}

  void run() {
    for (const BundleEntry& entry : entries_) {
      if (entry.spec) note_bases(*entry.spec);
    }
    for (BundleEntry& entry : entries_) {
      if (!entry.spec) continue;
      find_views(entry);
      name_inputs(*entry.spec);
      name_output(entry);
    }
    number_arguments();
  }

 private:
  void note_bases(const OpSpec& spec) {
    for (const TensorArg& arg : spec.args) bases_[{arg.memory, arg.layout.device_size, arg.dtype}].insert(arg.base);
  }

  void find_views(BundleEntry& entry) {
    for (std::size_t i = 0; i < entry.spec->args.size(); ++i) {
      TensorArg& arg = entry.spec->args[i];
      if (arg.memory != Memory::kHbm || !is_partial(entry.content->model.tensors[i])) continue;
      const auto size = layout_bytes(arg.layout);
      if (!size) continue;
      // The first tensor that begins before this one and reaches beyond its beginning.
      const std::set<std::int64_t>& bases = bases_[{arg.memory, arg.layout.device_size, arg.dtype}];
      const auto first = bases.upper_bound(arg.base - *size);
      if (first != bases.end() && *first < arg.base) move_base(arg, entry.spec->iteration_space, *first);
    }
  }

  std::string fresh() { return fmt::format("t{}", count_++); }

  void name_inputs(OpSpec& spec) {
    for (std::size_t i = 0; i + 1 < spec.args.size(); ++i) {
      TensorArg& arg = spec.args[i];
      const auto [held, is_new] = held_.emplace(place_of(arg), std::string());
      if (is_new) {
        held->second = fresh();
        loaded_.insert(held->second);
      }
      arg.name = held->second;
      read_.insert(arg.name);
    }
  }

  void name_output(BundleEntry& entry) {
    TensorArg& arg = entry.spec->args.back();
    const auto [held, is_new] = held_.emplace(place_of(arg), std::string());
    if (is_new || !is_partial(entry.content->model.tensors.back())) held->second = fresh();
    arg.name = held->second;
  }

  // What the bundle does not write is an argument, and what it writes and never reads; the rest is private.
  void number_arguments() {
    std::map<std::string, std::int64_t> numbers;
    for (BundleEntry& entry : entries_) {
      if (!entry.spec) continue;
      for (TensorArg& arg : entry.spec->args) {
        const bool made_and_read = loaded_.count(arg.name) == 0 && read_.count(arg.name) != 0;
        const bool is_private = arg.memory == Memory::kLx || made_and_read;
        if (is_private) {
          arg.arg_index = -1;
          continue;
        }
        arg.arg_index = numbers.emplace(arg.name, static_cast<std::int64_t>(numbers.size())).first->second;
      }
    }
  }

  std::vector<BundleEntry>& entries_;
  std::map<std::tuple<Memory, std::vector<std::int64_t>, DType>, std::set<std::int64_t>> bases_;
  std::map<Place, std::string> held_;  // what lies at a place now
  std::set<std::string> loaded_, read_;
  std::size_t count_ = 0;
};

void decode(BundleEntry& entry) {
  if (entry.text.size() > kMaxSuperdscBytes) {
    entry.error = Error{ErrorCode::kTooLarge, fmt::format("is larger than {} bytes", kMaxSuperdscBytes), entry.file};
    return;
  }
  Expected<base::Json> document = base::Json::parse(entry.text, entry.file);
  if (!document) {
    entry.error = std::move(document.error());
    entry.error->path = entry.file;
    return;
  }
  entry.document = std::move(*document);
  Expected<SuperdscContent> content = decode_superdsc(entry.document);
  if (!content) {
    entry.error = std::move(content.error());
    entry.error->path = entry.file;
    return;
  }
  entry.content = std::move(*content);
  Expected<OpSpec> spec = recover_op_spec(*entry.content);
  if (spec) {
    entry.spec = std::move(*spec);
  } else {
    entry.refusal = std::move(spec.error());
    entry.refusal->path = entry.file;
  }
}

// A regular file that lies in the folder itself, links followed.
Expected<std::string> read_inside(const fs::path& folder, const std::string& name, std::size_t limit) {
  std::error_code ec;
  const fs::path path = folder / name;
  const fs::path real = fs::canonical(path, ec);
  if (ec) return fail(ErrorCode::kIo, "is not there", path.string());
  if (real.parent_path() != fs::canonical(folder, ec))
    return fail(ErrorCode::kUnsupported, "leads out of the bundle's folder", path.string());
  if (!fs::is_regular_file(real, ec)) return fail(ErrorCode::kIo, "is no regular file", path.string());
  return base::read_file(real.string(), limit);
}

void finish(Bundle& bundle) {
  for (BundleEntry& entry : bundle.entries) {
    if (!entry.error) decode(entry);
  }
  BufferNames(bundle.entries).run();
}

Expected<Bundle> read_folder(const std::string& path, std::size_t max_bytes) {
  Bundle bundle;
  bundle.directory = path;
  std::error_code ec;
  bundle.name = fs::canonical(path, ec).filename().string();
  KERNTRAIL_TRY(const std::vector<std::string> listed, base::list_files(path));
  std::vector<std::string> names;
  for (const std::string& name : listed) {
    if (is_sdsc_name(name)) names.push_back(name);
    if (name != kBundleProgram) continue;
    Expected<std::string> text = read_inside(path, name, kMaxProgramBytes);
    if (text) {
      bundle.program = std::move(*text);
    } else {
      bundle.program_error = text.error();
    }
  }
  if (names.empty() && !bundle.program) return fail(ErrorCode::kSchema, "holds no sdsc file and no bundle.mlir", path);
  if (names.size() > kMaxBundleFiles) return fail(ErrorCode::kTooLarge, "holds too many files", path);
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return in_order(a) < in_order(b); });
  std::vector<std::string> order = names;
  if (bundle.program) {
    Expected<std::vector<std::string>> run = read_bundle_program(*bundle.program);
    if (run) {
      order = std::move(*run);
    } else {
      bundle.program_error = std::move(run.error());
      bundle.program_error->path = std::string(kBundleProgram);
    }
  }
  const std::set<std::string> run(order.begin(), order.end());
  for (const std::string& name : names) {
    if (run.count(name) == 0) bundle.unlisted.push_back(name);
  }
  std::size_t bytes = 0;
  for (const std::string& name : order) {
    BundleEntry entry;
    entry.file = name;
    Expected<std::string> text = read_inside(path, name, kMaxSuperdscBytes);
    if (text) {
      // A program may name one file many times.
      bytes += text->size();
      if (bytes > max_bytes)
        return fail(ErrorCode::kTooLarge, fmt::format("runs more than {} bytes of files", max_bytes), path);
      entry.text = std::move(*text);
    } else {
      entry.error = std::move(text.error());
    }
    bundle.entries.push_back(std::move(entry));
  }
  finish(bundle);
  return bundle;
}

}  // namespace

Expected<std::vector<std::string>> read_bundle_program(std::string_view text) { return ProgramReader(text).run(); }

bool is_bundle(const std::string& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    for (const std::string& name : base::list_files(path).value_or(std::vector<std::string>{})) {
      if (is_sdsc_name(name) || name == kBundleProgram) return true;
    }
    return false;
  }
  if (!path.ends_with(kSuffix) || !fs::is_regular_file(path, ec)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(kPeekBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return is_sdsc_name(fs::path(path).filename().string()) || head.find("\"sdscFoldProps_\"") != std::string::npos;
}

Expected<Bundle> read_bundle(const std::string& path, std::size_t max_bytes) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return read_folder(path, max_bytes);
  if (!fs::exists(path, ec)) return fail(ErrorCode::kIo, "is not there", path);
  if (!fs::is_regular_file(path, ec)) return fail(ErrorCode::kIo, "is neither a folder nor a file", path);
  KERNTRAIL_TRY(std::string text, base::read_file(path, kMaxSuperdscBytes));
  const std::string name = fs::path(path).filename().string();
  return bundle_of(name, {{name, std::move(text)}});
}

Bundle bundle_of(std::string name, std::vector<std::pair<std::string, std::string>> files) {
  Bundle bundle;
  bundle.name = std::move(name);
  for (auto& [file, text] : files) {
    if (file == kBundleProgram) {
      const auto run = read_bundle_program(text);
      if (!run) bundle.program_error = run.error();
      bundle.program = std::move(text);
      continue;
    }
    BundleEntry entry;
    entry.file = std::move(file);
    entry.text = std::move(text);
    bundle.entries.push_back(std::move(entry));
  }
  finish(bundle);
  return bundle;
}

Expected<std::vector<OpSpec>> op_specs_of(const Bundle& bundle) {
  std::vector<OpSpec> specs;
  for (const BundleEntry& entry : bundle.entries) {
    if (entry.error) return tl::unexpected(*entry.error);
    if (entry.refusal) return tl::unexpected(*entry.refusal);
    specs.push_back(*entry.spec);
  }
  return specs;
}

EmitOptions style_of(const Bundle& bundle) {
  EmitOptions style;
  style.keep_splits = style.keep_device_side = true;
  bool first = true;
  for (const BundleEntry& entry : bundle.entries) {
    if (!entry.content) continue;
    const EmitOptions& one = entry.content->style;
    style.generation = first ? one.generation : std::max(style.generation, one.generation);
    style.max_cores = std::max(style.max_cores, one.max_cores);
    style.lx_addresses_as_numbers = style.lx_addresses_as_numbers || one.lx_addresses_as_numbers;
    style.op_in_file_names =
        style.op_in_file_names || entry.file != fmt::format("sdsc_{}.json", entry.content->ordinal);
    first = false;
  }
  return style;
}

}  // namespace kerntrail::spyre
