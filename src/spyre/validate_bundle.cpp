// What only the files of a bundle together show.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "spyre/layout.h"
#include "spyre/tensor_part.h"
#include "spyre/validate.h"

namespace kerntrail::spyre {
namespace {

std::string op_text(std::size_t i, const BundleEntry& entry) {
  return fmt::format("operation {} ({})", i, entry.content->model.op);
}

class BundleRules {
 public:
  explicit BundleRules(const Bundle& bundle) : bundle_(bundle) {}

  std::vector<BundleFinding> run() {
    check_program();
    for (const std::string& file : bundle_.unlisted) report(file, "bundle-unlisted", "the program does not run it");
    for (std::size_t i = 0; i < bundle_.entries.size(); ++i) check_entry(i);
    check_generation();
    check_memory();
    return std::move(found_);
  }

 private:
  void report(const std::string& file, std::string_view code, std::string message, std::string where = {}) {
    found_.push_back({file, {std::string(code), std::move(message), std::move(where)}});
  }

  void check_program() {
    const std::string file(kBundleProgram);
    if (bundle_.directory.empty() && !bundle_.program) return;  // a file by itself has none
    if (bundle_.program_error) {
      const Error& error = *bundle_.program_error;
      report(file, "bundle-program", error.message, error.line == 0 ? "" : fmt::format("line {}", error.line));
    } else if (!bundle_.program) {
      report(file, "bundle-program", "it is not there");
    }
  }

  void check_entry(std::size_t i) {
    const BundleEntry& entry = bundle_.entries[i];
    if (entry.document.is_null()) {
      report(entry.file, "bundle-unreadable", entry.error ? entry.error->message : "it holds nothing");
      return;
    }
    for (Diagnostic& found : validate_superdsc(entry.document)) found_.push_back({entry.file, std::move(found)});
    if (!entry.content) return;
    const SuperdscContent& content = *entry.content;
    const bool in_folder = !bundle_.directory.empty() || bundle_.entries.size() > 1;
    if (in_folder && content.ordinal != static_cast<std::int64_t>(i))
      report(entry.file, "bundle-order", fmt::format("its key says {}, it runs as number {}", content.ordinal, i));
    const std::string plain = fmt::format("sdsc_{}.json", content.ordinal);
    const std::string with_op = fmt::format("sdsc_{}_{}.json", content.ordinal, content.model.op);
    if (in_folder && entry.file != plain && entry.file != with_op)
      report(entry.file, "bundle-file-name", fmt::format("its key asks for {} or {}", plain, with_op));
  }

  void check_generation() {
    const BundleEntry* first = nullptr;
    for (const BundleEntry& entry : bundle_.entries) {
      if (!entry.content) continue;
      if (first == nullptr) first = &entry;
      // A handle that is null says nothing of its generation.
      const auto rank = [](const BundleEntry& e) { return std::min(e.content->style.generation, Generation::kJuly); };
      if (rank(entry) != rank(*first))
        report(entry.file, "bundle-generation",
               fmt::format("it is of generation {}, {} of {}", generation_name(entry.content->style.generation),
                           first->file, generation_name(first->content->style.generation)));
    }
  }

  // Where a buffer lies in HBM and until when it is read.
  struct Tenant {
    std::int64_t begin = 0, end = 0;
    std::size_t last_read = 0;
    bool read = false;
  };

  void check_memory() {
    std::map<std::string, Tenant> tenants;
    std::map<std::string, std::vector<std::int64_t>> lx_splits;  // buffer in LX, splits of its dims
    for (std::size_t i = 0; i < bundle_.entries.size(); ++i) {
      const BundleEntry& entry = bundle_.entries[i];
      if (!entry.spec) continue;
      for (std::size_t a = 0; a < entry.spec->args.size(); ++a) {
        const TensorArg& arg = entry.spec->args[a];
        if (arg.memory == Memory::kLx) {
          check_lx(i, a, lx_splits);
          continue;
        }
        Tenant& tenant = tenants[arg.name];
        tenant.begin = arg.base;
        tenant.end = arg.base + layout_bytes(arg.layout).value_or(0);
        if (arg.is_input) {
          tenant.last_read = i;
          tenant.read = true;
        }
      }
    }
    std::set<std::string> alive;  // written or read so far
    for (std::size_t i = 0; i < bundle_.entries.size(); ++i) {
      const BundleEntry& entry = bundle_.entries[i];
      if (!entry.spec) continue;
      for (const TensorArg& arg : entry.spec->args) {
        if (arg.memory != Memory::kLx) alive.insert(arg.name);
      }
      const TensorArg& output = entry.spec->args.back();
      if (output.memory != Memory::kLx) check_overlap(i, output, tenants, alive);
    }
  }

  void check_lx(std::size_t i, std::size_t a, std::map<std::string, std::vector<std::int64_t>>& splits) {
    const BundleEntry& entry = bundle_.entries[i];
    const TensorArg& arg = entry.spec->args[a];
    const SdscModel& model = entry.content->model;
    std::vector<std::int64_t> own;
    for (const SdscTensorDim& dim : model.tensors[a].order) own.push_back(model.dims[dim.dim].split);
    if (!arg.is_input) {
      splits[arg.name] = own;
      return;
    }
    const std::string where = fmt::format("Tensor{}", a);
    const auto written = splits.find(arg.name);
    if (written == splits.end()) {
      report(entry.file, "bundle-lx-unwritten", "it reads a scratchpad that nothing wrote in this shape", where);
    } else if (written->second != own) {
      report(entry.file, "bundle-lx-unwritten", "it is divided otherwise than where it was written", where);
    }
  }

  void check_overlap(std::size_t i, const TensorArg& output, const std::map<std::string, Tenant>& tenants,
                     const std::set<std::string>& alive) {
    const Tenant& written = tenants.at(output.name);
    for (const std::string& name : alive) {
      const Tenant& other = tenants.at(name);
      const bool later = other.read && other.last_read > i;
      if (name == output.name || !later || other.end <= written.begin || written.end <= other.begin) continue;
      const BundleEntry& reader = bundle_.entries[other.last_read];
      report(bundle_.entries[i].file, "bundle-overlap",
             fmt::format("it writes from {} to {}, where {} reads something older", written.begin, written.end,
                         op_text(other.last_read, reader)));
      return;
    }
  }

  const Bundle& bundle_;
  std::vector<BundleFinding> found_;
};

}  // namespace

std::vector<BundleFinding> validate_bundle(const Bundle& bundle) { return BundleRules(bundle).run(); }

}  // namespace kerntrail::spyre
