#include <array>

#include "base/json.h"
#include "render/json_output.h"
#include "render/json_parts.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

constexpr std::array<std::string_view, 3> kPassKinds{"pass", "stage", "gap"};

void count(JsonWriter& json, std::string_view key, std::size_t n) { json.member(key, static_cast<std::uint64_t>(n)); }

void text(JsonWriter& json, std::string_view key, std::string_view value) {
  if (!value.empty()) json.member(key, value);
}

class Writer {
 public:
  Writer(JsonWriter& json, const Drops& drops) : json_(json), drops_(drops) {}

  void write() {
    json_.begin_object();
    json_.member("compile", compile_name(drops_.compile));
    text(json_, "direction", drops_.direction);
    json_.member("passes_recorded", drops_.passes_recorded);
    json_.member("all_stages", drops_.all_stages);
    if (!drops_.notes.empty()) list("notes", drops_.notes, [&](const Note& v) { note(v); });
    list("stages", drops_.stages, [&](const StageTally& v) { stage(v); });
    list("sites", drops_.sites, [&](const DropSite& v) { site(v); });
    list("losses", drops_.losses, [&](const Loss& v) { loss(v); });
    list("marks", drops_.marks, [&](const Mark& v) { mark(v); });
    list("orphans", drops_.orphans, [&](const Orphan& v) { orphan(v); });
    list("declared", drops_.declared, [&](const DeclaredUse& v) { declared(v); });
    list("findings", drops_.findings, [&](const ObserverFinding& v) { finding(v); });
    list("passes", drops_.passes, [&](const PassTally& v) { pass(v); });
    list("intervals", drops_.intervals, [&](const StageInterval& v) { interval(v); });
    json_.end_object();
  }

  void groups(DropGrouping by) {
    list("groups", group_drops(drops_, by), [&](const DropGroup& group) {
      json_.begin_object();
      json_.member("title", group.title);
      list("losses", group.losses, [&](std::uint32_t i) { json_.value(i); });
      list("marks", group.marks, [&](std::uint32_t i) { json_.value(i); });
      json_.end_object();
    });
  }

 private:
  template <class Items, class Write>
  void list(std::string_view key, const Items& items, Write write) {
    json_.key(key).begin_array();
    for (const auto& item : items) write(item);
    json_.end_array();
  }

  void unit(std::string_view key, UnitId id) {
    const auto found = drops_.units.find(id);
    if (found != drops_.units.end()) json_.member(key, found->second.id);
  }
  void named(UnitId id) {
    unit("unit", id);
    const auto found = drops_.units.find(id);
    if (found == drops_.units.end()) return;
    text(json_, "name", found->second.name);
    text(json_, "target", found->second.target);
  }
  void units(std::string_view key, const std::vector<UnitId>& ids) {
    list(key, ids, [&](UnitId id) { json_.value(drops_.units.at(id).id); });
  }
  void field(AttrId id) { json_.member("field", drops_.fields[index(id)]); }

  void named_pass(PassId id) {
    if (!has(id)) return;
    const PassLabel& label = drops_.pass_labels.at(id);
    json_.key("pass").begin_object();
    json_.member("id", static_cast<std::uint64_t>(index(id)));
    json_.member("name", label.name);
    text(json_, "subsystem", label.subsystem);
    json_.member("kind", kPassKinds[static_cast<std::size_t>(label.kind)]);
    text(json_, "place", label.place);
    if (!label.within.empty()) list("within", label.within, [&](const std::string& name) { json_.value(name); });
    json_.end_object();
  }

  void intent(std::uint32_t i) {
    const Intent& by = drops_.intents[i];
    json_.key("intent").begin_object();
    json_.member("pass", by.pass);
    json_.member("kind", intent_kind_name(by.kind));
    json_.member("reason", by.reason);
    json_.member("origin", by.origin);
    json_.end_object();
  }

  template <std::size_t N, class Name>
  void counts(std::string_view key, const std::array<std::size_t, N>& values, Name name) {
    json_.key(key).begin_object();
    for (std::size_t i = 0; i < N; ++i) count(json_, name(i), values[i]);
    json_.end_object();
  }

  void note(const Note& v) {
    json_.begin_object();
    json_.member("code", v.code);
    json_.member("severity", severity_name(v.severity));
    json_.member("text", v.text);
    json_.end_object();
  }

  void stage(const StageTally& v) {
    json_.begin_object();
    json_.member("stage", v.key);
    json_.member("title", v.title);
    json_.member("noun", v.noun);
    count(json_, "units", v.units);
    list("fields", v.fields, [&](const FieldTally& f) { tally(v, f); });
    json_.end_object();
  }

  void tally(const StageTally& stage, const FieldTally& v) {
    json_.begin_object();
    json_.member("field", v.name);
    json_.member("layer", v.layer);
    json_.member("created", v.created);
    count(json_, "units", stage.units);
    count(json_, "present", v.present);
    count(json_, "absent", v.absent);
    count(json_, "unreadable", v.unreadable);
    counts("qualities", v.qualities, [](std::size_t i) { return quality_name(static_cast<Quality>(i)); });
    counts("reasons", v.reasons, [](std::size_t i) { return reason_name(static_cast<Reason>(i)); });
    json_.key("units_to_note").begin_array();
    for (const FieldUnit& unit : v.units) field_unit(unit);
    json_.end_array();
    json_.end_object();
  }

  // Units of which the counts say all there is to say are left out.
  void field_unit(const FieldUnit& v) {
    const bool present = v.state == State::kPresent;
    if (present && v.quality == Quality::kKept) return;
    const bool plain = v.reason == Reason::kNotCreatedYet;
    if (!present && v.state != State::kUnreadable && plain) return;
    json_.begin_object();
    unit("unit", v.unit);
    json_.member("state", state_name(v.state));
    if (present) {
      json_.member("quality", quality_name(v.quality));
      if (v.mark != kNoIndex) json_.member("mark", v.mark);
    } else if (v.state != State::kUnreadable) {
      json_.member("reason", reason_name(v.reason));
      text(json_, "carrier", v.carrier);
      if (v.loss != kNoIndex) json_.member("loss", v.loss);
      if (v.reason == Reason::kInheritedGap) json_.member("root", reason_name(v.root));
      if (v.guessed) json_.member("guessed", true);
      if (v.reason == Reason::kInheritedGap && has(v.orphan)) unit("root_unit", v.orphan);
    }
    json_.end_object();
  }

  void site(const DropSite& v) {
    json_.begin_object();
    json_.member("kind", site_kind_name(v.kind));
    json_.member("title", v.title);
    named_pass(v.pass);
    text(json_, "from", v.from);
    text(json_, "to", v.to);
    text(json_, "after_pass", v.after_pass);
    text(json_, "pattern", v.pattern);
    text(json_, "place", v.place);
    if (v.by_pass && !v.place.empty()) json_.member("place_is", v.by_call ? "call" : "function");
    if (!v.frames.empty()) list("frames", v.frames, [&](const std::string& frame) { json_.value(frame); });
    json_.end_object();
  }

  void loss(const Loss& v) {
    json_.begin_object();
    named(v.unit);
    field(v.field);
    json_.member("site", v.site);
    json_.member("way", loss_way_name(v.way));
    json_.member("evidence", v.evidence);
    units("had", v.had);
    count(json_, "sources", v.sources);
    // Which of several matched nodes a new one stands for, a match does not say.
    if (v.evidence == "match" && v.sources > 1) json_.member("at_least_one", true);
    json_.member("in_stage", v.in_stage);
    count(json_, "inherited", v.heirs.size());
    json_.end_object();
  }

  void mark(const Mark& v) {
    json_.begin_object();
    named(v.unit);
    field(v.field);
    json_.member("quality", quality_name(v.quality));
    if (v.site != kNoIndex) json_.member("site", v.site);
    text(json_, "evidence", v.evidence);
    if (!v.others.empty()) units("others", v.others);
    if (v.quality == Quality::kOverwritten) json_.member("swapped", v.swapped);
    if (v.sources > 0) {
      count(json_, "sources", v.sources);
      count(json_, "different", v.different);
    }
    count(json_, "inherited", v.heirs.size());
    text(json_, "was", v.was);
    text(json_, "now", v.now);
    if (!v.given_up.empty()) list("given_up", v.given_up, [&](const std::string& value) { json_.value(value); });
    if (has(v.against)) json_.member("against", drops_.fields[index(v.against)]);
    json_.end_object();
  }

  void orphan(const Orphan& v) {
    json_.begin_object();
    named(v.unit);
    if (v.site != kNoIndex) json_.member("site", v.site);
    list("fields", v.fields, [&](AttrId id) { json_.value(drops_.fields[index(id)]); });
    json_.member("in_stage", v.in_stage);
    count(json_, "inherited", v.heirs.size());
    json_.end_object();
  }

  void declared(const DeclaredUse& v) {
    json_.begin_object();
    named(v.unit);
    field(v.field);
    named_pass(v.pass);
    intent(v.intent);
    json_.end_object();
  }

  void finding(const ObserverFinding& v) {
    json_.begin_object();
    json_.member("rule", observer_rule_id(v.rule));
    named_pass(v.pass);
    named(v.unit);
    unit("now", v.now);
    if (!v.lost.empty()) units("lost", v.lost);
    count(json_, "total", v.total);
    if (v.intent != kNoIndex) intent(v.intent);
    json_.end_object();
  }

  void leavers(const std::vector<UnitFate>& fates) {
    list("leavers", fates, [&](const UnitFate& fate) {
      json_.begin_object();
      unit("unit", fate.unit);
      json_.member("fate", fate_name(fate.fate));
      unit("by", fate.by);
      if (fate.declared) json_.member("declared", true);
      json_.end_object();
    });
  }

  void pass(const PassTally& v) {
    json_.begin_object();
    named_pass(v.pass);
    count(json_, "created", v.created);
    count(json_, "changed", v.changed);
    count(json_, "retargeted", v.retargeted);
    count(json_, "left", v.left);
    counts("fates", v.fates, [](std::size_t i) { return fate_name(static_cast<Fate>(i)); });
    leavers(v.leavers);
    count(json_, "losses", v.losses);
    count(json_, "marks", v.marks);
    count(json_, "findings", v.findings);
    json_.end_object();
  }

  void interval(const StageInterval& v) {
    json_.begin_object();
    json_.member("from", v.from);
    json_.member("to", v.to);
    count(json_, "entering", v.entering);
    counts("fates", v.fates, [](std::size_t i) { return fate_name(static_cast<Fate>(i)); });
    leavers(v.leavers);
    json_.end_object();
  }

  JsonWriter& json_;
  const Drops& drops_;
};

std::string_view grouping_name(DropGrouping by) {
  constexpr std::array<std::string_view, 4> kNames{"pass", "line", "field", "unit"};
  return kNames[static_cast<std::size_t>(by)];
}

}  // namespace

void write_drops(JsonWriter& json, const Drops& drops) { Writer(json, drops).write(); }

namespace {

void write_seam_loss(JsonWriter& json, const SeamLoss& loss) {
  json.begin_object();
  json.member("seam", seam_name(loss.seam));
  json.member("field", loss.field);
  json.member("changed", loss.changed);
  text(json, "was", loss.was);
  text(json, "now", loss.now);
  json.member("unit", loss.unit);
  text(json, "name", loss.unit_name);
  text(json, "kernel", loss.kernel_name);
  text(json, "file", loss.file_name);
  text(json, "place", loss.place);
  json.end_object();
}

void write_round_trip(JsonWriter& json, const RoundTrip& trip) {
  json.begin_object();
  json.member("compile", compile_name(trip.compile));
  count(json, "kernels", trip.kernels);
  count(json, "op_specs", trip.op_specs);
  count(json, "printed", trip.printed);
  count(json, "reread", trip.reread);
  count(json, "written", trip.written);
  json.key("losses").begin_array();
  for (const SeamLoss& loss : trip.losses) write_seam_loss(json, loss);
  json.end_array();
  json.key("breaks").begin_array();
  for (const SeamBreak& one : trip.breaks) {
    json.begin_object();
    json.member("seam", seam_name(one.seam));
    text(json, "kernel", one.kernel_name);
    json.member("reason", one.reason);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

std::string drops_json(const std::vector<Drops>& all, DropGrouping by, const CaptureState& state,
                       const std::vector<RoundTrip>& trips) {
  std::string out;
  JsonWriter json(out, 2);
  json.begin_object();
  json.member("format", "kerntrail-drops");
  json.member("version", 1);
  json.member("torn", state.torn);
  json.member("partial", state.partial);
  text(json, "level", state.level);
  json.key("parts").begin_array();
  for (const Drops& drops : all) write_drops(json, drops);
  json.end_array();
  json.member("grouped_by", grouping_name(by));
  json.key("groupings").begin_array();
  for (const Drops& drops : all) {
    json.begin_object();
    Writer(json, drops).groups(by);
    json.end_object();
  }
  json.end_array();
  if (!trips.empty()) {
    json.key("round_trips").begin_array();
    for (const RoundTrip& trip : trips) write_round_trip(json, trip);
    json.end_array();
  }
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
