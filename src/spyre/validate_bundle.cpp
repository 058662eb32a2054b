// What only the files of a bundle together show.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "spyre/checked.h"
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
    } else if (bundle_.entries.empty()) {
      report(file, "bundle-program", "it runs no file");
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

  // Buffers that were touched and will be read again, by where they begin.
  class Alive {
   public:
    void keep(const std::string& name, const Tenant& tenant, std::size_t now) {
      const std::pair key(tenant.begin, name);
      if (!tenant.read || tenant.last_read <= now) {
        held_.erase(key);
        return;
      }
      held_.emplace(key, tenant);
      longest_ = std::max(longest_, tenant.end - tenant.begin);
    }
    // The first other one that `written` reaches into.
    const Tenant* reached_by(const Tenant& written, const std::string& name) const {
      for (auto at = held_.lower_bound({written.begin - longest_, {}});
           at != held_.end() && at->first.first < written.end; ++at) {
        if (at->first.second != name && at->second.end > written.begin) return &at->second;
      }
      return nullptr;
    }

   private:
    std::map<std::pair<std::int64_t, std::string>, Tenant> held_;
    std::int64_t longest_ = 0;
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
        tenant.end = checked_add(arg.base, layout_bytes(arg.layout).value_or(0)).value_or(arg.base);
        if (arg.is_input) {
          tenant.last_read = i;
          tenant.read = true;
        }
      }
    }
    Alive alive;
    for (std::size_t i = 0; i < bundle_.entries.size(); ++i) {
      const BundleEntry& entry = bundle_.entries[i];
      if (!entry.spec) continue;
      for (const TensorArg& arg : entry.spec->args) {
        if (arg.memory != Memory::kLx) alive.keep(arg.name, tenants.at(arg.name), i);
      }
      const TensorArg& output = entry.spec->args.back();
      if (output.memory != Memory::kLx) check_overlap(i, tenants.at(output.name), output.name, alive);
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

  void check_overlap(std::size_t i, const Tenant& written, const std::string& name, const Alive& alive) {
    const Tenant* other = alive.reached_by(written, name);
    if (other == nullptr) return;
    const BundleEntry& reader = bundle_.entries[other->last_read];
    report(bundle_.entries[i].file, "bundle-overlap",
           fmt::format("it writes from {} to {}, where {} reads something older", written.begin, written.end,
                       op_text(other->last_read, reader)));
  }

  const Bundle& bundle_;
  std::vector<BundleFinding> found_;
};

}  // namespace

std::vector<BundleFinding> validate_bundle(const Bundle& bundle) { return BundleRules(bundle).run(); }

std::vector<Unjudged> unjudged_files(const Bundle& bundle) {
  std::vector<Unjudged> out;
  for (const BundleEntry& entry : bundle.entries) {
    if (entry.error && entry.error->code == ErrorCode::kUnsupported) out.push_back({entry.file, entry.error->message});
  }
  return out;
}

}  // namespace kerntrail::spyre
