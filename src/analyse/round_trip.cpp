#include "kerntrail/round_trip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "analyse/pipeline.h"
#include "base/json.h"
#include "base/python_literal.h"
#include "base/strings.h"
#include "kerntrail/drops.h"

namespace kerntrail {

std::string_view seam_name(Seam seam) {
  constexpr std::array<std::string_view, 4> kNames{"printing", "reading", "writing", "after_printing"};
  return kNames[static_cast<std::size_t>(seam)];
}

namespace analyse {
namespace {

using base::Json;

constexpr int kMaxDepth = 64;
constexpr std::size_t kShort = 60;
constexpr std::array<std::string_view, 3> kFields{"op", "is_reduction", "debug_handle"};  // that all sides have

// Null, "", [] and {} say nothing, and neither does an object none of whose members say anything. 0 and false do.
bool says_something(const Json& value, int depth = 0) {
  if (value.is_null() || depth > kMaxDepth) return false;
  if (value.is_string()) return !value.as_string().empty();
  if (value.is_array()) return !value.as_array().empty();
  if (!value.is_object()) return true;
  const auto& members = value.as_object();
  return std::any_of(members.begin(), members.end(), [&](const base::JsonMember& member) {
    return member.first != base::kCallee && says_something(member.second, depth + 1);
  });
}

// Ids are numbers in a text and decimal strings in a file.
std::string scalar_text(const Json& value) { return value.is_string() ? std::string(value.as_string()) : value.dump(); }

std::string short_text(const Json& value) {
  const std::string text = scalar_text(value);
  return text.size() <= kShort ? text : std::string(base::cut(text, kShort)) + "...";
}

struct Difference {
  std::string field;
  bool changed = false;
  std::string was, now;
};

void compare(const Json& before, const Json& after, const std::string& path, std::vector<Difference>& out,
             int depth = 0) {
  if (!says_something(before) || depth > kMaxDepth) return;
  if (!says_something(after)) {
    out.push_back({path, false, short_text(before), {}});
    return;
  }
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.as_object()) {
      if (key != base::kCallee) compare(value, after[key], path + "." + key, out, depth + 1);
    }
    return;
  }
  const auto &a = before.as_array(), &b = after.as_array();
  if (before.is_array() && after.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i], fmt::format("{}[{}]", path, i), out, depth + 1);
    return;
  }
  const bool nested = before.is_array() || before.is_object() || after.is_array() || after.is_object();
  if (nested || scalar_text(before) != scalar_text(after))
    out.push_back({path, true, short_text(before), short_text(after)});
}

bool is_record(const Json& value) { return value.find("op") != nullptr && value["op"].is_string(); }

// The OpSpecs of a kernel's text in order: objects with an `op`, in lists or loops of such, be they constructor calls
// or JSON within a string.
void find_records(const Json& value, std::vector<Json>& out, int depth = 0) {
  if (depth > kMaxDepth) return;
  if (is_record(value)) {
    out.push_back(value);
    return;
  }
  for (const Json& item : value.as_array()) find_records(item, out, depth + 1);
  for (const auto& [key, item] : value.as_object()) find_records(item, out, depth + 1);
  const std::string_view text = value.as_string();
  if (!text.starts_with('[') && !text.starts_with('{')) return;
  if (const auto inner = Json::parse(text)) find_records(*inner, out, depth + 1);
}

struct Bundle {
  std::vector<std::vector<UnitId>> printed;  // OpSpecs, each time the text was generated
  std::vector<UnitId> files;
};

class Tracker {
 public:
  explicit Tracker(const Capture& capture) : capture_(capture), names_(capture) {
    for (const Link& link : capture.links) {
      if (link.kind == "print_op_specs") {
        for (const UnitId kernel : link.to) bundles_[kernel].printed.push_back(link.from);
      } else if (link.kind == "bundle_file") {
        for (const UnitId kernel : link.from) {
          auto& files = bundles_[kernel].files;
          files.insert(files.end(), link.to.begin(), link.to.end());
        }
      }
    }
    if (!capture.snapshots.empty()) last_ = id_at<SnapshotId>(capture.snapshots.size() - 1);
  }

  RoundTrip of(CompileId compile) {
    RoundTrip out;
    out.compile = compile;
    for (const auto& [kernel, bundle] : bundles_) {
      if (bundle.printed.empty() || capture_.compile_of(kernel) != compile) continue;
      ++out.kernels;
      kernel_ = kernel;
      out_ = &out;
      follow(bundle);
    }
    return out;
  }

 private:
  void follow(const Bundle& bundle) {
    const std::optional<std::vector<Json>> text = printed();
    for (const std::vector<UnitId>& specs : bundle.printed) {
      out_->op_specs += specs.size();
      if (!text || !fits(Seam::kPrinting, "its text holds", text->size(), specs.size())) continue;
      out_->printed += specs.size();
      const LocId line = loc_of(kernel_, "source");
      for (std::size_t i = 0; i < specs.size(); ++i)
        across(Seam::kPrinting, object_of(specs[i]), (*text)[i], specs[i], UnitId::kNone, line);
    }
    if (!text || bundle.printed.front().size() != text->size()) return;
    const std::vector<UnitId>& specs = bundle.printed.front();
    const auto reread = value_of(kernel_, "reread");
    const bool seen = reread && reread->is_array();
    bool known = seen;  // the objects between text and file can be told apart
    if (seen) known = fits(Seam::kReading, "its executed text gives", reread->as_array().size(), specs.size());
    if (known) {
      out_->reread += specs.size();
      for (std::size_t i = 0; i < specs.size(); ++i)
        across(Seam::kReading, (*text)[i], reread->as_array()[i], specs[i], UnitId::kNone, loc_of(kernel_, "reread"));
    }
    if (bundle.files.empty()) return;
    const Seam seam = known ? Seam::kWriting : Seam::kAfterPrinting;
    if (!fits(seam, "its bundle has files for", bundle.files.size(), specs.size())) return;
    out_->written += specs.size();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const UnitId file = bundle.files[i];
      const Json& before = known ? reread->as_array()[i] : (*text)[i];
      const auto handle = value_of(file, "debug_handle");
      std::vector<Difference> found;
      compare(before["debug_handle"], handle ? *handle : Json(), "debug_handle", found);
      note(seam, std::move(found), specs[i], file, loc_of(file, "name"));
    }
  }

  std::optional<std::vector<Json>> printed() {
    const Observation* source = seen(kernel_, "source");
    if (source == nullptr) {
      add_break(Seam::kPrinting, "its text was not recorded");
      return std::nullopt;
    }
    const auto value = base::parse_python_literal(capture_.text(source->text));
    if (!value) {
      add_break(Seam::kPrinting, "its text can't be read: " + value.error().message);
      return std::nullopt;
    }
    std::vector<Json> records;
    find_records(*value, records);
    return records;
  }

  bool fits(Seam seam, std::string_view what, std::size_t found, std::size_t wanted) {
    if (found == wanted) return true;
    add_break(seam, fmt::format("{} {}, {} were made", what, base::counted(found, "OpSpec"), wanted));
    return false;
  }

  void across(Seam seam, const Json& before, const Json& after, UnitId spec, UnitId file, LocId line) {
    std::vector<Difference> found;
    for (const std::string_view field : kFields) compare(before[field], after[field], std::string(field), found);
    note(seam, std::move(found), spec, file, line);
  }

  void note(Seam seam, std::vector<Difference> found, UnitId spec, UnitId file, LocId line) {
    for (Difference& one : found) {
      SeamLoss loss;
      loss.seam = seam;
      loss.field = std::move(one.field);
      loss.changed = one.changed;
      loss.was = std::move(one.was);
      loss.now = std::move(one.now);
      loss.op_spec = spec;
      loss.kernel = kernel_;
      loss.file = file;
      loss.unit = unit_name(capture_, spec);
      loss.unit_name = name_of(spec);
      loss.kernel_name = name_of(kernel_);
      if (has(file)) loss.file_name = name_of(file);
      loss.line = line;
      loss.place = place_text(capture_, line);
      out_->losses.push_back(std::move(loss));
    }
  }

  void add_break(Seam seam, std::string reason) {
    out_->breaks.push_back({seam, kernel_, name_of(kernel_), std::move(reason)});
  }

  Json object_of(UnitId spec) const {
    base::JsonObject out;
    for (const std::string_view field : kFields) {
      if (auto value = value_of(spec, field)) out.emplace_back(std::string(field), std::move(*value));
    }
    return Json(std::move(out));
  }

  const Observation* seen(UnitId unit, std::string_view attr) const {
    return has(names_[attr]) && has(last_) ? present(capture_, unit, names_[attr], last_) : nullptr;
  }

  // Handles are JSON, names are not.
  std::optional<Json> value_of(UnitId unit, std::string_view attr) const {
    const Observation* found = seen(unit, attr);
    if (found == nullptr || !has(found->text)) return std::nullopt;
    const std::string_view text = capture_.text(found->text);
    if (attr == "op") return Json(text);
    auto value = Json::parse(text);
    return value ? std::optional<Json>(std::move(*value)) : std::nullopt;
  }

  LocId loc_of(UnitId unit, std::string_view attr) const {
    const Observation* found = seen(unit, attr);
    return found == nullptr ? LocId::kNone : found->loc;
  }

  std::string name_of(UnitId unit) const {
    return has(last_) ? display_name(capture_, names_["name"], unit, last_) : "";
  }

  const Capture& capture_;
  AttrNames names_;
  std::map<UnitId, Bundle> bundles_;
  SnapshotId last_ = SnapshotId::kNone;
  UnitId kernel_ = UnitId::kNone;
  RoundTrip* out_ = nullptr;
};

}  // namespace
}  // namespace analyse

Expected<std::vector<RoundTrip>> round_trips(const Capture& capture, const AnalysisOptions& options) {
  KERNTRAIL_TRY(const auto compiles, analyse::select_compiles(capture, options));
  std::vector<RoundTrip> out;
  analyse::Tracker tracker(capture);
  for (const CompileId compile : compiles) {
    RoundTrip trip = tracker.of(compile);
    if (trip.kernels > 0) out.push_back(std::move(trip));
  }
  return out;
}

}  // namespace kerntrail
