#include "analyse/intents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/json.h"
#include "base/strings.h"

namespace kerntrail {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"synthesises", "removes", "remaps"};

Intent built_in(std::string pass, IntentKind kind, std::string reason) {
  Intent intent;
  intent.pass = std::move(pass);
  intent.kind = kind;
  intent.reason = std::move(reason);
  intent.origin = "built-in";
  return intent;
}

Intent for_targets(Intent intent, std::vector<std::string> targets) {
  intent.targets = std::move(targets);
  return intent;
}

Intent for_fields(Intent intent, std::string subsystem, std::vector<std::string> fields) {
  intent.subsystem = std::move(subsystem);
  intent.fields = std::move(fields);
  return intent;
}

// Reads one member of the document; the place is spelled for the message.
class Reader {
 public:
  explicit Reader(std::string_view path) : path_(path) {}

  tl::unexpected<Error> bad(const std::string& place, std::string_view message) const {
    return fail(ErrorCode::kSchema, fmt::format("{}: {}", place, message), path_);
  }

  Expected<Intent> intent(const base::Json& json, const std::string& place) const {
    if (!json.is_object()) return bad(place, "must be an object");
    Intent result;
    result.origin = path_;
    for (const auto& [key, value] : json.as_object()) {
      const std::string here = place + "." + key;
      if (std::string* into = text_member(result, key)) {
        if (!value.is_string() || value.as_string().empty()) return bad(here, "must be a text that is not empty");
        *into = value.as_string();
      } else if (std::vector<std::string>* list = list_member(result, key)) {
        KERNTRAIL_TRY(*list, texts(value, here));
      } else if (key == "kind") {
        const auto* found = std::find(kKinds.begin(), kKinds.end(), value.as_string());
        if (found == kKinds.end()) return bad(here, "must be \"synthesises\", \"removes\" or \"remaps\"");
        result.kind = static_cast<IntentKind>(found - kKinds.begin());
      } else {
        return bad(here, "is no member of an intent: pass, kind, reason, subsystem, pattern, targets, fields");
      }
    }
    for (std::string_view needed : {"pass", "kind", "reason"}) {
      if (json.find(needed) == nullptr) return bad(place, fmt::format("\"{}\" is missing", needed));
    }
    if (!result.fields.empty() && result.kind != IntentKind::kRemaps)
      return bad(place + ".fields", "belongs to an intent of kind \"remaps\"");
    return result;
  }

 private:
  static std::string* text_member(Intent& intent, std::string_view key) {
    if (key == "pass") return &intent.pass;
    if (key == "reason") return &intent.reason;
    if (key == "subsystem") return &intent.subsystem;
    return key == "pattern" ? &intent.pattern : nullptr;
  }
  static std::vector<std::string>* list_member(Intent& intent, std::string_view key) {
    if (key == "targets") return &intent.targets;
    return key == "fields" ? &intent.fields : nullptr;
  }

  Expected<std::vector<std::string>> texts(const base::Json& json, const std::string& place) const {
    if (!json.is_array()) return bad(place, "must be a list of texts");
    std::vector<std::string> result;
    for (std::size_t i = 0; i < json.as_array().size(); ++i) {
      const base::Json& item = json.as_array()[i];
      if (!item.is_string() || item.as_string().empty())
        return bad(fmt::format("{}[{}]", place, i), "must be a text that is not empty");
      result.emplace_back(item.as_string());
    }
    return result;
  }

  std::string path_;
};

bool names(const std::string& pattern, std::string_view name) {
  if (pattern.empty() || pattern.back() != '*') return pattern == name;
  return name.substr(0, pattern.size() - 1) == std::string_view(pattern).substr(0, pattern.size() - 1);
}

template <class Test>
bool any_or_none(const std::vector<std::string>& list, Test test) {
  return list.empty() || std::any_of(list.begin(), list.end(), test);
}

}  // namespace

std::string_view intent_kind_name(IntentKind v) { return kKinds[static_cast<std::size_t>(v)]; }

// Only what is by design. A pass that could copy metadata and does not is a loss, however well known it is.
const std::vector<Intent>& builtin_intents() {
  static const std::vector<Intent> kIntents{
      for_targets(built_in("constant_fold_uniform_value", IntentKind::kSynthesises,
                           "a value that is the same everywhere is written as one new constant"),
                  {"aten.full", "aten.scalar_tensor"}),
      built_in("remove_noop_ops", IntentKind::kRemoves, "an op that does nothing gives its uses to its input"),
      built_in("remove_assert_ops", IntentKind::kRemoves, "assertions are not compiled"),
      built_in("remove_profiler_ops", IntentKind::kRemoves, "profiler marks are not compiled"),
      built_in("remove_identity", IntentKind::kRemoves, "an identity gives its uses to its input"),
      built_in("insert_restickify", IntentKind::kSynthesises,
               "a change of device layout; it belongs to no operation of the model"),
      built_in("insert_post_mutation_restickify", IntentKind::kSynthesises,
               "a change of device layout after a mutation; it belongs to no operation of the model"),
      built_in("insert_bmm_padding", IntentKind::kSynthesises,
               "padding up to the device's block size; it belongs to no operation of the model"),
      built_in("deadcode_elimination", IntentKind::kRemoves, "nothing reads what these operations compute"),
      for_fields(built_in("relabel_linear_permutes", IntentKind::kRemaps,
                          "emulation: on the device linear is dispatched whole and owns its permute"),
                 "kerntrail_spyre", {"original_aten"}),
  };
  return kIntents;
}

Expected<std::vector<Intent>> parse_intents(std::string_view json, std::string_view path) {
  const Reader reader(path);
  KERNTRAIL_TRY(const base::Json document, base::Json::parse(json, path));
  if (!document.is_object()) return reader.bad("the file", "must be an object with a list \"intents\"");
  for (const auto& [key, value] : document.as_object()) {
    if (key != "intents" && key != "version") return reader.bad(key, "is no member of the file: version, intents");
    if (key == "version" && value != base::Json(1)) return reader.bad(key, "must be 1");
  }
  if (!document["intents"].is_array()) return reader.bad("intents", "must be a list");
  std::vector<Intent> result;
  for (std::size_t i = 0; i < document["intents"].as_array().size(); ++i) {
    KERNTRAIL_TRY(auto intent, reader.intent(document["intents"].as_array()[i], fmt::format("intents[{}]", i)));
    result.push_back(std::move(intent));
  }
  return result;
}

namespace analyse {

IntentTable::IntentTable(const Capture& capture, const std::vector<Intent>& callers)
    : capture_(capture), intents_(builtin_intents()), of_pass_(capture.passes.size()) {
  intents_.insert(intents_.end(), callers.begin(), callers.end());
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> by_name;
  for (std::size_t p = 0; p < capture.passes.size(); ++p) {
    const Pass& pass = capture.passes[p];
    auto [place, fresh] = by_name.try_emplace(pass.name);
    for (std::uint32_t i = 0; fresh && i < intents_.size(); ++i) {
      if (names(intents_[i].pass, pass.name)) place->second.push_back(i);
    }
    for (std::uint32_t i : place->second) {
      if (intents_[i].subsystem.empty() || intents_[i].subsystem == pass.subsystem) of_pass_[p].push_back(i);
    }
  }
}

namespace {

bool covers(const Intent& intent, std::string_view target, std::string_view field) {
  return any_or_none(intent.targets, [&](const std::string& t) { return target.substr(0, t.size()) == t; }) &&
         any_or_none(intent.fields, [&](const std::string& f) { return f == field; });
}

}  // namespace

std::uint32_t IntentTable::find(IntentKind kind, PassId pass, std::string_view pattern, std::string_view target,
                                std::string_view field) const {
  if (!has(pass)) return kNoIndex;
  for (std::uint32_t i : of_pass_[index(pass)]) {
    const Intent& intent = intents_[i];
    if (intent.kind != kind || (!intent.pattern.empty() && intent.pattern != pattern)) continue;
    if (covers(intent, target, field)) return i;
  }
  return kNoIndex;
}

// The groups that built-in intents name are back ends' own: their passes run in no other's compile.
std::uint32_t IntentTable::perhaps(IntentKind kind, CompileId compile, std::string_view target,
                                   std::string_view field) const {
  for (std::uint32_t i = 0; i < intents_.size(); ++i) {
    const Intent& intent = intents_[i];
    if (intent.kind != kind || !covers(intent, target, field)) continue;
    const bool of_another = intent.origin == builtin_intents().front().origin && !intent.subsystem.empty() &&
                            intent.subsystem != capture_.compiles[index(compile)].backend;
    if (!of_another) return i;
  }
  return kNoIndex;
}

}  // namespace analyse
}  // namespace kerntrail
