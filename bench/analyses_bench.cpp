// How long each analysis takes, over captures of 10,000 units to a million: target 2 s in all for a million, and linear
// (the last column is the time a unit beside that of the smallest size). As one compile, which one core works at, and
// as many, which all cores share.
//
//     make bench        or: analyses_bench [UNITS[/COMPILES] ...]
//
// A made-up compile: lines of source with 4 nodes each, traced, copied through a joint and a post-grad graph whose
// passes drop some fields and overwrite others, lowered to operations of 4 nodes, kernels of 2 operations with a
// witness.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kerntrail/drops.h"
#include "kerntrail/explain.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/verify.h"
#include "model/recorder.h"
#include "model/replay.h"

namespace kerntrail {
namespace {

class Maker {
 public:
  Maker(std::size_t units, std::size_t compiles)
      : recorder_(replay_), nodes_(units * 4 / 11 / compiles), compiles_(compiles) {}

  Capture make() {
    recorder_.run({kFormatVersion, "bench", "2.13.0", "3.11", "linux", {{"level", "truth"}}});
    for (const Stage& stage : {Stage{"fx_pre_grad", "FX Graph (pre-grad)", "compute node", "FX", 20},
                               Stage{"fx_post_grad", "FX Graph (post-grad)", "compute node", "FX", 50},
                               Stage{"ir_pre_pass", "LoopLevelIR", "operation", "IR", 60},
                               Stage{"kernel", "Kernel", "kernel", "backend", 110}})
      stages_.push_back(recorder_.stage(stage));
    stack_ = recorder_.attr_kind({"stack_trace", ValueType::kStack, "FX", "fx_pre_grad", true});
    from_node_ = recorder_.attr_kind({"from_node", ValueType::kNodeSources, "FX", "fx_joint", true});
    origins_ = recorder_.attr_kind({"origins", ValueType::kRefs, "IR", "ir_pre_pass", true});
    name_ = recorder_.attr_kind({"name", ValueType::kText, "", "", false});
    op_ = recorder_.attr_kind({"op", ValueType::kText, "", "", false});
    target_ = recorder_.attr_kind({"target", ValueType::kText, "", "", false});
    inputs_ = recorder_.attr_kind({"inputs", ValueType::kRefs, "", "", false});
    class_ = recorder_.attr_kind({"class", ValueType::kText, "", "", false});
    witness_ = recorder_.attr_kind({"witness", ValueType::kJson, "", "", false});
    for (std::size_t i = 0; i < compiles_; ++i) {
      pre_.clear();
      post_.clear();
      compile_ = recorder_.compile({fmt::format("{}/0", i), 0, "inductor", {}});
      trace();
      lower();
      recorder_.close_compile(compile_);
    }
    recorder_.end(true);
    return replay_.take();
  }

 private:
  Observation text(std::string_view value) {
    Observation out;
    out.state = State::kPresent;
    out.text = recorder_.text(value);
    return out;
  }
  static Observation refs(std::vector<UnitId> units) {
    Observation out;
    out.state = State::kPresent;
    out.refs = std::move(units);
    return out;
  }

  Observation stack(std::size_t line) {
    Loc range;
    range.kind = LocKind::kRange;
    range.text = recorder_.text("model.py");
    range.function = recorder_.text("forward");
    range.code = recorder_.text(fmt::format("x = f{}(x)", line));
    range.line = static_cast<std::int64_t>(line + 1);
    range.frame_class = FrameClass::kUser;
    Observation out = text(fmt::format("File \"model.py\", line {}, in forward", line + 1));
    out.loc = recorder_.loc(range);
    return out;
  }

  GraphId graph(std::string_view kind) {
    return recorder_.graph(compile_, kind, kind == "fx" && pre_.empty() ? "none" : "inference");
  }

  UnitId unit(GraphId graph, UnitKind kind) { return recorder_.unit(graph, kind); }

  model::ObservedUnit node(UnitId id, std::size_t i, const std::vector<UnitId>& nodes, bool traced) {
    model::ObservedUnit out{id, {}};
    out.attrs.emplace_back(name_, text(fmt::format("n{}", i)));
    out.attrs.emplace_back(op_, text("call_function"));
    out.attrs.emplace_back(target_, text(i % 4 == 1 ? "aten.view.default" : "aten.add.Tensor"));
    if (i > 0) out.attrs.emplace_back(inputs_, refs({nodes[i - 1]}));
    const bool lost = !traced && i % 16 == 7;
    if (!lost) out.attrs.emplace_back(stack_, stack(i / 4));
    if (!traced && !lost) {
      Observation chain = text("[]");
      chain.refs = {pre_[i]};
      out.attrs.emplace_back(from_node_, std::move(chain));
    }
    return out;
  }

  void trace() {
    const GraphId pre = graph("fx");
    for (std::size_t i = 0; i < nodes_; ++i) pre_.push_back(unit(pre, UnitKind::kFxNode));
    std::vector<model::ObservedUnit> seen;
    for (std::size_t i = 0; i < nodes_; ++i) seen.push_back(node(pre_[i], i, pre_, true));
    recorder_.snapshot(stages_[0], pre, seen);
    const GraphId post = graph("fx");
    for (std::size_t i = 0; i < nodes_; ++i) {
      post_.push_back(unit(post, UnitKind::kFxNode));
      recorder_.birth({post_.back(), PassId::kNone, "frame", "", LocId::kNone, LocId::kNone, {pre_[i]}});
    }
    seen.clear();
    for (std::size_t i = 0; i < nodes_; ++i) seen.push_back(node(post_[i], i, post_, false));
    recorder_.snapshot(stages_[1], post, seen);
  }

  void lower() {
    const GraphId ir = graph("ir");
    std::vector<UnitId> operations;
    std::vector<model::ObservedUnit> seen;
    for (std::size_t i = 0; i + 3 < nodes_; i += 4) {
      operations.push_back(unit(ir, UnitKind::kOperation));
      model::ObservedUnit one{operations.back(), {}};
      one.attrs.emplace_back(name_, text(fmt::format("op{}", operations.size() - 1)));
      std::vector<UnitId> origins(post_.begin() + static_cast<std::ptrdiff_t>(i),
                                  post_.begin() + static_cast<std::ptrdiff_t>(i + 4));
      if (i > 0) origins.push_back(post_[i - 1]);
      one.attrs.emplace_back(origins_, refs(std::move(origins)));
      seen.push_back(std::move(one));
    }
    recorder_.snapshot(stages_[2], ir, seen);
    const GraphId code = graph("kernel");
    std::vector<model::ObservedUnit> kernels;
    for (std::size_t o = 0; o + 1 < operations.size(); o += 2) kernels.push_back(kernel(code, operations, o));
    recorder_.snapshot(stages_[3], code, kernels);
  }

  model::ObservedUnit kernel(GraphId code, const std::vector<UnitId>& operations, std::size_t o) {
    const UnitId id = unit(code, UnitKind::kKernel);
    recorder_.link("define_kernel", {operations[o], operations[o + 1]}, {id});
    std::vector<UnitId> worked{post_[o * 4], post_[o * 4 + 2], post_[o * 4 + 3], post_[o * 4 + 4], post_[o * 4 + 6]};
    std::vector<UnitId> claimed(post_.begin() + static_cast<std::ptrdiff_t>(o * 4),
                                post_.begin() + static_cast<std::ptrdiff_t>(o * 4 + 8));
    if (o > 0) claimed.push_back(post_[o * 4 - 2]);
    recorder_.claim(id, "compiler", "origins", claimed);
    model::ObservedUnit out{id, {}};
    out.attrs.emplace_back(name_, text(fmt::format("cpp_fused_{}", o / 2)));
    out.attrs.emplace_back(class_, text("loop"));
    Observation witness;
    witness.state = State::kPresent;
    witness.text = recorder_.json(fmt::format(
        R"([{{"bodies":[{{"operation":"op{}","ops":[{{"op":"add","unit":0}},{{"op":"add","unit":1}},{{"op":"add","unit":2}}]}},)"
        R"({{"operation":"op{}","ops":[{{"op":"add","unit":3}},{{"op":"store","unit":4}}]}}]}}])",
        o, o + 1));
    witness.refs = worked;
    out.attrs.emplace_back(witness_, std::move(witness));
    return out;
  }

  model::Replay replay_;
  model::Recorder recorder_;
  std::size_t nodes_;  // of each graph
  std::size_t compiles_;
  std::vector<StageId> stages_;
  AttrId stack_{}, from_node_{}, origins_{}, name_{}, op_{}, target_{}, inputs_{}, class_{}, witness_{};
  CompileId compile_{};
  std::vector<UnitId> pre_, post_;
};

// The least of several runs: other work on the machine only ever adds.
double seconds(const std::function<bool()>& run) {
  double least = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!run()) fmt::print(stderr, "an analysis failed\n");
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    least = i == 0 ? taken : std::min(least, taken);
  }
  return least;
}

}  // namespace

struct Size {
  std::size_t units = 0, compiles = 1;
};

int bench(const std::vector<Size>& sizes) {
  struct Row {
    std::string_view name;
    std::function<bool(const Capture&)> run;
  };
  const std::vector<Row> rows{{"matrix", [](const Capture& c) { return matrices(c).has_value(); }},
                              {"lineage", [](const Capture& c) { return lineages(c).has_value(); }},
                              {"drops", [](const Capture& c) { return drops(c).has_value(); }},
                              {"verify", [](const Capture& c) { return verify(c).has_value(); }},
                              {"explain", [](const Capture& c) { return explain(c, "cpp_fused_1").has_value(); }}};
  std::vector<double> smallest(rows.size() + 1, 0);
  fmt::print("{:>10} {:>9} {:10} {:>9} {:>12} {:>8}\n", "units", "compiles", "analysis", "seconds", "ns a unit",
             "ratio");
  for (const Size& size : sizes) {
    const Capture capture = Maker(size.units, size.compiles).make();
    double total = 0;
    for (std::size_t r = 0; r <= rows.size(); ++r) {
      const double one = r < rows.size() ? seconds([&] { return rows[r].run(capture); }) : total;
      if (r < rows.size() && rows[r].name != "explain") total += one;
      const double each = one / static_cast<double>(capture.units.size());
      if (smallest[r] == 0) smallest[r] = each;
      fmt::print("{:>10} {:>9} {:10} {:>9.3f} {:>12.0f} {:>8.2f}\n", capture.units.size(), size.compiles,
                 r < rows.size() ? rows[r].name : "first four", one, each * 1e9, each / smallest[r]);
    }
  }
  return 0;
}

}  // namespace kerntrail

int main(int argc, char** argv) {
  using kerntrail::Size;
  std::vector<Size> sizes;
  for (int i = 1; i < argc; ++i) {
    char* end = nullptr;
    Size size{static_cast<std::size_t>(std::strtoull(argv[i], &end, 10)), 1};
    if (*end == '/') size.compiles = static_cast<std::size_t>(std::strtoull(end + 1, &end, 10));
    if (*end != '\0' || size.units == 0 || size.compiles == 0) {
      fmt::print(stderr, "{}: UNITS or UNITS/COMPILES is needed\n", argv[i]);
      return 2;
    }
    sizes.push_back(size);
  }
  return kerntrail::bench(sizes.empty() ? std::vector<Size>{{10'000, 1}, {100'000, 1}, {1'000'000, 1}, {1'000'000, 16}}
                                        : sizes);
}
