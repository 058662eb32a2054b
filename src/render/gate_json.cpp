#include "base/json.h"
#include "render/gate.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

class Writer {
 public:
  Writer(JsonWriter& json, const GateView& view) : json_(json), view_(view) {}

  void result(const GateResult& v) {
    json_.begin_object();
    json_.member("format", "kerntrail-gate");
    json_.member("version", 1);
    json_.member("passed", v.passed);
    json_.member("capture", view_.capture);
    json_.member("config", view_.config);
    optional("baseline", view_.baseline);
    json_.member("torn", v.state.torn);
    json_.member("partial", v.state.partial);
    json_.key("key").begin_object();
    for (const auto& [member, value] : v.key) json_.member(member, value);
    json_.end_object();
    list("checks", v.checks, [&](const GateCheck& check) { this->check(check); });
    list("findings", v.findings, [&](const GateFinding& finding) { this->finding(finding); });
    list("improvements", v.improvements, [&](const std::string& text) { json_.value(text); });
    list("notes", v.notes, [&](const std::string& text) { json_.value(text); });
    json_.end_object();
  }

 private:
  template <class Items, class Write>
  void list(std::string_view key, const Items& items, Write write) {
    json_.key(key).begin_array();
    for (const auto& item : items) write(item);
    json_.end_array();
  }
  void optional(std::string_view key, const std::string& text) {
    if (!text.empty()) json_.member(key, text);
  }
  void ratio(std::string_view key, const std::optional<double>& value) {
    if (value) json_.member(key, *value);
  }
  void place(std::string_view key, const SourcePlace& v) {
    if (v.file.empty()) return;
    json_.key(key).begin_object();
    json_.member("file", v.file);
    json_.member("line", v.line);
    optional("text", v.code);
    json_.end_object();
  }
  void asked(ConfigPlace at) {
    if (at.line > 0) json_.member("config_line", at.line);
  }

  void check(const GateCheck& v) {
    json_.begin_object();
    json_.member("suite", v.suite);
    json_.member("name", v.name);
    json_.member("passed", v.passed);
    json_.member("text", v.text);
    asked(v.asked);
    list("findings", v.findings, [&](std::uint32_t i) { json_.value(i); });
    json_.end_object();
  }

  void finding(const GateFinding& v) {
    json_.begin_object();
    json_.member("rule", v.axis + "/" + v.rule);
    json_.member("outcome", gate_outcome_name(v.outcome));
    optional("baseline_state", std::string(baseline_state_name(v.baseline)));
    json_.member("fingerprint", v.fingerprint);
    json_.member("message", v.message);
    optional("why", v.why);
    optional("direction", v.direction);
    optional("stage", v.stage);
    optional("field", v.field);
    optional("pass", v.pass);
    optional("site", v.site);
    place("compiler", v.compiler);
    place("source", v.source);
    asked(v.asked);
    ratio("measured", v.measured);
    ratio("required", v.required);
    ratio("before", v.before);
    if (v.outcome == GateOutcome::kAllowed) {
      json_.key("allowed").begin_object();
      json_.member("reason", v.allowed_reason);
      json_.member("owner", v.allowed_owner);
      json_.member("until", v.allowed_until);
      json_.end_object();
    }
    list("units", v.units, [&](const GateUnit& unit) {
      json_.begin_object();
      json_.member("unit", unit.id);
      optional("name", unit.name);
      place("source", unit.source);
      json_.end_object();
    });
    list("flow", v.flow, [&](const GateStep& step) {
      json_.begin_object();
      optional("stage", step.stage);
      json_.member("text", step.text);
      place("place", step.place);
      json_.end_object();
    });
    json_.end_object();
  }

  JsonWriter& json_;
  const GateView& view_;
};

}  // namespace

std::string gate_json(const GateResult& result, const GateView& view) {
  std::string out;
  JsonWriter json(out, 2);
  Writer(json, view).result(result);
  return out + "\n";
}

}  // namespace kerntrail::render
