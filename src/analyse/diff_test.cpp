// Pairs of captures of one made-up program, the second with other names, another order of nodes, other fusion, inserted
// operations and shifted source lines: nothing may be called lost, and a planted loss must be found.
#include "kerntrail/diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "analyse/match.h"
#include "capture_builder.h"
#include "cases.h"
#include "diff_program.h"
#include "read/capture_reader.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using Seen = CaptureBuilder::Seen;
using testing::described;
using testing::expect_sums;
using testing::need;
using testing::Program;
using testing::Variant;

Variant varied(std::uint64_t seed) {
  Variant out;
  out.seed = seed + 1;
  out.rename = seed % 2 == 0;
  out.reorder = seed % 3 != 0;
  out.restickify = seed % 5 < 3;
  out.refuse = seed % 7 < 5;
  out.shift = static_cast<int>(seed % 4) * 7;
  out.folder = seed % 6 == 0 ? "" : "/elsewhere/";
  out.modules = seed % 8 != 0;
  return out;
}

constexpr std::uint64_t kPrograms = 150;

TEST(DiffPairs, NothingIsCalledLostThatIsNot) {
  std::size_t fx_pairs = 0;
  std::size_t fx_units = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Variant first;
    first.modules = varied(seed).modules;
    const Capture old = Program(seed, first).run();
    const Capture now = Program(seed, varied(seed)).run();
    EXPECT_TRUE(incomparable(old, now).empty()) << "seed " << seed;
    const Diff result = need(old, now);
    expect_sums(result);
    ASSERT_EQ(result.parts.size(), 1U) << "seed " << seed;
    EXPECT_EQ(result.totals.fields_lost, 0U) << "seed " << seed << "\n" << described(result);
    EXPECT_EQ(result.totals.links_worse, 0U) << "seed " << seed << "\n" << described(result);
    EXPECT_EQ(result.totals.doubts_new, 0U) << "seed " << seed;
    EXPECT_TRUE(result.parts[0].values.empty()) << "seed " << seed << "\n" << described(result);
    EXPECT_EQ(result.totals.fields_gained, 0U) << "seed " << seed << "\n" << described(result);
    for (const StageMatch& stage : result.parts[0].stages) {
      if (stage.key.rfind("fx_", 0) != 0) continue;
      fx_pairs += stage.pairs.size();
      fx_units += stage.new_total;
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_EQ(fx_pairs, fx_units);  // every node finds its counterpart
}

TEST(DiffPairs, APlantedLossIsFound) {
  const char* const kFields[] = {"stack_trace", "from_node", "original_aten"};
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Variant variant = varied(seed);
    variant.modules = true;
    Program before(seed, {});
    const Capture old = before.run();
    variant.lost_node = static_cast<int>((seed * 7) % before.post_nodes());
    variant.lost_field = kFields[seed % 3];
    Program after(seed, variant);
    const Capture now = after.run();
    const Diff result = need(old, now);
    ASSERT_EQ(result.parts.size(), 1U) << "seed " << seed;
    const DiffPart& part = result.parts[0];
    std::size_t found = 0;
    for (const FieldChange& field : part.fields) {
      ASSERT_EQ(field.change, Change::kLost) << "seed " << seed << "\n" << described(result);
      if (field.stage != "fx_post_grad") continue;
      EXPECT_EQ(field.units.new_unit, after.post_unit(static_cast<std::size_t>(variant.lost_node))) << "seed " << seed;
      EXPECT_EQ(field.units.old_unit, before.post_unit(static_cast<std::size_t>(variant.lost_node))) << "seed " << seed;
      EXPECT_EQ(field.fields, std::vector<std::string>{variant.lost_field});
      ASSERT_NE(field.site, kNoIndex);
      EXPECT_EQ(part.sites[field.site].path, "decompose");
      EXPECT_TRUE(part.sites[field.site].in_other);
      ++found;
    }
    EXPECT_EQ(found, 1U) << "seed " << seed << "\n" << described(result);
    EXPECT_EQ(part.fields.size(), 1U) << "seed " << seed << "\n" << described(result);
    EXPECT_TRUE(result.totals.worse());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(DiffPairs, ACaptureEqualsItself) {
  for (const testing::GoldenCase& golden : testing::golden_cases()) {
    const Capture capture = golden.build().capture;
    const Diff result = need(capture, capture);
    expect_sums(result);
    EXPECT_TRUE(result.totals.same()) << golden.name;
    EXPECT_TRUE(result.settings.empty()) << golden.name;
    EXPECT_EQ(result.totals.only_old + result.totals.only_new, 0U) << golden.name;
    EXPECT_EQ(result.cause, kNoIndex);
  }
}

Capture reference(const std::string& rule) {
  auto capture =
      read::read_capture(std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/captures/reference_" + rule + ".ndjson.gz");
  EXPECT_TRUE(capture) << (capture ? std::string() : capture.error().text());
  return capture ? std::move(*capture) : Capture{};
}

// The reference model under the metadata rules `seed` and `full`: the decomposition of addmm copies nothing, or all.
TEST(DiffReference, TheRepairedNodesAreTheFour) {
  const Capture seed = reference("seed");
  const Capture full = reference("full");
  EXPECT_TRUE(incomparable(seed, full).empty());
  const Diff result = need(seed, full);
  ASSERT_EQ(result.parts.size(), 1U);
  const DiffPart& part = result.parts[0];
  std::vector<std::string> names;
  for (const FieldChange& field : part.fields) {
    EXPECT_EQ(field.change, Change::kGained);
    EXPECT_EQ(field.stage, "fx_post_grad");
    EXPECT_EQ(field.fields,
              (std::vector<std::string>{"stack_trace", "nn_module_stack", "source_fn_stack", "from_node"}));
    names.push_back(part.new_labels.at(field.units.new_unit).name);
    ASSERT_NE(field.site, kNoIndex);
    EXPECT_NE(part.sites[field.site].path.find("decompose_addmm"), std::string::npos);
    EXPECT_TRUE(part.sites[field.site].in_other);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"mm_default_1", "add_tensor_1", "mm_default", "add_tensor"}));
  ASSERT_NE(result.cause, kNoIndex);
  EXPECT_EQ(result.settings[result.cause].name, "setting metadata");
  EXPECT_EQ(result.settings[result.cause].was, "seed");
  EXPECT_FALSE(result.totals.worse());
  EXPECT_EQ(result.totals.drops_new, 0U);
  EXPECT_EQ(result.totals.links_worse, 0U);
  EXPECT_GT(result.totals.links_better, 0U);
  const Diff back = need(full, seed);
  EXPECT_TRUE(back.totals.worse());
  EXPECT_EQ(back.totals.fields_lost, 16U);
  EXPECT_EQ(back.parts[0].fields.size(), 4U);
}

std::vector<std::string> codes(const Capture& old, const Capture& now) {
  std::vector<std::string> out;
  for (const Difference& one : incomparable(old, now)) out.push_back(one.code);
  return out;
}

TEST(DiffComparable, UnlikeCapturesAreNamed) {
  const Capture base = Program(1, {}).run();
  const auto with = [](const Settings& settings) {
    Variant variant;
    variant.settings = settings;
    return Program(1, variant).run();
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes(base, base), Codes{});
  EXPECT_EQ(codes(base, with({{"level", "borders"}, {"provenance_level", "0"}})), Codes{"capture-level"});
  EXPECT_EQ(codes(base, with({{"level", "passes"}, {"provenance_level", "1"}})), Codes{"provenance-level"});
  EXPECT_EQ(codes(base, with({{"level", "passes"}, {"provenance_level", "0"}, {"force_disable_caches", "True"}})),
            Codes{"caches"});
  EXPECT_EQ(codes(base, with({{"level", "passes"}, {"provenance_level", "0"}, {"program", "x.py"}})), Codes{});
  EXPECT_EQ(codes(base, reference("full")), (Codes{"caches", "backend", "model"}));
  CaptureBuilder nothing({{"level", "passes"}, {"provenance_level", "0"}});
  EXPECT_EQ(codes(base, nothing.finish()), Codes{"nothing-compiled"});
  CaptureBuilder partial({{"level", "passes"}, {"provenance_level", "0"}});
  EXPECT_EQ(codes(partial.finish(false), base), (Codes{"partial", "nothing-compiled"}));
  Capture torn = base;
  torn.end.reset();
  EXPECT_EQ(codes(base, torn), Codes{"torn"});
}

TEST(DiffComparable, OneSettingIsTheCauseSeveralAreNone) {
  const auto with = [](Settings more) {
    Variant variant;
    variant.settings.insert(variant.settings.end(), more.begin(), more.end());
    return Program(1, variant).run();
  };
  const Capture base = with({{"cpu_backend", "cpp"}, {"program", "a.py"}});
  const Diff one = need(base, with({{"cpu_backend", "triton"}, {"program", "b.py"}}));
  ASSERT_NE(one.cause, kNoIndex);
  EXPECT_EQ(one.settings[one.cause].name, "setting cpu_backend");
  EXPECT_EQ(one.settings.size(), 2U);
  EXPECT_EQ(need(base, with({{"cpu_backend", "triton"}, {"other", "1"}})).cause, kNoIndex);
  EXPECT_EQ(need(base, with({{"cpu_backend", "cpp"}, {"program", "b.py"}})).cause, kNoIndex);
}

// A long chain of blocks: `blocks` times four nodes, at two stages, with operations and kernels.
Capture long_run(std::size_t blocks, bool other) {
  CaptureBuilder b(Settings{{"level", "passes"}});
  const CompileId compile = b.compile("inductor");
  const GraphId pre = b.graph(compile, "fx");
  const GraphId post = b.graph(compile, "fx", "inference");
  const GraphId ir = b.graph(compile, "ir", "inference");
  const GraphId kernels = b.graph(compile, "kernel", "inference");
  const char* const kTargets[] = {"linear", "relu", "mul", "add"};
  std::vector<UnitId> traced;
  std::vector<Seen> seen;
  const auto chain = [&](GraphId graph, bool aten, std::vector<UnitId>& units) {
    seen.clear();
    for (std::size_t i = 0; i < blocks * 4; ++i) {
      units.push_back(b.unit(graph, UnitKind::kFxNode));
      Seen s = b.seen(units.back());
      s.text("name", fmt::format("{}{}", other ? "n" : "v", i))
          .text("op", "call_function")
          .text("target", kTargets[i % 4]);
      s.refs("inputs", i == 0 ? std::vector<UnitId>{} : std::vector<UnitId>{units[i - 1]}, "list");
      s.stack("model.py", static_cast<std::int64_t>(10 + i % 4 + (other ? 3 : 0)), fmt::format("x = f{}(x)", i % 4));
      if (aten) s.from_node("[]", {traced[i]});
      seen.push_back(s);
    }
    b.snapshot(aten ? "fx_post_grad" : "fx_pre_grad", graph, seen);
  };
  std::vector<UnitId> nodes;
  chain(pre, false, traced);
  chain(post, true, nodes);
  std::vector<UnitId> operations, made;
  seen.clear();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    operations.push_back(b.unit(ir, UnitKind::kOperation));
    seen.push_back(b.seen(operations.back())
                       .text("name", fmt::format("op{}", i))
                       .refs("origins", {nodes[i]})
                       .ref("origin_node", nodes[i]));
  }
  b.snapshot("ir_pre_pass", ir, seen);
  seen.clear();
  const std::size_t fused = other ? 3 : 2;
  for (std::size_t i = 0; i < operations.size(); i += fused) {
    const std::size_t n = std::min(fused, operations.size() - i);
    const UnitId kernel = b.unit(kernels, UnitKind::kKernel);
    b.recorder().link(
        "define_kernel",
        {operations.begin() + static_cast<std::ptrdiff_t>(i), operations.begin() + static_cast<std::ptrdiff_t>(i + n)},
        {kernel});
    b.recorder().claim(
        kernel, "compiler", "origins",
        {nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes.begin() + static_cast<std::ptrdiff_t>(i + n)});
    seen.push_back(b.seen(kernel).text("name", fmt::format("k{}", i)));
  }
  b.snapshot("kernel", kernels, seen);
  return b.finish();
}

// KERNTRAIL_DIFF_BLOCKS=7000 is 98,000 units on one side, 93,000 on the other.
TEST(DiffPairs, ALongChainIsMatchedThroughout) {
  const char* blocks = std::getenv("KERNTRAIL_DIFF_BLOCKS");
  const std::size_t n = blocks == nullptr ? 500 : std::stoul(blocks);
  const Capture old = long_run(n, false);
  const Capture now = long_run(n, true);
  const auto begin = std::chrono::steady_clock::now();
  const Diff result = need(old, now);
  RecordProperty(
      "milliseconds",
      static_cast<int>(
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count()));
  ASSERT_EQ(result.parts.size(), 1U);
  EXPECT_GE(result.totals.matched, n * 12);  // and kernels that happen to be the same
  EXPECT_EQ(result.totals.only_old + result.totals.only_new, 0U);
  EXPECT_FALSE(result.totals.worse());
}

analyse::MatchNode plain(std::uint64_t label, std::vector<std::uint32_t> inputs) {
  analyse::MatchNode out;
  out.label = label;
  for (std::uint32_t i : inputs) out.inputs.push_back({i, 0, 0});
  return out;
}

// Nodes that nothing tells apart stay a group, whatever their order.
TEST(Match, TwinsAreKeptApart) {
  const analyse::MatchSide side{plain(1, {}), plain(2, {0}), plain(2, {0}), plain(3, {1, 2})};
  const auto found = analyse::match_sides(side, side);
  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_EQ(found.groups[0].kind, GroupKind::kAmbiguous);
  EXPECT_EQ(found.groups[0].old_places, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(found.pairs.size(), 2U);
}

// A node of a kind that the other side lacks is looked through.
TEST(Match, InsertedNodesAreLookedThrough) {
  analyse::MatchSide old{plain(1, {})}, now{plain(1, {})};
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    old.push_back(plain(2, {i}));
    now.push_back(plain(9, {last}));
    now.push_back(plain(2, {last + 1}));
    last += 2;
  }
  const auto found = analyse::match_sides(old, now);
  EXPECT_EQ(found.pairs.size(), 51U);
  EXPECT_EQ(found.only_new.size(), 50U);
  for (const analyse::PlacePair& pair : found.pairs) EXPECT_EQ(pair.new_place, pair.old_place * 2);
}

}  // namespace
}  // namespace kerntrail
