// Pairs of captures of one made-up program, the second with other names, another order of nodes, other fusion, inserted
// operations and shifted source lines: nothing may be called lost, and a planted loss must be found.
#include "kerntrail/diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "analyse/match.h"
#include "capture_builder.h"
#include "cases.h"
#include "read/capture_reader.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using Seen = CaptureBuilder::Seen;

// How the second run of a program differs from its first.
struct Variant {
  std::uint64_t seed = 0;
  bool rename = false, reorder = false, restickify = false, refuse = false;
  int shift = 0;  // lines
  std::string folder;
  // A node of the post-grad graph (in program order) and a field that the decomposition doesn't copy to it.
  int lost_node = -1;
  std::string lost_field;
  bool modules = true;
  Settings settings{{"level", "passes"}, {"provenance_level", "0"}};
};

// A program of layers; equal seeds are equal programs.
class Program {
 public:
  Program(std::uint64_t seed, const Variant& variant)
      : program_(seed), variant_(variant), random_(variant.seed), b_(variant.settings) {}

  Capture run() {
    const CompileId compile = b_.compile("inductor");
    pre_ = b_.graph(compile, "fx");
    post_ = b_.graph(compile, "fx", "inference");
    ir_ = b_.graph(compile, "ir", "inference");
    kernels_ = b_.graph(compile, "kernel", "inference");
    write_program();
    trace();
    decompose();
    lower();
    fuse();
    return b_.finish();
  }

  std::size_t post_nodes() const { return kept_.size(); }
  UnitId post_unit(std::size_t i) const { return kept_[i].unit; }

 private:
  struct Node {
    UnitId unit = UnitId::kNone;
    std::string target, code, module;
    int line = 0;
    std::vector<std::size_t> inputs;  // of the same list
    UnitId of = UnitId::kNone;  // what it was made of
  };

  static std::size_t draw(std::mt19937_64& from, std::size_t below) { return static_cast<std::size_t>(from() % below); }

  // Layers of one shape on one line of a loop, as models have them, and some that differ.
  void write_program() {
    const std::size_t layers = 2 + draw(program_, 5);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const bool looped = draw(program_, 2) == 0;
      const int line = looped ? 10 : 20 + static_cast<int>(layer) * 3;
      const std::string module = fmt::format("L['self'].layers.{}", layer);
      const std::size_t in = nodes_.size();
      const std::vector<std::size_t> from = in == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{in - 1};
      nodes_.push_back({UnitId::kNone, "linear", looped ? "x = layer(x)" : fmt::format("x = self.fc{}(x)", layer),
                        module, line, from});
      const char* const kActivations[] = {"relu", "gelu", "tanh"};
      nodes_.push_back({UnitId::kNone,
                        kActivations[draw(program_, 3)],
                        looped ? "x = act(x)" : fmt::format("x = act{}(x)", layer),
                        module,
                        line + 1,
                        {in}});
      if (draw(program_, 2) == 0) nodes_.push_back({UnitId::kNone, "add", "x = x + skip", "", line + 2, {in, in + 1}});
    }
    show("fx_pre_grad", pre_, nodes_, false);
  }

  std::string name(std::string_view target, std::size_t i) {
    return variant_.rename ? fmt::format("v{}_{}", random_() % 1000, i) : fmt::format("{}_{}", target, i);
  }

  // Any order in which operands come first.
  std::vector<std::size_t> order(const std::vector<Node>& nodes) {
    std::vector<std::size_t> out, ready;
    std::vector<bool> done(nodes.size(), false);
    while (out.size() < nodes.size()) {
      ready.clear();
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const bool able = !done[i] && std::all_of(nodes[i].inputs.begin(), nodes[i].inputs.end(),
                                                  [&](std::size_t in) { return done[in]; });
        if (able) ready.push_back(i);
      }
      const std::size_t next = ready[variant_.reorder ? draw(random_, ready.size()) : 0];
      done[next] = true;
      out.push_back(next);
    }
    return out;
  }

  Seen look(const std::vector<Node>& nodes, std::size_t i, bool aten, const std::string& without = {}) {
    const Node& node = nodes[i];
    std::vector<UnitId> inputs;
    for (std::size_t in : node.inputs) inputs.push_back(nodes[in].unit);
    Seen seen = b_.seen(node.unit);
    seen.text("name", names_[node.unit])
        .text("op", "call_function")
        .text("target", node.target)
        .refs("inputs", inputs, "list");
    seen.json("type", R"({"dtype":"float32","shape":[2,8],"strides":[8,1],"device":"cpu"})");
    const auto wants = [&](std::string_view field) { return without != field; };
    if (wants("stack_trace")) seen.stack(variant_.folder + "model.py", node.line + variant_.shift, node.code);
    if (wants("nn_module_stack") && variant_.modules && !node.module.empty())
      seen.json("nn_module_stack", fmt::format(R"([{{"key":"k","name":"{}","class":"Layer"}}])", node.module));
    if (aten && wants("original_aten")) seen.text("original_aten", "aten." + node.target, "OpOverload");
    if (aten && wants("from_node") && has(node.of)) seen.from_node("[]", {node.of});
    return seen;
  }

  void show(std::string_view stage, GraphId graph, std::vector<Node>& nodes, bool aten, int lost = -1,
            const std::string& field = {}) {
    const std::vector<std::size_t> shown = order(nodes);
    for (std::size_t i : shown) {
      if (has(nodes[i].unit)) continue;
      nodes[i].unit = b_.unit(graph, UnitKind::kFxNode);
      names_[nodes[i].unit] = name(nodes[i].target, i);
    }
    std::vector<Seen> seen;
    for (std::size_t i : shown)
      seen.push_back(look(nodes, i, aten, static_cast<int>(i) == lost ? field : std::string()));
    b_.snapshot(stage, graph, seen);
  }

  // linear becomes permute and addmm.
  void trace() {
    std::vector<std::size_t> result;  // of each node, where it went
    for (const Node& node : nodes_) {
      Node one{UnitId::kNone, "aten." + node.target, node.code, node.module, node.line, {}, node.unit};
      for (std::size_t in : node.inputs) one.inputs.push_back(result[in]);
      if (node.target == "linear") {
        Node view = one;
        view.target = "aten.permute";
        view.inputs.clear();
        aten_.push_back(view);
        one.target = "aten.addmm";
        one.inputs.push_back(aten_.size() - 1);
      }
      aten_.push_back(one);
      result.push_back(aten_.size() - 1);
    }
    for (Node& node : aten_) node.unit = UnitId::kNone;
    show("fx_aten", post_, aten_, true);
    for (const Node& node : aten_)
      b_.recorder().birth({node.unit, PassId::kNone, "frame", "", LocId::kNone, LocId::kNone, {node.of}});
  }

  // addmm becomes mm and add, in a pass.
  void decompose() {
    Pass pass;
    pass.graph = post_;
    pass.name = "decompose";
    pass.subsystem = "post_grad_passes";
    const PassId id = b_.recorder().begin_pass(pass);
    std::vector<std::size_t> result;
    std::vector<std::pair<std::size_t, UnitId>> made;
    Pass done;
    for (const Node& node : aten_) {
      Node one = node;
      for (std::size_t& in : one.inputs) in = result[in];
      if (node.target == "aten.addmm") {
        Node mm = one;
        mm.target = "aten.mm";
        mm.unit = UnitId::kNone;
        kept_.push_back(mm);
        made.emplace_back(kept_.size() - 1, node.unit);
        one.target = "aten.add";
        one.inputs = {kept_.size() - 1};
        one.unit = UnitId::kNone;
        made.emplace_back(kept_.size(), node.unit);
        done.erased.push_back(node.unit);
      }
      kept_.push_back(one);
      result.push_back(kept_.size() - 1);
    }
    for (const auto& [i, of] : made) {
      kept_[i].unit = b_.unit(post_, UnitKind::kFxNode);
      names_[kept_[i].unit] = name(kept_[i].target, i);
      done.created.push_back(kept_[i].unit);
    }
    std::vector<model::ObservedUnit> seen;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const bool lost = static_cast<int>(i) == variant_.lost_node;
      const bool is_made = std::find(done.created.begin(), done.created.end(), kept_[i].unit) != done.created.end();
      if (lost || is_made) seen.push_back(look(kept_, i, true, lost ? variant_.lost_field : std::string()).value());
    }
    for (const auto& [i, of] : made)
      b_.recorder().birth(
          {kept_[i].unit, id, "match", "", LocId::kNone, b_.frame("torch/decompose.py", 7, "decompose"), {of}});
    b_.recorder().look(id, post_, seen);
    b_.recorder().end_pass(id, done);
    show("fx_post_grad", post_, kept_, true, variant_.lost_node, variant_.lost_field);
  }

  struct Operation {
    UnitId unit;
    std::vector<UnitId> origins;
    std::string name;
  };

  void lower() {
    UnitId view = UnitId::kNone;
    for (const Node& node : kept_) {
      if (node.target == "aten.permute") {
        view = node.unit;
        continue;
      }
      Operation one{b_.unit(ir_, UnitKind::kOperation), {node.unit}, ""};
      if (has(view) && node.target == "aten.mm") one.origins.push_back(view);
      one.name = variant_.rename ? fmt::format("buf{}", random_() % 1000) : fmt::format("op{}", operations_.size());
      operations_.push_back(one);
      if (variant_.restickify && draw(random_, 3) == 0)
        operations_.push_back(
            {b_.unit(ir_, UnitKind::kOperation), {}, fmt::format("restickify{}", operations_.size())});
    }
    std::vector<Seen> seen;
    for (const Operation& one : operations_) {
      Seen s = b_.seen(one.unit);
      s.text("name", one.name);
      if (!one.origins.empty()) s.refs("origins", one.origins).ref("origin_node", one.origins.front());
      seen.push_back(s);
    }
    b_.snapshot("ir_pre_pass", ir_, seen);
  }

  void fuse() {
    std::mt19937_64 plan(variant_.refuse ? variant_.seed + 77 : 5);
    std::vector<Seen> seen;
    for (std::size_t i = 0; i < operations_.size();) {
      const std::size_t n = std::min(1 + draw(plan, 4), operations_.size() - i);
      const UnitId kernel = b_.unit(kernels_, UnitKind::kKernel);
      std::vector<UnitId> from, claimed;
      for (std::size_t k = i; k < i + n; ++k) {
        from.push_back(operations_[k].unit);
        claimed.insert(claimed.end(), operations_[k].origins.begin(), operations_[k].origins.end());
      }
      b_.recorder().link("define_kernel", from, {kernel});
      if (!claimed.empty()) b_.recorder().claim(kernel, "compiler", "origins", claimed);
      seen.push_back(b_.seen(kernel).text("name", fmt::format("cpp_fused_{}", variant_.rename ? random_() % 1000 : i)));
      i += n;
    }
    b_.snapshot("kernel", kernels_, seen);
  }

  std::mt19937_64 program_;
  Variant variant_;
  std::mt19937_64 random_;
  CaptureBuilder b_;
  GraphId pre_{}, post_{}, ir_{}, kernels_{};
  std::vector<Node> nodes_, aten_, kept_;
  std::vector<Operation> operations_;
  std::unordered_map<UnitId, std::string> names_;
};

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

Diff need(const Capture& old, const Capture& now) {
  auto result = diff(old, now);
  EXPECT_TRUE(result) << (result ? std::string() : result.error().text());
  return result ? std::move(*result) : Diff{};
}

// Pairs, groups and rest add up on both sides, and nothing stands in two of them.
void expect_sums(const Diff& result) {
  for (const DiffPart& part : result.parts) {
    for (const StageMatch& stage : part.stages) {
      std::vector<UnitId> old(stage.only_old), now(stage.only_new);
      for (const UnitMatch& pair : stage.pairs) {
        old.push_back(pair.old_unit);
        now.push_back(pair.new_unit);
      }
      for (const UnitGroup& group : stage.groups) {
        EXPECT_FALSE(group.old_units.empty() || group.new_units.empty());
        old.insert(old.end(), group.old_units.begin(), group.old_units.end());
        now.insert(now.end(), group.new_units.begin(), group.new_units.end());
      }
      for (auto* side : {&old, &now}) {
        std::sort(side->begin(), side->end());
        EXPECT_EQ(std::adjacent_find(side->begin(), side->end()), side->end()) << stage.key;
      }
      EXPECT_EQ(old.size(), stage.old_total) << stage.key;
      EXPECT_EQ(now.size(), stage.new_total) << stage.key;
    }
    for (const FieldChange& field : part.fields) EXPECT_FALSE(field.fields.empty());
  }
}

std::string described(const Diff& result) {
  std::string out;
  for (const DiffPart& part : result.parts) {
    for (const FieldChange& field : part.fields)
      out +=
          fmt::format("{} {} {} group {} at {}\n", field.change == Change::kLost ? "lost" : "gained",
                      part.new_labels.count(field.units.new_unit) ? part.new_labels.at(field.units.new_unit).name : "?",
                      fmt::join(field.fields, ","), field.of_group, field.stage);
    for (const LinkDiff& link : part.links)
      out += fmt::format("link {} {} -> {}\n", link.code, link_rank_name(link.was), link_rank_name(link.now));
    for (const ValueChange& value : part.values) out += fmt::format("value {} -> {}\n", value.was, value.now);
    for (const StageMatch& stage : part.stages)
      out += fmt::format("{}: {} pairs, {} groups, {}/{} alone\n", stage.key, stage.pairs.size(), stage.groups.size(),
                         stage.only_old.size(), stage.only_new.size());
    for (const StageMatch& stage : part.stages) {
      const auto names = [](const std::vector<UnitId>& units, const std::unordered_map<UnitId, UnitLabel>& labels) {
        std::string all;
        for (UnitId unit : units) all += labels.at(unit).id + " ";
        return all;
      };
      for (const UnitGroup& group : stage.groups)
        out += fmt::format("  {} {}: {}| {}\n", stage.key, group_kind_name(group.kind),
                           names(group.old_units, part.old_labels), names(group.new_units, part.new_labels));
    }
  }
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
