#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyse/rules.h"
#include "base/json.h"
#include "base/strings.h"
#include "kerntrail/version.h"
#include "render/gate.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

// GitHub takes 25,000 results a run and shows 5,000; 1,000 locations a result and shows 100; 10,000 steps of a flow.
constexpr std::size_t kResults = 5'000;
constexpr std::size_t kLocations = 100;
constexpr std::size_t kSteps = 200;
constexpr std::size_t kText = 1'000;

std::string text_of(std::string_view text) { return visible(base::cut(text, kText)); }

// RFC 3986: what is no unreserved character and no slash is percent-encoded.
std::string uri_of(std::string_view file) {
  std::string out;
  for (const char c : file) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  while (out.starts_with("/")) out.erase(0, 1);  // a result's place is always relative to the repository
  return out.empty() ? "unknown" : out;
}

// "coverage" -> "Coverage", "missing-stage" -> "MissingStage"
std::string pascal(std::string_view id) {
  std::string out;
  bool upper = true;
  for (const char c : id) {
    if (c == '-' || c == '_') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return out;
}

class Writer {
 public:
  Writer(JsonWriter& json, const GateResult& result, const GateView& view) : json_(json), result_(result), view_(view) {
    for (const GateFinding& finding : result.findings) {
      rules_.try_emplace({finding.axis, finding.rule}, 0);
    }
    std::size_t next = 0;
    for (auto& [rule, at] : rules_) at = next++;
  }

  void log() {
    json_.begin_object();
    json_.member("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_.member("version", "2.1.0");
    json_.key("runs").begin_array().begin_object();
    tool();
    json_.key("automationDetails").begin_object().member("id", "kerntrail-gate/").end_object();
    invocation();
    json_.member("columnKind", "unicodeCodePoints");
    json_.key("results").begin_array();
    const std::size_t shown = std::min(result_.findings.size(), kResults);
    for (std::size_t i = 0; i < shown; ++i) finding(result_.findings[i]);
    json_.end_array();
    json_.end_object().end_array();
    json_.end_object();
  }

 private:
  JsonWriter& message(std::string_view key, std::string_view text) {
    return json_.key(key).begin_object().member("text", text_of(text)).end_object();
  }

  void tool() {
    json_.key("tool").begin_object().key("driver").begin_object();
    json_.member("name", "kerntrail");
    json_.member("version", std::string(version()));
    json_.member("semanticVersion", std::string(version()));
    message("shortDescription",
            "Follows every kernel of a compiled PyTorch model back to the source lines that made it.");
    json_.key("rules").begin_array();
    for (const auto& [rule, at] : rules_) descriptor(rule.first, rule.second);
    json_.end_array();
    json_.end_object().end_object();
  }

  void descriptor(const std::string& axis, const std::string& id) {
    json_.begin_object();
    json_.member("id", axis + "/" + id);
    json_.member("name", axis == "observer" ? "ObserverRule" + pascal(id) : pascal(id));
    const auto rules = analyse::rules();
    const auto row = std::find_if(rules.begin(), rules.end(),
                                  [&](const analyse::Rule& rule) { return rule.axis == axis && rule.id == id; });
    if (row != rules.end()) {
      message("shortDescription", row->meaning);
      message("fullDescription", fmt::format("{} For example: {}", row->meaning, row->example));
      message("help", row->action);
    }
    json_.key("defaultConfiguration").begin_object().member("level", "error").end_object();
    json_.key("properties")
        .begin_object()
        .key("tags")
        .begin_array()
        .value("provenance")
        .value(axis)
        .end_array()
        .end_object();
    json_.end_object();
  }

  void invocation() {
    json_.key("invocations").begin_array().begin_object();
    json_.member("executionSuccessful", true);
    json_.key("toolExecutionNotifications").begin_array();
    for (const std::string& note : result_.notes) notification("warning", note);
    for (const std::string& better : result_.improvements) notification("note", "better than the baseline: " + better);
    if (result_.findings.size() > kResults)
      notification("warning", fmt::format("{} findings are left out: code scanning shows {} of a run",
                                          result_.findings.size() - kResults, kResults));
    json_.end_array();
    json_.end_object().end_array();
  }
  void notification(std::string_view level, std::string_view text) {
    json_.begin_object();
    json_.member("level", level);
    message("message", text);
    json_.end_object();
  }

  void physical(const SourcePlace& place) {
    json_.key("physicalLocation").begin_object();
    json_.key("artifactLocation").begin_object().member("uri", uri_of(relative_file(place.file, view_))).end_object();
    if (place.line > 0) {
      json_.key("region").begin_object().member("startLine", place.line);
      if (!place.code.empty()) json_.key("snippet").begin_object().member("text", text_of(place.code)).end_object();
      json_.end_object();
    }
    json_.end_object();
  }

  // SARIF asks for each once.
  void logical(const GateFinding& v) {
    std::set<std::pair<std::string, std::string>> seen;
    json_.key("logicalLocations").begin_array();
    for (const GateUnit& unit : v.units) {
      const auto [written, fresh] = seen.emplace(text_of(unit.id), text_of(unit.name));
      if (!fresh) continue;
      json_.begin_object();
      if (!written->second.empty()) json_.member("name", written->second);
      json_.member("fullyQualifiedName", written->first);
      json_.member("kind", "element");
      json_.end_object();
      if (seen.size() >= kLocations) break;
    }
    json_.end_array();
  }

  void related(const GateFinding& v) {
    std::vector<std::pair<SourcePlace, std::string>> places;
    if (!v.compiler.file.empty()) places.emplace_back(v.compiler, "the compiler's line that it is charged to");
    for (const GateUnit& unit : v.units) {
      const bool first = unit.source.file == v.source.file && unit.source.line == v.source.line;
      const bool seen = std::any_of(places.begin(), places.end(), [&](const auto& p) {
        return p.first.file == unit.source.file && p.first.line == unit.source.line;
      });
      if (unit.source.file.empty() || first || seen || places.size() >= kLocations) continue;
      places.emplace_back(unit.source, "the model's line behind " + (unit.name.empty() ? unit.id : unit.name));
    }
    if (places.empty()) return;
    json_.key("relatedLocations").begin_array();
    for (std::size_t i = 0; i < places.size(); ++i) {
      json_.begin_object().member("id", static_cast<std::uint64_t>(i + 1));
      physical(places[i].first);
      message("message", places[i].second);
      json_.end_object();
    }
    json_.end_array();
  }

  // One step a stage; a step without a place of its own stands where the finding does.
  void flow(const GateFinding& v) {
    if (v.flow.empty()) return;
    json_.key("codeFlows")
        .begin_array()
        .begin_object()
        .key("threadFlows")
        .begin_array()
        .begin_object()
        .key("locations")
        .begin_array();
    for (std::size_t i = 0; i < v.flow.size() && i < kSteps; ++i) {
      const GateStep& step = v.flow[i];
      json_.begin_object().key("location").begin_object();
      physical(step.place.file.empty() ? gate_place(v, view_) : step.place);
      message("message", step.text.empty() ? std::string("the model's line") : step.text);
      json_.end_object().end_object();
    }
    json_.end_array().end_object().end_array().end_object().end_array();
  }

  void suppression(const GateFinding& v) {
    json_.key("suppressions").begin_array();
    if (v.outcome == GateOutcome::kAllowed) {
      json_.begin_object().member("kind", "external").member("status", "accepted");
      json_.member("justification",
                   text_of(fmt::format("{} ({}, until {})", v.allowed_reason, v.allowed_owner, v.allowed_until)));
      json_.end_object();
    }
    json_.end_array();
  }

  void properties(const GateFinding& v) {
    json_.key("properties").begin_object();
    json_.member("outcome", gate_outcome_name(v.outcome));
    const std::pair<const char*, const std::string*> texts[] = {
        {"direction", &v.direction}, {"stage", &v.stage}, {"field", &v.field}, {"pass", &v.pass}, {"why", &v.why}};
    for (const auto& [key, value] : texts) {
      if (!value->empty()) json_.member(key, text_of(*value));
    }
    const std::pair<const char*, const std::optional<double>*> ratios[] = {
        {"measured", &v.measured}, {"required", &v.required}, {"before", &v.before}};
    for (const auto& [key, value] : ratios) {
      if (*value) json_.member(key, **value);
    }
    json_.end_object();
  }

  void finding(const GateFinding& v) {
    json_.begin_object();
    json_.member("ruleId", v.axis + "/" + v.rule);
    json_.member("ruleIndex", static_cast<std::uint64_t>(rules_.at({v.axis, v.rule})));
    json_.member("level", v.outcome == GateOutcome::kFailed ? "error" : "note");
    message("message", v.message);
    json_.key("locations").begin_array().begin_object();
    physical(gate_place(v, view_));
    logical(v);
    json_.end_object().end_array();
    related(v);
    flow(v);
    // Of the logical identity, so that lines above may come and go. The second is the one that GitHub reads.
    json_.key("partialFingerprints").begin_object();
    json_.member("kerntrail/v1", v.fingerprint);
    json_.member("primaryLocationLineHash", v.fingerprint + ":1");
    json_.end_object();
    if (v.baseline != BaselineState::kNone) json_.member("baselineState", baseline_state_name(v.baseline));
    suppression(v);
    properties(v);
    json_.end_object();
  }

  JsonWriter& json_;
  const GateResult& result_;
  const GateView& view_;
  std::map<std::pair<std::string, std::string>, std::size_t> rules_;
};

}  // namespace

std::string gate_sarif(const GateResult& result, const GateView& view) {
  std::string out;
  JsonWriter json(out, 2);
  Writer(json, result, view).log();
  return out + "\n";
}

}  // namespace kerntrail::render
