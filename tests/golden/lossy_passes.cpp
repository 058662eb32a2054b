// The golden case `lossy_passes`: a stock compile whose passes lose, overwrite and fold provenance in each way that
// `drops` tells apart.
#include <array>

#include "capture_builder.h"
#include "cases.h"

namespace kerntrail::testing {
namespace {

using Seen = CaptureBuilder::Seen;

class LossyPasses {
 public:
  Built build() {
    compile_ = b_.compile("inductor");
    const GraphId pre = b_.graph(compile_, "fx");
    for (UnitId& unit : traced_) unit = b_.unit(pre, UnitKind::kFxNode);
    std::vector<Seen> lines;
    for (std::size_t i = 0; i < traced_.size(); ++i) {
      lines.push_back(b_.seen(traced_[i])
                          .text("name", kNames[i])
                          .text("op", "call_function")
                          .text("target", kNames[i])
                          .stack("model.py", 10 + static_cast<int>(i), std::string(kNames[i]) + " = f(x)")
                          .json("source_fn_stack", R"([["f","f"]])", "list"));
    }
    b_.snapshot("fx_pre_grad", pre, lines);
    graph_ = b_.graph(compile_, "fx", "inference");
    trace();
    post_grad();
    ir();
    Built result;
    result.capture = b_.finish();
    result.ndjson = b_.ndjson();
    return result;
  }

 private:
  static constexpr std::array<std::string_view, 6> kNames{"q", "k", "scores", "probs", "out", "zero"};

  Seen node(UnitId unit, std::string_view name, int line, std::vector<UnitId> inputs, std::string_view target) {
    Seen seen = b_.seen(unit);
    seen.text("name", name)
        .text("op", "call_function")
        .text("target", target)
        .refs("inputs", std::move(inputs), "list");
    if (line > 0) seen.stack("model.py", line, "y = f(x)").json("source_fn_stack", R"([["f","f"]])", "list");
    return seen.text("original_aten", target, "OpOverload");
  }

  void trace() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i] = b_.unit(graph_, UnitKind::kFxNode);
      b_.recorder().birth({nodes_[i],
                           PassId::kNone,
                           "frame",
                           "",
                           LocId::kNone,
                           b_.frame("torch/fx/experimental/proxy_tensor.py", 1200, "proxy_call"),
                           {traced_[i]}});
    }
    b_.snapshot("fx_aten", graph_, state());
  }

  std::vector<Seen> state() {
    return {node(nodes_[0], "q", 10, {}, "aten.mm.default"),
            node(nodes_[1], "k", 11, {}, "aten.mm.default"),
            node(nodes_[2], "scores", 12, {nodes_[0], nodes_[1]}, "aten.bmm.default"),
            node(nodes_[3], "probs", 13, {nodes_[2]}, "aten.softmax.int"),
            node(nodes_[4], "out", 14, {nodes_[3]}, "aten.cos.default"),
            node(nodes_[5], "zero", 15, {nodes_[4]}, "aten.add.Tensor")};
  }

  PassId begin(GraphId graph, std::string_view name, std::string_view subsystem, PassKind kind = PassKind::kPass,
               PassId parent = PassId::kNone) {
    Pass pass;
    pass.graph = graph;
    pass.name = name;
    pass.subsystem = subsystem;
    pass.kind = kind;
    pass.parent = parent;
    return b_.recorder().begin_pass(pass);
  }
  void end(PassId pass, GraphId graph, const std::vector<Seen>& units, const Pass& done) {
    std::vector<model::ObservedUnit> observed;
    for (const Seen& unit : units) observed.push_back(unit.value());
    b_.recorder().look(pass, graph, observed);
    b_.recorder().end_pass(pass, done);
  }

  void post_grad() {
    const PassId stage = begin(graph_, "post_grad_passes", "", PassKind::kStage);
    attention(stage);
    no_op(stage);
    insertions(stage);
    b_.recorder().end_pass(stage, {});
    const PassId gap = begin(graph_, "between post_grad_passes and fx_post_grad", "", PassKind::kGap);
    Pass done;
    done.changed = {nodes_[1]};
    end(gap, graph_, {stripped()}, done);
    b_.snapshot("fx_post_grad", graph_,
                {node(nodes_[0], "q", 10, {}, "aten.mm.default"), stripped(), fused(), survivor(), copy(), full()});
  }

  Seen stripped() {
    Seen seen = b_.seen(nodes_[1]);
    seen.text("name", "k").text("op", "call_function").text("target", "aten.mm.default");
    return seen.stack("model.py", 11, "y = f(x)");
  }
  Seen fused() { return node(fused_, "sdpa", 0, {nodes_[0], nodes_[1]}, "aten.sdpa.default"); }
  Seen survivor() { return node(nodes_[4], "out", 15, {fused_}, "aten.cos.default"); }
  Seen copy() {
    Seen seen = b_.seen(copy_);
    return seen.text("name", "copy_").text("op", "call_function").text("target", "aten.copy_.default");
  }
  Seen full() {
    Seen seen = b_.seen(full_);
    return seen.text("name", "full").text("op", "call_function").text("target", "aten.full.default");
  }

  // Two nodes become one, which gets nothing but its ATen op.
  void attention(PassId stage) {
    const PassId pass = begin(graph_, "pass_pattern_0", "post_grad_passes", PassKind::kPass, stage);
    fused_ = b_.unit(graph_, UnitKind::kFxNode);
    const LocId made = b_.call(b_.frame("torch/_inductor/pattern_matcher.py", 510, "apply"),
                               b_.frame("torch/_inductor/fx_passes/post_grad.py", 209, "post_grad_passes"));
    const LocId written = b_.frame("torch/_inductor/fx_passes/fuse_attention.py", 52, "_sfdp_replacement_1");
    b_.recorder().birth({fused_, pass, "match", "_sfdp_pattern_1", written, made, {nodes_[2], nodes_[3]}});
    b_.recorder().birth({fused_, pass, "replacement", "", LocId::kNone, made, {nodes_[3]}});
    Pass done;
    done.created = {fused_};
    done.erased = {nodes_[3], nodes_[2]};
    done.replaced = {{nodes_[3], fused_}};
    end(pass, graph_,
        {fused(), node(nodes_[2], "scores", 12, {nodes_[0], nodes_[1]}, "aten.bmm.default"),
         node(nodes_[3], "probs", 13, {nodes_[2]}, "aten.softmax.int")},
        done);
  }

  // An addition of zero goes, and its metadata is written over that of the node that stays.
  void no_op(PassId stage) {
    const PassId pass = begin(graph_, "remove_noop_ops", "post_grad_passes", PassKind::kPass, stage);
    Pass done;
    done.changed = {nodes_[4]};
    done.erased = {nodes_[5]};
    done.replaced = {{nodes_[5], nodes_[4]}};
    end(pass, graph_, {survivor()}, done);
  }

  void insertions(PassId stage) {
    const PassId reinplace = begin(graph_, "reinplace_inplaceable_ops", "post_grad_passes", PassKind::kPass, stage);
    copy_ = b_.unit(graph_, UnitKind::kFxNode);
    b_.recorder().birth({copy_,
                         reinplace,
                         "created",
                         "",
                         LocId::kNone,
                         b_.frame("torch/_inductor/fx_passes/reinplace.py", 74, "graph_call_function"),
                         {}});
    Pass done;
    done.created = {copy_};
    end(reinplace, graph_, {copy()}, done);
    const PassId folding = begin(graph_, "constant_fold_uniform_value", "", PassKind::kPass, stage);
    full_ = b_.unit(graph_, UnitKind::kFxNode);
    b_.recorder().birth({full_,
                         folding,
                         "created",
                         "",
                         LocId::kNone,
                         b_.frame("torch/_inductor/fx_passes/joint_graph.py", 548, "constant_fold_uniform_value"),
                         {}});
    done.created = {full_};
    end(folding, graph_, {full()}, done);
  }

  Seen operation(UnitId unit, std::string_view name, std::vector<UnitId> origins, UnitId primary) {
    Seen seen = b_.seen(unit);
    seen.text("name", name).refs("origins", std::move(origins));
    if (has(primary)) return seen.ref("origin_node", primary);
    return seen.empty("origin_node");
  }

  // A pass that loses an origin and its representative, removes an operation, and inserts one as declared.
  void ir() {
    const GraphId ir = b_.graph(compile_, "ir", "inference");
    std::array<UnitId, 4> ops{};
    for (UnitId& op : ops) op = b_.unit(ir, UnitKind::kOperation);
    b_.snapshot("ir_pre_pass", ir,
                {operation(ops[0], "op0", {nodes_[0], nodes_[1]}, nodes_[0]),
                 operation(ops[1], "op1", {fused_, nodes_[4]}, fused_), operation(ops[2], "op2", {full_}, full_)});
    const PassId pass = begin(ir, "dedup_and_promote_constants", "pre_scheduling");
    Pass done;
    done.changed = {ops[0]};
    done.erased = {ops[2]};
    end(pass, ir, {operation(ops[0], "op0", {nodes_[0]}, UnitId::kNone)}, done);
    const PassId restickify = begin(ir, "insert_restickify", "pre_scheduling");
    done = {};
    done.created = {ops[3]};
    end(restickify, ir, {operation(ops[3], "op3", {}, UnitId::kNone)}, done);
    b_.snapshot("ir_post_pass", ir,
                {operation(ops[0], "op0", {nodes_[0]}, UnitId::kNone),
                 operation(ops[1], "op1", {fused_, nodes_[4]}, fused_), operation(ops[3], "op3", {}, UnitId::kNone)});
  }

  CaptureBuilder b_{{{"backend", "inductor"}, {"program", "model.py"}, {"level", "origins"}}};
  CompileId compile_{};
  GraphId graph_{};
  std::array<UnitId, 6> traced_{}, nodes_{};
  UnitId fused_{}, copy_{}, full_{};
};

}  // namespace

Built lossy_passes() { return LossyPasses().build(); }

}  // namespace kerntrail::testing
