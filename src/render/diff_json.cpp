// Two captures compared, as JSON: every match, every difference (schemas/diff.schema.json).
#include "base/json.h"
#include "render/diff_text.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

class Writer {
 public:
  explicit Writer(JsonWriter& json) : json_(json) {}

  void differences(std::string_view key, const std::vector<Difference>& all) {
    list(key, all, [&](const Difference& one) {
      json_.member("code", one.code);
      json_.member("name", one.name);
      json_.member("old", one.was);
      json_.member("new", one.now);
      json_.member("can_matter", one.can_matter);
    });
  }

  void totals(const DiffTotals& t) {
    json_.key("totals").begin_object();
    number("fields_lost", t.fields_lost);
    number("fields_gained", t.fields_gained);
    number("links_worse", t.links_worse);
    number("links_better", t.links_better);
    number("drops_new", t.drops_new);
    number("drops_fixed", t.drops_fixed);
    number("drops_moved", t.drops_moved);
    number("doubts_new", t.doubts_new);
    number("doubts_gone", t.doubts_gone);
    number("matched", t.matched);
    number("ambiguous", t.ambiguous);
    number("only_old", t.only_old);
    number("only_new", t.only_new);
    json_.end_object();
  }

  void compiles(std::string_view key, const std::vector<CompileId>& ids) {
    json_.key(key).begin_array();
    for (CompileId id : ids) json_.value(compile_name(id));
    json_.end_array();
  }

  void part(const DiffPart& part) {
    part_ = &part;
    json_.member("old_compile", compile_name(part.old_compile));
    json_.member("new_compile", compile_name(part.new_compile));
    json_.member("matched_by", part.matched_by);
    list("stages", part.stages, [&](const StageMatch& stage) { write_stage(stage); });
    texts("stages_only_old", part.stages_only_old);
    texts("stages_only_new", part.stages_only_new);
    list("sites", part.sites, [&](const DiffSite& one) { write_site(one); });
    list("fields", part.fields, [&](const FieldChange& one) { write_field(one); });
    list("drops", part.drops, [&](const DropDiff& one) { write_drop(one); });
    list("qualities", part.qualities, [&](const QualityChange& one) {
      json_.member("stage", one.stage);
      json_.member("field", one.field);
      units(one.units);
      json_.member("old", quality_name(one.was));
      json_.member("new", quality_name(one.now));
      index_of("site", one.site);
      number("followers", one.followers);
    });
    list("values", part.values, [&](const ValueChange& one) {
      json_.member("stage", one.stage);
      units(one.units);
      json_.member("old", one.was);
      json_.member("old_code", one.was_code);
      json_.member("new", one.now);
      json_.member("new_code", one.now_code);
      number("followers", one.followers);
    });
    list("links", part.links, [&](const LinkDiff& one) { write_link(one); });
    number("links_same", part.links_same);
    number("lines_unmatched", part.lines_unmatched);
    number("unreadable", part.unreadable);
    json_.member("witnessed", part.witnessed);
    list("truth", part.truth, [&](const TruthRow& one) { write_truth(one); });
    list("contradictions", part.contradictions, [&](const TruthDiff& one) {
      json_.member("in", one.in_new ? "new" : "old");
      units(one.units);
      json_.member("evidence", one.evidence);
      json_.member("what", one.what);
    });
  }

  // Objects, each opened and closed here.
  template <class Items, class Write>
  void list(std::string_view key, const Items& items, Write write) {
    json_.key(key).begin_array();
    for (const auto& item : items) {
      json_.begin_object();
      write(item);
      json_.end_object();
    }
    json_.end_array();
  }

 private:
  void number(std::string_view key, std::size_t n) { json_.member(key, static_cast<std::uint64_t>(n)); }

  void index_of(std::string_view key, std::uint32_t i) {
    if (i != kNoIndex) json_.member(key, i);
  }

  void texts(std::string_view key, const std::vector<std::string>& all) {
    json_.key(key).begin_array();
    for (const std::string& text : all) json_.value(text);
    json_.end_array();
  }

  void label(std::string_view key, const std::unordered_map<UnitId, UnitLabel>& labels, UnitId unit) {
    const auto found = labels.find(unit);
    if (found == labels.end()) return;
    json_.key(key).begin_object();
    json_.member("id", found->second.id);
    if (!found->second.name.empty()) json_.member("name", found->second.name);
    if (!found->second.target.empty()) json_.member("target", found->second.target);
    json_.end_object();
  }

  void units(const UnitPair& pair) {
    label("old_unit", part_->old_labels, pair.old_unit);
    label("new_unit", part_->new_labels, pair.new_unit);
  }

  void ids(std::string_view key, const std::vector<UnitId>& all, bool in_new) {
    const auto& labels = in_new ? part_->new_labels : part_->old_labels;
    json_.key(key).begin_array();
    for (UnitId unit : all) json_.value(labels.at(unit).id);
    json_.end_array();
  }

  void write_stage(const StageMatch& stage) {
    json_.member("key", stage.key);
    json_.member("title", stage.title);
    number("old_units", stage.old_total);
    number("new_units", stage.new_total);
    list("pairs", stage.pairs, [&](const UnitMatch& pair) {
      json_.member("old", part_->old_labels.at(pair.old_unit).id);
      json_.member("new", part_->new_labels.at(pair.new_unit).id);
      json_.member("reason", match_reason_name(pair.reason));
    });
    list("groups", stage.groups, [&](const UnitGroup& group) {
      json_.member("kind", group_kind_name(group.kind));
      ids("old", group.old_units, false);
      ids("new", group.new_units, true);
    });
    ids("only_old", stage.only_old, false);
    ids("only_new", stage.only_new, true);
  }

  void write_site(const DiffSite& site) {
    json_.member("in", site.in_new ? "new" : "old");
    json_.member("kind", site_kind_name(site.kind));
    json_.member("path", site.path);
    json_.member("subsystem", site.subsystem);
    json_.member("pattern", site.pattern);
    json_.member("place", site.place);
    json_.member("in_other", site.in_other);
  }

  void write_field(const FieldChange& one) {
    json_.member("change", one.change == Change::kLost ? "lost" : "gained");
    json_.member("stage", one.stage);
    units(one.units);
    number("of_group", one.of_group);
    number("affected", one.affected);
    texts("fields", one.fields);
    index_of("site", one.site);
    json_.member("reason", one.reason);
    number("followers", one.followers);
    texts("follower_stages", one.follower_stages);
  }

  void write_drop(const DropDiff& one) {
    json_.member("change", drop_change_name(one.change));
    index_of("old_site", one.old_site);
    index_of("new_site", one.new_site);
    list("units", one.units, [&](const auto& unit) {
      units(unit.first);
      texts("fields", unit.second);
    });
    number("followers", one.followers);
  }

  void write_link(const LinkDiff& one) {
    json_.member("file", one.file);
    json_.member("line", one.line);
    json_.member("old_line", one.old_line);
    json_.member("code", one.code);
    units(one.kernels);
    json_.member("old", link_rank_name(one.was));
    json_.member("new", link_rank_name(one.now));
    json_.member("worse", one.worse());
    index_of("site", one.site);
  }

  void score(std::string_view key, const Score& was, const Score& now) {
    json_.key(key).begin_object();
    json_.member("old_precision", was.precision());
    json_.member("new_precision", now.precision());
    json_.member("old_recall", was.recall());
    json_.member("new_recall", now.recall());
    number("old_claimed", was.total());
    number("new_claimed", now.total());
    json_.end_object();
  }

  void write_truth(const TruthRow& one) {
    json_.member("stage", one.stage);
    json_.member("class", one.unit_class);
    json_.member("evidence", one.evidence);
    score("lines", one.old_lines, one.new_lines);
    score("nodes", one.old_nodes, one.new_nodes);
  }

  JsonWriter& json_;
  const DiffPart* part_ = nullptr;
};

}  // namespace

std::string diff_json(const Diff& diff, const DiffNames& names) {
  std::string out;
  JsonWriter json(out, 2);
  Writer writer(json);
  json.begin_object();
  json.member("format", "kerntrail-diff");
  json.member("version", 1);
  json.member("old", names.old_name);
  json.member("new", names.new_name);
  json.member("comparable", diff.unlike.empty());
  writer.differences("unlike", diff.unlike);
  writer.differences("settings", diff.settings);
  if (diff.cause != kNoIndex) json.member("cause", diff.cause);
  json.member("worse", diff.totals.worse());
  writer.totals(diff.totals);
  writer.compiles("only_old", diff.only_old);
  writer.compiles("only_new", diff.only_new);
  json.member("not_witnessed", diff.not_witnessed == 0 ? "" : diff.not_witnessed == 1 ? "old" : "new");
  writer.list("parts", diff.parts, [&](const DiffPart& part) { writer.part(part); });
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
