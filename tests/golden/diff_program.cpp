#include "diff_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_map>

#include "capture_builder.h"

namespace kerntrail::testing {
namespace {

using Seen = CaptureBuilder::Seen;

// One compile of the program.
class Compiled {
 public:
  Compiled(std::uint64_t seed, const Variant& variant)
      : program_(seed), variant_(variant), random_(variant.seed), b_(variant.settings) {
    if (!variant.witnessed) return;
    b_.recorder().attr_kind({"witness", ValueType::kJson, "", "", false});
    b_.recorder().attr_kind({"class", ValueType::kText, "", "", false});
  }

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

  // Of the post-grad graph, in program order.
  std::vector<UnitId> post_units() const {
    std::vector<UnitId> out;
    for (const Node& node : kept_) out.push_back(node.unit);
    return out;
  }
  std::vector<std::string> post_targets() const {
    std::vector<std::string> out;
    for (const Node& node : kept_) out.push_back(node.target);
    return out;
  }

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
    const std::size_t layers = 2 + draw(program_, 5) + variant_.more_layers;
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
    const std::size_t last = nodes_.size() - 1;  // both twins read it
    for (int twin = 0; variant_.twins && twin < 2; ++twin)
      nodes_.push_back({UnitId::kNone, "check", "check(x)", "", 90, {last}});
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

  // The field that a node of the post-grad graph lacks.
  std::string lacks(std::size_t i) const {
    const bool lost = static_cast<int>(i) == variant_.lost_node || (variant_.neg && kept_[i].target == "aten.neg") ||
                      (variant_.twin_loses && i + 1 == kept_.size());
    return lost ? variant_.lost_field : std::string();
  }

  Seen look(const std::vector<Node>& nodes, std::size_t i, bool aten) {
    const bool post_grad = &nodes == &kept_;
    const std::string without = post_grad ? lacks(i) : std::string();
    const Node& node = nodes[i];
    const Node& named = post_grad && static_cast<int>(i) == variant_.misnamed_node ? nodes.front() : node;
    std::vector<UnitId> inputs;
    for (std::size_t in : node.inputs) inputs.push_back(nodes[in].unit);
    Seen seen = b_.seen(node.unit);
    seen.text("name", names_[node.unit])
        .text("op", "call_function")
        .text("target", node.target)
        .refs("inputs", inputs, "list");
    seen.json("type", R"({"dtype":"float32","shape":[2,8],"strides":[8,1],"device":"cpu"})");
    const auto wants = [&](std::string_view field) { return without != field; };
    if (wants("stack_trace")) seen.stack(variant_.folder + "model.py", named.line + variant_.shift, named.code);
    if (wants("nn_module_stack") && variant_.modules && !node.module.empty())
      seen.json("nn_module_stack", fmt::format(R"([{{"key":"k","name":"{}","class":"Layer"}}])", node.module));
    if (aten && wants("original_aten")) seen.text("original_aten", "aten." + node.target, "OpOverload");
    if (aten && wants("from_node") && has(node.of)) seen.from_node("[]", {node.of});
    return seen;
  }

  void show(std::string_view stage, GraphId graph, std::vector<Node>& nodes, bool aten) {
    const std::vector<std::size_t> shown = order(nodes);
    for (std::size_t i : shown) {
      if (has(nodes[i].unit)) continue;
      nodes[i].unit = b_.unit(graph, UnitKind::kFxNode);
      names_[nodes[i].unit] = name(nodes[i].target, i);
    }
    std::vector<Seen> seen;
    for (std::size_t i : shown) seen.push_back(look(nodes, i, aten));
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
    pass.name = variant_.pass_name;
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
        if (variant_.neg && made.size() == 1) {
          Node neg = mm;
          neg.target = "aten.neg";
          neg.inputs = {kept_.size() - 1};
          kept_.push_back(neg);
          made.emplace_back(kept_.size() - 1, node.unit);
        }
        one.target = "aten.add";
        one.inputs = {made.back().first - (variant_.neg && made.size() == 2 ? 1 : 0)};
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
      const bool changed = !lacks(i).empty() || static_cast<int>(i) == variant_.misnamed_node;
      const bool is_made = std::find(done.created.begin(), done.created.end(), kept_[i].unit) != done.created.end();
      if (changed || is_made) seen.push_back(look(kept_, i, true).value());
    }
    for (const auto& [i, of] : made)
      b_.recorder().birth({kept_[i].unit,
                           id,
                           "match",
                           "",
                           LocId::kNone,
                           b_.frame(variant_.pass_file, variant_.pass_line, "decompose"),
                           {of}});
    b_.recorder().look(id, post_, seen);
    b_.recorder().end_pass(id, done);
    show("fx_post_grad", post_, kept_, true);
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
      seen.push_back(b_.seen(kernel).text("name", fmt::format("cpp_fused_{}", variant_.rename ? random_() % 1000 : i)));
      if (variant_.witnessed) add_witness(seen.back(), claimed);
      if (variant_.false_claim >= 0 && static_cast<std::size_t>(variant_.false_claim) + 1 == seen.size())
        claimed.push_back(operations_[i == 0 ? operations_.size() - 1 : 0].origins.front());
      if (!claimed.empty()) b_.recorder().claim(kernel, "compiler", "origins", claimed);
      i += n;
    }
    b_.snapshot("kernel", kernels_, seen);
  }

  // Each node of the kernel's operations computes one line of its text.
  static void add_witness(Seen& kernel, const std::vector<UnitId>& nodes) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      lines.push_back(fmt::format(R"({{"line":{},"does":"compute","op":"f","unit":{}}})", i + 1, i));
    kernel.text("class", "loop")
        .json_refs("witness", fmt::format(R"([{{"lines":[{}]}}])", fmt::join(lines, ",")), nodes);
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

}  // namespace

Capture Program::run() {
  Compiled compiled(seed_, variant_);
  Capture out = compiled.run();
  units_ = compiled.post_units();
  targets_ = compiled.post_targets();
  return out;
}

int Program::post_node(std::string_view target) const {
  return static_cast<int>(std::find(targets_.begin(), targets_.end(), target) - targets_.begin());
}

Diff need(const Capture& old, const Capture& now) {
  auto result = diff(old, now);
  EXPECT_TRUE(result) << (result ? std::string() : result.error().text());
  return result ? std::move(*result) : Diff{};
}

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

}  // namespace kerntrail::testing
