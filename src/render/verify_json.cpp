#include <array>

#include "base/json.h"
#include "render/json_output.h"
#include "render/json_parts.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

class Writer {
 public:
  Writer(JsonWriter& json, const Verification& one) : json_(json), one_(one) {}

  void write() {
    json_.begin_object();
    json_.member("compile", compile_name(one_.compile));
    list("rows", one_.rows, [&](const ScoreRow& v) { write_row(json_, v); });
    list("units", one_.units, [&](const UnitVerdict& v) { unit(v); });
    list("rewrites", one_.rewrites, [&](const Rewrite& v) { rewrite(v); });
    list("unverified", one_.unverified, [&](const Unverified& v) {
      json_.begin_object();
      named("unit", v.unit);
      json_.member("stage", v.stage);
      json_.member("reason", v.reason);
      json_.end_object();
    });
    json_.end_object();
  }

  static void write_row(JsonWriter& json, const ScoreRow& v) {
    json.begin_object();
    json.member("stage", v.stage);
    json.member("title", v.title);
    json.member("class", v.unit_class);
    json.member("claimant", "compiler");
    json.member("evidence", v.evidence);
    json.member("units", static_cast<std::uint64_t>(v.units));
    score(json, "lines", v.lines);
    if (v.names_nodes) score(json, "nodes", v.nodes);
    json.end_object();
  }

 private:
  template <class Items, class Write>
  void list(std::string_view key, const Items& items, Write write) {
    json_.key(key).begin_array();
    for (const auto& item : items) write(item);
    json_.end_array();
  }

  static void score(JsonWriter& json, std::string_view key, const Score& v) {
    json.key(key).begin_object();
    json.member("claimed", static_cast<std::uint64_t>(v.total()));
    for (std::size_t i = 0; i < kSupports; ++i)
      json.member(support_name(static_cast<Support>(i)), static_cast<std::uint64_t>(v.claimed[i]));
    json.member("missed", static_cast<std::uint64_t>(v.missed));
    json.member("precision", v.precision());
    json.member("recall", v.recall());
    json.end_object();
  }

  void named(std::string_view key, UnitId unit) {
    const auto found = one_.labels.find(unit);
    if (found == one_.labels.end()) return;
    json_.member(key, found->second.id);
    if (!found->second.name.empty()) json_.member("name", found->second.name);
    if (!found->second.target.empty()) json_.member("target", found->second.target);
  }

  void ids(std::string_view key, const std::vector<UnitId>& units) {
    if (units.empty()) return;
    list(key, units, [&](UnitId unit) { json_.value(one_.labels.at(unit).id); });
  }

  void unit(const UnitVerdict& v) {
    json_.begin_object();
    named("unit", v.unit);
    json_.member("stage", v.stage);
    json_.member("class", v.unit_class);
    json_.member("claimant", "compiler");
    json_.member("evidence", v.evidence);
    list("lines", v.lines, [&](const LineVerdict& line) {
      json_.begin_object();
      json_.member("file", line.file);
      json_.member("line", line.line);
      if (!line.code.empty()) json_.member("code", line.code);
      json_.member("claimed", line.claimed);
      json_.member("witness", support_name(line.support));
      ids("through", line.nodes);
      ids("done_by", line.elsewhere);
      if (!line.rewrites.empty()) list("rewrites", line.rewrites, [&](std::uint32_t i) { json_.value(i); });
      json_.end_object();
    });
    if (v.names_nodes) {
      list("nodes", v.nodes, [&](const NodeVerdict& node) {
        json_.begin_object();
        named("node", node.node);
        json_.member("claimed", node.claimed);
        json_.member("witness", support_name(node.support));
        ids("done_by", node.elsewhere);
        json_.end_object();
      });
    }
    json_.end_object();
  }

  void rewrite(const Rewrite& v) {
    json_.begin_object();
    named("node", v.node);
    write_rewrite(json_, v);
    json_.end_object();
  }

  JsonWriter& json_;
  const Verification& one_;
};

}  // namespace

void write_rewrite(JsonWriter& json, const Rewrite& v) {
  json.key("was").begin_array();
  for (const std::string& line : v.was) json.value(line);
  json.end_array();
  json.member("now", v.now);
  json.member("at_birth", v.at_birth);
  if (!v.pass.empty()) json.member("pass", v.pass);
  if (v.place.empty()) return;
  json.member("place", v.place);
  json.member("place_is_pass", v.place_is_pass);
}

void write_verification(JsonWriter& json, const Verification& one) { Writer(json, one).write(); }

std::string verify_json(const std::vector<Verification>& all, const CaptureState& state) {
  std::string out;
  JsonWriter json(out, 2);
  json.begin_object();
  json.member("format", "kerntrail-verify");
  json.member("version", 1);
  json.member("torn", state.torn);
  json.member("partial", state.partial);
  json.key("totals").begin_array();
  for (const ScoreRow& row : total_rows(all)) Writer::write_row(json, row);
  json.end_array();
  json.key("parts").begin_array();
  for (const Verification& one : all) write_verification(json, one);
  json.end_array();
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
