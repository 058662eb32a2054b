// Random captures: stages, graphs, values, links and names at random; every output must hold its promises.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "analyse/node_mapping.h"
#include "base/json.h"
#include "base/strings.h"
#include "capture_builder.h"
#include "invariants.h"
#include "kerntrail/gate.h"
#include "model/capture_fixtures.h"
#include "render/diff_text.h"
#include "render/drops_markdown.h"
#include "render/exports.h"
#include "render/gate.h"
#include "render/json_output.h"
#include "render/markdown.h"
#include "render/mermaid.h"
#include "render/outputs.h"
#include "render/verify_markdown.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;

template <class T>
T pick(const std::vector<T>& from) {
  return from[*rc::gen::inRange<std::size_t>(0, from.size())];
}

std::string hostile() {
  static const std::vector<std::string> kNames{"x",
                                               "add_1",
                                               "a|b",
                                               "`",
                                               "``x`",
                                               "<script>alert(1)</script>",
                                               "\"q\"",
                                               "end",
                                               "a\nb",
                                               "\x1b[31m",
                                               "#",
                                               "n0 --> n1",
                                               "]",
                                               "```",
                                               "=cmd()",
                                               "",
                                               " ",
                                               "\\|",
                                               "\xE2\x80\xAE",
                                               "-"};
  return pick(kNames);
}

std::vector<UnitId> some(const std::vector<UnitId>& from) {
  std::vector<UnitId> result;
  for (UnitId unit : from) {
    if (*rc::gen::inRange(0, 3) == 0) result.push_back(unit);
  }
  return result;
}

const std::string& handle() {
  static const std::vector<std::string> kHandles{
      R"({"id":"1","source":{"file":"m.py","start_line":3},"aten_op":"aten.mm.default","ir_chain":["mm","buf0"],"fused_from":[]})",
      R"({"id":"2","source":null,"aten_op":null,"ir_chain":[],"fused_from":[{"aten_op":"a"},{"aten_op":"a"}]})",
      R"({"id":7})", R"([1,2])", R"({})"};
  return kHandles[*rc::gen::inRange<std::size_t>(0, kHandles.size())];
}

// What a kernel's text says of nodes, or something else in its place.
std::string witness() {
  static const std::vector<std::string> kWitnesses{
      R"([{"lines":[{"line":1,"does":"load","op":"load","unit":0},{"line":2,"does":"compute","op":"`|","unit":1}],
          "bodies":[{"operation":"<b>|","ops":[{"op":"load","unit":0},{"op":"x","unit":9}]}]}])",
      R"([{"lines":[{"line":-1,"does":"compiler_made","made":{"file":"a|\u001b","line":9,"function":"`"}},
          {"line":2,"does":"what","unit":0},{"does":"index","shared":true}]}])",
      R"([{"lowered":[{"operation":"op1","unit":0},{"operation":7}]},5,[]])", R"({"lines":3})", R"([])"};
  return pick(kWitnesses);
}

class RandomRun {
 public:
  RandomRun() {
    b_.recorder().attr_kind({"witness", ValueType::kJson, "", "", false});
    b_.recorder().attr_kind({"class", ValueType::kText, "", "", false});
  }

  Capture make() {
    for (int c = *rc::gen::inRange(0, 3); c > 0; --c) add_compile();
    return b_.finish(*rc::gen::arbitrary<bool>());
  }

 private:
  struct Kind {
    const char* stage;
    const char* graph;
    UnitKind unit;
  };

  void add_compile() {
    static const std::vector<Kind> kKinds{
        {"fx_pre_grad", "fx", UnitKind::kFxNode},     {"fx_aten", "fx", UnitKind::kFxNode},
        {"fx_post_grad", "fx", UnitKind::kFxNode},    {"ir_pre_pass", "ir", UnitKind::kOperation},
        {"ir_post_pass", "ir", UnitKind::kOperation}, {"op_spec", "op_spec", UnitKind::kOpSpec},
        {"kernel", "kernel", UnitKind::kKernel},      {"superdsc", "bundle", UnitKind::kBundleFile}};
    const CompileId compile = b_.compile(*rc::gen::element<std::string>("inductor", "kerntrail_spyre"), hostile());
    std::vector<UnitId> all;
    std::vector<UnitId> previous;  // of the same unit kind, so that units live on from stage to stage
    UnitKind previous_kind = UnitKind::kOther;
    for (const Kind& kind : kKinds) {
      if (*rc::gen::inRange(0, 6) == 0) continue;
      const GraphId graph =
          b_.graph(compile, kind.graph, *rc::gen::element<std::string>("none", "forward", "backward", "inference"));
      std::vector<UnitId> units = previous_kind == kind.unit ? some(previous) : std::vector<UnitId>{};
      for (int n = *rc::gen::inRange(0, 6); n > 0; --n) units.push_back(b_.unit(graph, kind.unit));
      std::vector<CaptureBuilder::Seen> seen;
      for (UnitId unit : units) seen.push_back(look(unit, kind, all, units));
      if (!previous.empty()) some_passes(graph, kind, all, units);
      b_.snapshot(kind.stage, graph, seen);
      all.insert(all.end(), units.begin(), units.end());
      previous = units;
      previous_kind = kind.unit;
    }
    for (const char* link : {"create_op_spec", "define_kernel", "bundle_file", "some_link"}) {
      if (all.empty() || *rc::gen::inRange(0, 3) == 0) continue;
      b_.recorder().link(link, some(all), some(all));
    }
    if (!all.empty())
      b_.recorder().claim(pick(all), *rc::gen::element<std::string>("compiler", "closure"), "origins", some(all));
    b_.recorder().note({"some-note", Severity::kInfo, hostile(), compile, GraphId::kNone});
  }

  // Passes before the stage is looked at, nested or not, with births of any kind.
  void some_passes(GraphId graph, const Kind& kind, const std::vector<UnitId>& all, const std::vector<UnitId>& units) {
    std::vector<PassId> open;
    std::vector<UnitId> both = all;
    both.insert(both.end(), units.begin(), units.end());
    for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
      Pass pass;
      pass.graph = graph;
      pass.name = *rc::gen::element<std::string>("insert_restickify", "remove_noop_ops", "p", hostile());
      pass.kind = *rc::gen::element(PassKind::kPass, PassKind::kStage, PassKind::kGap);
      if (!open.empty()) pass.parent = pick(open);
      open.push_back(b_.recorder().begin_pass(pass));
      for (UnitId unit : some(units)) {
        b_.recorder().birth({unit, *rc::gen::element(open.back(), PassId::kNone),
                             *rc::gen::element<std::string>("match", "replacement", "users", "frame", "copy", "fusion",
                                                            "created", "odd"),
                             hostile(), LocId::kNone, b_.frame(hostile(), *rc::gen::inRange(0, 3), hostile()),
                             some(both)});
      }
      std::vector<model::ObservedUnit> shown;
      for (UnitId unit : some(both)) shown.push_back(look(unit, kind, all, units).value());
      if (*rc::gen::arbitrary<bool>()) b_.recorder().look(open.back(), graph, shown);
      Pass done;
      done.created = some(units);
      done.erased = some(both);
      done.changed = some(units);
      for (UnitId unit : some(both)) done.replaced.emplace_back(unit, pick(both));
      if (*rc::gen::inRange(0, 4) != 0) b_.recorder().end_pass(open.back(), done);
    }
  }

  CaptureBuilder::Seen look(UnitId unit, const Kind& kind, const std::vector<UnitId>& all,
                            const std::vector<UnitId>& same) {
    CaptureBuilder::Seen seen = b_.seen(unit);
    if (*rc::gen::inRange(0, 5) != 0) seen.text("name", hostile());
    if (kind.unit == UnitKind::kFxNode) {
      seen.text("op", *rc::gen::element<std::string>("call_function", "call_function", "placeholder", "output"));
      seen.text("target", hostile()).refs("inputs", some(same), "list").json("keys", R"(["b|","a"])");
      if (*rc::gen::arbitrary<bool>()) seen.stack("m|.py", *rc::gen::inRange(0, 3), hostile());
      if (*rc::gen::inRange(0, 3) == 0) seen.from_node("[]", some(all));
      if (*rc::gen::inRange(0, 3) == 0) seen.empty("source_fn_stack");
    } else {
      if (*rc::gen::arbitrary<bool>()) seen.refs("origins", some(all));
      if (*rc::gen::inRange(0, 3) == 0) seen.unreadable("traceback");
      if (*rc::gen::arbitrary<bool>()) seen.json("debug_handle", handle(), "DebugHandle");
      if (*rc::gen::inRange(0, 3) == 0) seen.refs("buffer_origins", some(all));
      if (*rc::gen::inRange(0, 4) == 0) seen.text("parse_error", hostile());
      if (*rc::gen::inRange(0, 3) == 0) seen.json("history", R"([{"kind":"fusion","pass_name":"p"},7])");
      if (kind.unit == UnitKind::kKernel) {
        seen.text("class", *rc::gen::element<std::string>("loop", "extern", hostile()));
        if (*rc::gen::inRange(0, 4) != 0) seen.json_refs("witness", witness(), some(all));
      }
      seen.json("op_keys", R"(["0_add|"])").json("fields", R"(["op"])").json("attributes", R"({"a":1})");
    }
    return seen;
  }

  CaptureBuilder b_{{{"program", hostile()}, {"metadata", hostile()}}};
};

std::size_t splitting_pipes(std::string_view row) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < row.size(); ++i) n += row[i] == '|' && (i == 0 || row[i - 1] != '\\') ? 1U : 0U;
  return n;
}

// Every row of a table has as many columns as its header, and nothing of a value starts a line of its own.
void expect_tables_hold(const std::string& markdown) {
  std::size_t columns = 0;
  bool fenced = false;
  for (std::string_view line : base::split_lines(markdown)) {
    if (line.substr(0, 3) == "```") fenced = !fenced;
    if (fenced || line.substr(0, 1) != "|") {
      columns = 0;
      continue;
    }
    if (columns == 0) columns = splitting_pipes(line);
    RC_ASSERT(splitting_pipes(line) == columns);
  }
  RC_ASSERT(!fenced);
}

RC_GTEST_PROP(RandomCapture, EveryOutputHoldsItsPromises, ()) {
  const Capture capture = RandomRun().make();
  testing::expect_invariants(capture);
  for (const std::vector<std::string>& stages : {std::vector<std::string>{}, std::vector<std::string>{"all"}}) {
    ReportOptions options;
    options.analysis.stages = stages;
    const auto report = make_report(capture, options);
    RC_ASSERT(report.has_value());
    expect_tables_hold(render::report_markdown(*report));
    RC_ASSERT(base::Json::parse(render::report_json(capture, *report)).has_value());
    const auto all = matrices(capture, options.analysis);
    RC_ASSERT(all.has_value());
    RC_ASSERT(base::Json::parse(render::matrix_json(capture, *all)).has_value());
    const auto ways = lineages(capture, options.analysis);
    RC_ASSERT(ways.has_value());
    RC_ASSERT(base::Json::parse(render::lineage_json(capture, *ways)).has_value());
    RC_ASSERT(render::lineage_tree(capture, *ways).find('\x1b') == std::string::npos);
    RC_ASSERT(!render::lineage_dot(capture, *ways).empty());
  }
  const auto lost = drops(capture);
  RC_ASSERT(lost.has_value());
  for (const DropGrouping by : {DropGrouping::kPass, DropGrouping::kLine, DropGrouping::kField, DropGrouping::kUnit}) {
    expect_tables_hold(render::drops_markdown(*lost, by, capture_state(capture)));
    RC_ASSERT(base::Json::parse(render::drops_json(*lost, by, capture_state(capture))).has_value());
  }
  const auto self = diff(capture, capture);
  RC_ASSERT(self.has_value());
  RC_ASSERT(self->totals.same());
  RC_ASSERT(self->totals.only_old + self->totals.only_new == 0U);
  const auto raw = render::raw_export(capture);
  RC_ASSERT(raw.has_value());
  const auto parsed = base::Json::parse(*raw);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(!render::render_summary(capture, {}).empty());
  RC_ASSERT(!::testing::Test::HasFailure());
}

// Text that reaches a terminal or a page: UTF-8 without control characters.
void expect_plain(const std::string& text) {
  RC_ASSERT(base::is_valid_utf8(text));
  for (const char c : text) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t');
}

void expect_sound_page(const std::string& markdown) {
  expect_plain(markdown);
  expect_tables_hold(markdown);
}

// Explanations of whatever can be asked for, the analysis, claims against the witness, the gate, exports.
RC_GTEST_PROP(RandomCapture, EveryJudgementHoldsItsPromises, ()) {
  const Capture capture = RandomRun().make();
  const auto analysis = make_analysis(capture);
  RC_ASSERT(analysis.has_value());
  expect_sound_page(render::analysis_markdown(*analysis, ""));
  RC_ASSERT(base::Json::parse(render::analysis_json(*analysis)).has_value());
  std::vector<std::string> questions{"m|.py:1", "1", hostile()};
  for (std::size_t u = 0; u < capture.units.size(); u += 5) questions.push_back(unit_name(capture, id_at<UnitId>(u)));
  for (const std::string& question : questions) {
    const auto answers = explain(capture, question);
    if (!answers) continue;  // the command line makes errors visible text
    expect_plain(render::explain_text(*answers));
    RC_ASSERT(base::Json::parse(render::explain_json(*answers)).has_value());
  }
  if (const auto verified = verify(capture)) {
    expect_sound_page(render::verify_markdown(*verified, capture_state(capture)));
    RC_ASSERT(base::Json::parse(render::verify_json(*verified, capture_state(capture))).has_value());
  }
  if (const auto mappings = analyse::node_mappings(capture, {}, std::nullopt)) {
    for (const analyse::NodeMapping& mapping : *mappings) {
      const std::string document = render::node_mappings_json(mapping);
      const auto read = base::Json::parse(document);
      if (!read) RC_FAIL(read.error().text() + document);
      RC_ASSERT(base::Json::parse(render::kernel_stack_traces_json(mapping)).has_value());
    }
  }
  for (std::string_view table : render::kTables) RC_ASSERT(render::table_csv(capture, table).has_value());
  GateConfig config;
  config.coverage.push_back({{}, {"*"}, {"*"}, "", "", 1.0, true});
  config.drops.push_back({{}, gate_classes(), {}, {}, {}, 0.0});
  config.verified.push_back({{}, {}, {}, {}, true, 1.0, 1.0});
  GateInput input;
  input.today = "2026-01-01";
  const auto judged = gate(capture, config, input);
  RC_ASSERT(judged.has_value());
  const render::GateView view{"c|\x1b.ndjson", "k.toml", "", "/r"};
  RC_ASSERT(base::Json::parse(render::gate_json(*judged, view)).has_value());
  RC_ASSERT(base::Json::parse(render::gate_sarif(*judged, view)).has_value());
  expect_sound_page(render::gate_markdown(*judged, view));
  for (const auto& make : {render::gate_text, render::gate_github, render::gate_junit})
    expect_plain(make(*judged, view));
}

// Two random runs have nothing to do with each other: whatever is found, it adds up and is told safely.
RC_GTEST_PROP(RandomCapture, AnyTwoCanBeCompared, ()) {
  const Capture old = RandomRun().make();
  const Capture now = RandomRun().make();
  const auto result = diff(old, now);
  RC_ASSERT(result.has_value());
  for (const DiffPart& part : result->parts) {
    for (const StageMatch& stage : part.stages) {
      std::size_t old_units = stage.pairs.size() + stage.only_old.size();
      std::size_t new_units = stage.pairs.size() + stage.only_new.size();
      for (const UnitGroup& group : stage.groups) {
        old_units += group.old_units.size();
        new_units += group.new_units.size();
      }
      RC_ASSERT(old_units == stage.old_total);
      RC_ASSERT(new_units == stage.new_total);
    }
  }
  const render::DiffNames names{"old|`\x1b", "new"};
  const std::string markdown = render::diff_markdown(*result, names);
  expect_tables_hold(markdown);
  RC_ASSERT(markdown.find('\x1b') == std::string::npos);
  RC_ASSERT(base::Json::parse(render::diff_json(*result, names)).has_value());
  RC_ASSERT(render::unlike_text(result->unlike).find('\x1b') == std::string::npos);
}

// Records that no probe would write: looks at foreign units, births in cycles, passes that never end.
TEST(RandomRecords, LostProvenanceAddsUpWhateverTheRecords) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    model::Replay replay;
    model::Recorder recorder(replay);
    model::fixtures::record_random(recorder, seed, 400);
    ASSERT_EQ(replay.error(), nullptr) << replay.error()->text();
    const Capture capture = replay.take();
    const auto lost = drops(capture, {{{"all"}, {}}, {}});
    ASSERT_TRUE(lost) << lost.error().text();
    testing::expect_drops(capture);
    expect_tables_hold(render::drops_markdown(*lost, DropGrouping::kPass, capture_state(capture)));
    const auto self = diff(capture, capture);
    ASSERT_TRUE(self) << self.error().text();
    EXPECT_TRUE(self->totals.same());
    expect_tables_hold(render::diff_markdown(*self, {"old", "new"}));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kerntrail
