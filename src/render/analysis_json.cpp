#include "base/json.h"
#include "render/json_output.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

void count(JsonWriter& json, std::string_view key, std::size_t n) { json.member(key, static_cast<std::uint64_t>(n)); }

template <class Items, class Write>
void list(JsonWriter& json, std::string_view key, const Items& items, Write write) {
  json.key(key).begin_array();
  for (const auto& item : items) write(item);
  json.end_array();
}

void counts(JsonWriter& json, std::string_view key, const std::vector<std::pair<std::string, std::size_t>>& all) {
  list(json, key, all, [&](const auto& one) {
    json.begin_object();
    json.member("name", one.first);
    count(json, "units", one.second);
    json.end_object();
  });
}

void strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& all) {
  list(json, key, all, [&](const std::string& one) { json.value(one); });
}

void write_field(JsonWriter& json, const FieldOrigin& field) {
  json.begin_object();
  json.member("field", field.field);
  json.member("layer", field.layer);
  counts(json, "types", field.types);
  json.member("first_stage", field.first_stage);
  count(json, "traced", field.traced);
  count(json, "copied", field.copied);
  count(json, "generated", field.generated);
  count(json, "written", field.written);
  json.member("derived", field.derived);
  strings(json, "makers", field.makers);
  list(json, "stages", field.stages, [&](const FieldOrigin::At& at) {
    json.begin_object();
    json.member("stage", at.stage);
    count(json, "present", at.present);
    count(json, "units", at.units);
    count(json, "slots", at.slots);
    json.end_object();
  });
  json.end_object();
}

void write_loss(JsonWriter& json, const FlowLoss& loss) {
  json.begin_object();
  json.member("kind", loss.wrong ? "overwritten" : "lost");
  strings(json, "fields", loss.fields);
  count(json, "units", loss.units);
  strings(json, "names", loss.names);
  json.member("site", loss.title);
  if (!loss.pattern.empty()) json.member("pattern", loss.pattern);
  if (!loss.place.empty()) json.member("place", loss.place);
  if (!loss.evidence.empty()) json.member("evidence", loss.evidence);
  json.end_object();
}

void write_stage(JsonWriter& json, const FlowStage& stage) {
  json.begin_object();
  json.member("stage", stage.key);
  json.member("title", stage.title);
  count(json, "units", stage.units);
  count(json, "new", stage.fresh);
  counts(json, "fields", stage.fields);
  list(json, "losses", stage.losses, [&](const FlowLoss& loss) { write_loss(json, loss); });
  json.end_object();
}

void write_derivable(JsonWriter& json, const Derivable& one) {
  json.begin_object();
  json.member("stage", one.stage);
  count(json, "units", one.units);
  count(json, "have_handle", one.have_handle);
  list(json, "carriers", one.carriers, [&](const Carrier& carrier) {
    json.begin_object();
    json.member("field", carrier.field);
    count(json, "present", carrier.present);
    count(json, "contradicted", carrier.contradicted);
    json.end_object();
  });
  counts(json, "through_origins", one.through);
  json.end_object();
}

void write_caveats(JsonWriter& json, const std::vector<Caveat>& all) {
  list(json, "caveats", all, [&](const Caveat& caveat) {
    json.begin_object();
    json.member("code", caveat.code);
    json.member("text", caveat.text);
    json.end_object();
  });
}

}  // namespace

std::string analysis_json(const Analysis& analysis) {
  std::string out;
  JsonWriter json(out, 2);
  json.begin_object();
  json.member("format", "kerntrail-analysis");
  json.member("version", 1);
  json.member("model", analysis.report.model_name);
  list(json, "sections", analysis.sections, [&](const AnalysisSection& section) {
    json.begin_object();
    json.member("compile", compile_name(section.compile));
    if (!section.direction.empty()) json.member("direction", section.direction);
    list(json, "fields", section.fields, [&](const FieldOrigin& field) { write_field(json, field); });
    list(json, "flow", section.flow, [&](const FlowStage& stage) { write_stage(json, stage); });
    list(json, "derivable", section.derivable, [&](const Derivable& one) { write_derivable(json, one); });
    write_caveats(json, section.caveats);
    json.end_object();
  });
  write_caveats(json, analysis.caveats);
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
