#include "model/recorder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>

#include "base/strings.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/replay.h"

namespace kerntrail::model {
namespace {

Observation text_value(Recorder& r, std::string_view text) {
  Observation o;
  o.state = State::kPresent;
  o.text = r.text(text);
  return o;
}

// A recorder with one stage, one graph of two units and two attrs, writing into a string and a replay.
struct Bench {
  std::string out;
  std::unique_ptr<NdjsonWriter> writer = NdjsonWriter::to_string(out);
  Replay replay;
  fixtures::Tee tee{*writer, replay};
  Recorder r{tee};
  StageId stage;
  AttrId a, b;
  CompileId compile;
  GraphId graph;
  UnitId u, v;

  Bench() {
    r.run({});
    stage = r.stage({"s", "S", "unit", "FX", 1});
    a = r.attr_kind({"a", ValueType::kText, "", "", false});
    b = r.inventory_attr("b");
    compile = r.compile({"0/0", 0, "x", {}});
    graph = r.graph(compile, "fx", "inference");
    u = r.unit(graph, UnitKind::kFxNode);
    v = r.unit(graph, UnitKind::kFxNode);
  }
  // The attr and snapshot lines written by `act`.
  template <class Act>
  std::vector<std::string> lines_of(Act act) {
    const std::size_t before = out.size();
    act();
    std::vector<std::string> lines;
    for (const std::string_view line : base::split_lines(std::string_view(out).substr(before))) {
      if (line.starts_with("{\"record\":\"attr\"") || line.starts_with("{\"record\":\"snapshot\""))
        lines.emplace_back(line);
    }
    return lines;
  }
  std::vector<std::string> snapshot(std::vector<ObservedUnit> units) {
    return lines_of([&] { r.snapshot(stage, graph, units); });
  }
};

TEST(Recorder, WritesDifferencesOnly) {
  Bench t;
  const Observation x = text_value(t.r, "x"), y = text_value(t.r, "y");
  EXPECT_EQ(t.snapshot({{t.u, {{t.a, x}, {t.b, y}}}, {t.v, {}}}).size(), 3U);
  EXPECT_EQ(t.snapshot({{t.u, {{t.b, y}, {t.a, x}}}, {t.v, {}}}).size(), 1U);  // order of attrs does not matter
  const auto changed = t.snapshot({{t.u, {{t.a, y}, {t.b, y}}}, {t.v, {}}});
  ASSERT_EQ(changed.size(), 2U);
  EXPECT_NE(changed[0].find("\"attr\":\"a\",\"at\":2,\"state\":\"present\""), std::string::npos) << changed[0];
  const auto vanished = t.snapshot({{t.u, {{t.a, y}}}, {t.v, {}}});
  ASSERT_EQ(vanished.size(), 2U);
  EXPECT_NE(vanished[0].find("\"attr\":\"b\",\"at\":3,\"state\":\"no_slot\""), std::string::npos) << vanished[0];
  EXPECT_EQ(t.snapshot({{t.u, {{t.a, y}, {t.b, Observation{}}}}, {t.v, {}}}).size(),
            1U);  // listed as no_slot: not listed
  ASSERT_EQ(t.replay.error(), nullptr) << t.replay.error()->text();
}

TEST(Recorder, DigestDependsOnContentAndOrderOfUnitsNotOnNumbers) {
  const auto digest = [](bool other_numbers, bool swapped, std::string_view text) {
    Bench t;
    if (other_numbers) t.r.text("takes the first number");
    const Observation x = text_value(t.r, text);
    std::vector<ObservedUnit> units = {{t.u, {{t.a, x}}}, {t.v, {}}};
    if (swapped) std::swap(units[0], units[1]);
    t.r.snapshot(t.stage, t.graph, units);
    return t.replay.capture().snapshots[0].digest;
  };
  EXPECT_EQ(digest(false, false, "x"), digest(true, false, "x"));
  EXPECT_NE(digest(false, false, "x"), digest(false, true, "x"));
  EXPECT_NE(digest(false, false, "x"), digest(false, false, "y"));
}

TEST(Recorder, ForceFullWritesTheNextSnapshotOfEachGraphWhole) {
  Bench t;
  const Observation x = text_value(t.r, "x");
  const GraphId other = t.r.graph(t.compile, "fx", "inference");
  const UnitId w = t.r.unit(other, UnitKind::kFxNode);
  const auto of_other = [&] {
    const std::vector<ObservedUnit> units = {{w, {{t.a, x}}}};
    return t.lines_of([&] { t.r.snapshot(t.stage, other, units); });
  };
  t.snapshot({{t.u, {{t.a, x}}}});
  of_other();
  t.r.force_full();
  const auto whole = t.snapshot({{t.u, {{t.a, x}}}});
  EXPECT_EQ(whole.size(), 2U);
  EXPECT_NE(whole.back().find("\"full\":true"), std::string::npos);
  EXPECT_EQ(t.snapshot({{t.u, {{t.a, x}}}}).size(), 1U);
  EXPECT_EQ(of_other().size(), 2U);
  EXPECT_EQ(of_other().size(), 1U);
  EXPECT_EQ(t.replay.error(), nullptr);
}

TEST(Recorder, ReadsBackAfterACompileWasClosed) {
  Bench t;
  const Observation x = text_value(t.r, "x");
  t.snapshot({{t.u, {{t.a, x}, {t.b, x}}}});
  t.r.close_compile(t.compile);
  t.snapshot({{t.u, {{t.a, x}}}});
  ASSERT_EQ(t.replay.error(), nullptr) << t.replay.error()->text();
  EXPECT_EQ(t.replay.capture().at(t.u, t.b, id_at<SnapshotId>(1)), nullptr);
  EXPECT_NE(t.replay.capture().at(t.u, t.b, id_at<SnapshotId>(0)), nullptr);
}

TEST(Recorder, InternsEqualContentOnce) {
  Bench t;
  EXPECT_EQ(t.r.text("x"), t.r.text("x"));
  EXPECT_NE(t.r.text("1"), t.r.json("1"));
  EXPECT_EQ(t.r.json("[1, 2]"), t.r.json("[1,2]"));
  EXPECT_EQ(t.r.json("[1, 2]"), t.r.json(" [1, 2]"));
  EXPECT_EQ(t.r.text("bad \xFF"), t.r.text("bad \xEF\xBF\xBD"));
  Loc loc;
  loc.line = 4;
  EXPECT_EQ(t.r.loc(loc), t.r.loc(loc));
  loc.line = 5;
  EXPECT_EQ(index(t.r.loc(loc)), 1U);
  EXPECT_EQ(t.r.inventory_attr("b"), t.b);
  EXPECT_EQ(t.r.stage({"s", "again", "", "", 2}), t.stage);
}

TEST(Recorder, KeepsTheFileReadableWhenTheCallerIsWrong) {
  Bench t;
  const auto beyond = static_cast<std::uint32_t>(12345);
  Observation bad = text_value(t.r, "x");
  bad.refs = {t.v, static_cast<UnitId>(beyond), UnitId::kNone};
  bad.loc = static_cast<LocId>(beyond);
  bad.repr = static_cast<TextId>(beyond);
  const CompileId other = t.r.compile({});
  const UnitId stranger = t.r.unit(t.r.graph(other, "fx", ""), UnitKind::kFxNode);
  t.snapshot({{t.u, {{t.a, bad}, {t.a, text_value(t.r, "second")}}},
              {t.u, {}},
              {UnitId::kNone, {}},
              {stranger, {}},
              {static_cast<UnitId>(beyond), {}}});
  EXPECT_EQ(t.r.snapshot(static_cast<StageId>(beyond), t.graph, {}), SnapshotId::kNone);
  EXPECT_EQ(t.r.snapshot(t.stage, GraphId::kNone, {}), SnapshotId::kNone);
  EXPECT_EQ(t.r.unit(GraphId::kNone, UnitKind::kFxNode), UnitId::kNone);
  EXPECT_EQ(t.r.graph(static_cast<CompileId>(beyond), "", ""), GraphId::kNone);
  t.r.claim(static_cast<UnitId>(beyond), "x", "y", {});
  t.r.link("k", {static_cast<UnitId>(beyond), t.u}, {});
  t.r.note({"code", Severity::kInfo, "text", static_cast<CompileId>(beyond), static_cast<GraphId>(beyond)});
  t.r.close_compile(static_cast<CompileId>(beyond));
  EXPECT_EQ(t.r.unit_name(static_cast<UnitId>(beyond)), "");
  t.r.end(true);
  t.r.end(true);
  t.r.text("after the end");
  ASSERT_EQ(t.replay.error(), nullptr) << t.replay.error()->text();
  const Capture& c = t.replay.capture();
  EXPECT_EQ(c.snapshots[0].units, std::vector<UnitId>{t.u});
  EXPECT_EQ(c.at(t.u, t.a, id_at<SnapshotId>(0))->refs, std::vector<UnitId>{t.v});
  EXPECT_EQ(c.text_of(t.u, "a", id_at<SnapshotId>(0)), "x");
  ASSERT_FALSE(c.notes.empty());
  EXPECT_EQ(c.notes[0].code, "unit-refused");
  EXPECT_TRUE(c.end && c.end->complete);
}

TEST(Recorder, RunComesFirstWhateverTheCallerDoes) {
  std::string out;
  auto writer = NdjsonWriter::to_string(out);
  Recorder r(*writer);
  r.text("x");
  r.run({});
  r.hook({"h", "a.b", HookState::kInstalled, "", "", 4, 0, "", true}, true);
  r.end(true);
  EXPECT_TRUE(out.starts_with("{\"record\":\"run\",\"format\":1}\n")) << out;
  EXPECT_NE(out.find("\"phase\":\"start\",\"label\":\"h\",\"attribute\":\"a.b\",\"state\":\"installed\"}"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("\"fired\":4"), std::string::npos);
}

TEST(Recorder, CountsUnitsThatNoSnapshotHolds) {
  Bench t;
  t.r.unit(t.graph, UnitKind::kOther, "buffer");
  t.r.unit(t.graph, UnitKind::kOther, "buffer");
  t.r.unit(t.graph, UnitKind::kFxNode, "origin");
  t.r.end(true);
  ASSERT_EQ(t.replay.capture().notes.size(), 1U);
  EXPECT_EQ(t.replay.capture().notes[0].text, "3 units referred to but in no snapshot: 2 buffer, 1 origin");
}

TEST(Recorder, CutsTextsThatWouldMakeALineUnreadable) {
  Bench t;
  const TextId id = t.r.text(std::string((std::size_t{8} << 20) + 5, '"'));
  const std::string& kept = t.replay.capture().texts[index(id)];
  EXPECT_TRUE(kept.ends_with("... (5 bytes cut)"));
  for (const std::string_view line : base::split_lines(t.out)) EXPECT_LT(line.size(), std::size_t{64} << 20);
}

RC_GTEST_PROP(Recorder, ReplayShowsWhatWasShown, (std::uint64_t seed)) {
  const int steps = *rc::gen::inRange(1, 80);
  Replay replay;
  Recorder recorder(replay);
  const auto shown = fixtures::record_random(recorder, seed, steps);
  RC_ASSERT(replay.error() == nullptr);
  const Capture capture = replay.take();
  for (const auto& [key, attrs] : shown) {
    const auto got = capture.attrs_at(key.second, key.first);
    RC_ASSERT(got.size() == attrs.size());
    for (const auto& [attr, value] : got) RC_ASSERT(*value == attrs.at(attr));
  }
}

// 1,500 units with 14 attrs, hardly any of them changed: the stated bound is far above what it takes optimised.
TEST(Recorder, UnchangedSnapshotsAreCheap) {
  Replay replay;
  Recorder r(replay);
  r.run({});
  const StageId stage = r.stage({"s", "", "", "", 1});
  std::vector<AttrId> attrs;
  for (int i = 0; i < 14; ++i) attrs.push_back(r.inventory_attr("a" + std::to_string(i)));
  const GraphId graph = r.graph(r.compile({}), "fx", "");
  std::vector<ObservedUnit> units;
  for (int i = 0; i < 1500; ++i) {
    ObservedUnit seen{r.unit(graph, UnitKind::kFxNode), {}};
    for (const AttrId attr : attrs) seen.attrs.push_back({attr, text_value(r, std::to_string(i % 50))});
    units.push_back(std::move(seen));
  }
  r.snapshot(stage, graph, units);
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 5; ++i) {
    units[static_cast<std::size_t>(i)].attrs[3].value = text_value(r, "changed");
    const auto start = std::chrono::steady_clock::now();
    r.snapshot(stage, graph, units);
    best = std::min(best, std::chrono::nanoseconds(std::chrono::steady_clock::now() - start));
  }
  RecordProperty("microseconds", static_cast<int>(best.count() / 1000));
  EXPECT_LT(best, std::chrono::milliseconds(100));
  EXPECT_EQ(replay.error(), nullptr);
}

}  // namespace
}  // namespace kerntrail::model
