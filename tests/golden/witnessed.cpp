// The golden case `witnessed`: a compile of level truth in which the compiler's word on its kernels is right, too much,
// too little and wrong, in each way that `verify` tells apart.
#include "capture_builder.h"
#include "cases.h"

namespace kerntrail::testing {
namespace {

using Seen = CaptureBuilder::Seen;

class Witnessed {
 public:
  Built build() {
    b_.recorder().attr_kind({"witness", ValueType::kJson, "", "", false});
    b_.recorder().attr_kind({"class", ValueType::kText, "", "", false});
    compile_ = b_.compile("inductor");
    const GraphId pre = b_.graph(compile_, "fx");
    for (UnitId& unit : traced_) unit = b_.unit(pre, UnitKind::kFxNode);
    std::vector<Seen> lines;
    for (std::size_t i = 0; i < traced_.size(); ++i) lines.push_back(node(traced_[i], i, {}));
    b_.snapshot("fx_pre_grad", pre, lines);
    graph_ = b_.graph(compile_, "fx", "inference");
    trace();
    fold();
    lower();
    kernels();
    Built result;
    result.capture = b_.finish();
    result.ndjson = b_.ndjson();
    return result;
  }

 private:
  enum Node : std::size_t { kSin, kAdd, kMm, kView, kRelu, kMul, kClone, kArange, kCheck, kNodes };
  struct Row {
    std::string_view name, target;
    int line;
  };
  static constexpr std::array<Row, kNodes> kRows{{{"sin", "aten.sin.default", 3},
                                                  {"add", "aten.add.Tensor", 4},
                                                  {"mm", "aten.mm.default", 5},
                                                  {"view", "aten.view.default", 6},
                                                  {"relu", "aten.relu.default", 7},
                                                  {"mul", "aten.mul.Tensor", 8},
                                                  {"clone", "aten.clone.default", 9},
                                                  {"arange", "prims.iota.default", 10},
                                                  {"check", "aten._assert_async.msg", 11}}};

  Seen node(UnitId unit, std::size_t i, std::vector<UnitId> inputs, int line = 0) {
    Seen seen = b_.seen(unit);
    seen.text("name", kRows[i].name).text("op", "call_function").text("target", kRows[i].target);
    seen.refs("inputs", std::move(inputs), "list");
    return seen.stack("model.py", line > 0 ? line : kRows[i].line, std::string(kRows[i].name) + "(x)");
  }

  Seen in_graph(std::size_t i, int line = 0) {
    std::vector<UnitId> inputs;
    if (i == kAdd) inputs = {nodes_[kSin]};
    if (i == kMm) inputs = {nodes_[kSin]};
    if (i == kView) inputs = {nodes_[kMm]};
    if (i == kRelu) inputs = {nodes_[kView]};
    return node(nodes_[i], i, std::move(inputs), line);
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
    std::vector<Seen> state;
    for (std::size_t i = 0; i < nodes_.size(); ++i) state.push_back(in_graph(i));
    b_.snapshot("fx_aten", graph_, state);
  }

  // Takes the addition away and writes its provenance onto the sin.
  void fold() {
    Pass pass;
    pass.graph = graph_;
    pass.name = "fold";
    pass.subsystem = "joint_graph_passes";
    pass.loc = b_.frame("torch/_inductor/fx_passes/joint_graph.py", 457, "fold");
    const PassId id = b_.recorder().begin_pass(pass);
    b_.recorder().look(id, graph_, std::vector{in_graph(kSin, 4).value()});
    Pass done;
    done.changed = {nodes_[kSin]};
    done.erased = {nodes_[kAdd]};
    done.replaced = {{nodes_[kAdd], nodes_[kSin]}};
    b_.recorder().end_pass(id, done);
    std::vector<Seen> state;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i != kAdd) state.push_back(in_graph(i, i == kSin ? 4 : 0));
    }
    b_.snapshot("fx_post_grad", graph_, state);
  }

  void lower() {
    const GraphId ir = b_.graph(compile_, "ir", "inference");
    for (UnitId& operation : operations_) operation = b_.unit(ir, UnitKind::kOperation);
    b_.snapshot(
        "ir_pre_pass", ir,
        {b_.seen(operations_[0]).text("name", "op0").text("data_class", "Pointwise").refs("origins", {nodes_[kSin]}),
         b_.seen(operations_[1])
             .text("name", "op1")
             .text("ir_class", "ExternKernelOut")
             .refs("origins", {nodes_[kMm], nodes_[kSin]}),
         b_.seen(operations_[2])
             .text("name", "op2")
             .text("data_class", "Pointwise")
             .refs("origins", {nodes_[kRelu], nodes_[kView], nodes_[kMm], nodes_[kAdd]})});
  }

  void kernels() {
    const GraphId graph = b_.graph(compile_, "kernel", "inference");
    std::array<UnitId, 4> kernels{};
    for (UnitId& kernel : kernels) kernel = b_.unit(graph, UnitKind::kKernel);
    for (std::size_t i = 0; i < operations_.size(); ++i)
      b_.recorder().link("define_kernel", {operations_[i]}, {kernels[i]});
    b_.recorder().claim(kernels[0], "compiler", "origins", {nodes_[kSin]});
    b_.recorder().claim(kernels[1], "compiler", "origins", {nodes_[kMm], nodes_[kSin]});
    b_.recorder().claim(
        kernels[2], "compiler", "origins",
        {nodes_[kRelu], nodes_[kView], nodes_[kMm], nodes_[kAdd], nodes_[kClone], nodes_[kArange], nodes_[kCheck]});
    b_.recorder().claim(kernels[2], "compiler", "mapping", {nodes_[kRelu], nodes_[kMm]});
    b_.recorder().claim(kernels[3], "compiler", "origins", {nodes_[kMul]});
    b_.snapshot(
        "kernel", graph,
        {kernel(
             kernels[0], "cpp_fused_add_0", "loop",
             R"([{"lines":[{"line":4,"does":"load","op":"load","unit":0},{"line":5,"does":"compute","op":"sin","unit":0}],
                     "bodies":[{"operation":"op0","ops":[{"op":"load","unit":0},{"op":"sin","unit":0},{"op":"store","unit":0}]}]}])",
             {nodes_[kSin]}),
         kernel(kernels[1], "extern_kernels.mm", "extern", R"([{"lowered":[{"operation":"op1","unit":0}]}])",
                {nodes_[kMm]}),
         kernel(
             kernels[2], "cpp_fused_relu_1", "loop",
             R"([{"lines":[{"line":3,"does":"load","op":"load","unit":0},{"line":4,"does":"compute","op":"relu","unit":0},
                              {"line":5,"does":"constant","op":"constant","unit":1},{"line":6,"does":"index","shared":true},
                              {"line":7,"does":"compiler_made","made":{"file":"codegen/cpp.py","line":9,"function":"f"}},
                              {"line":8,"does":"store","op":"store","unit":2},{"line":9,"does":"index","unit":3},
                              {"line":10,"does":"control","unit":4}],
                     "bodies":[{"operation":"op2","ops":[{"op":"load","unit":0},{"op":"relu","unit":0}]}]}])",
             {nodes_[kRelu], nodes_[kMul], nodes_[kClone], nodes_[kArange], nodes_[kCheck]}),
         b_.seen(kernels[3]).text("name", "triton_user_0").text("class", "user").empty("witness")});
  }

  Seen kernel(UnitId unit, std::string_view name, std::string_view unit_class, std::string_view witness,
              std::vector<UnitId> refs) {
    Seen seen = b_.seen(unit);
    return seen.text("name", name).text("class", unit_class).json_refs("witness", witness, std::move(refs));
  }

  CaptureBuilder b_{{{"backend", "inductor"}, {"program", "model.py"}, {"level", "truth"}}};
  CompileId compile_ = CompileId::kNone;
  GraphId graph_ = GraphId::kNone;
  std::array<UnitId, kNodes> traced_{}, nodes_{};
  std::array<UnitId, 3> operations_{};
};

}  // namespace

Built witnessed() { return Witnessed().build(); }

}  // namespace kerntrail::testing
