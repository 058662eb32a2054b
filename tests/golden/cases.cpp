#include "cases.h"

#include "capture_builder.h"

namespace kerntrail::testing {
namespace {

using Seen = CaptureBuilder::Seen;

Built take(CaptureBuilder& b, bool complete = true) {
  Built result;
  result.capture = b.finish(complete);
  result.ndjson = b.ndjson();
  return result;
}

Built empty_run() {
  CaptureBuilder b({{"backend", "inductor"}, {"program", "nothing.py"}});
  b.recorder().note(
      {"no-compile", Severity::kWarning, "the program compiled nothing", CompileId::kNone, GraphId::kNone});
  return take(b);
}

// The schedule of one operation; its stage and attrs are declared at first use.
UnitId add_group(CaptureBuilder& b, GraphId graph, UnitId operation) {
  const StageId schedule = b.recorder().stage({"schedule", "Schedule", "group", "IR", 80});
  b.recorder().attr_kind({"operations", ValueType::kRefs, "", "", false});
  const UnitId group = b.unit(graph, UnitKind::kGroup);
  const auto seen =
      b.seen(group)
          .text("name", "op0")
          .text("group_class", "SchedulerNode")
          .refs("operations", {operation}, "list")
          .json("outcomes", R"([{"operation":"op0","buffers":["buf0"],"outcome":"alone","removed":false}])");
  b.recorder().snapshot(schedule, graph, std::vector{seen.value()});
  b.recorder().link("fuse", {operation}, {group});
  return group;
}

// Forward: numbered, called twice. Backward: the wrapper was not seen.
CaptureBuilder::Seen kernel_seen(CaptureBuilder::Seen seen, std::string_view direction) {
  seen.text("class", "loop");
  if (direction == "backward") return seen;
  return seen.json("handles", R"(["cpp_fused_0:1","cpp_fused_0:2"])")
      .json("calls", R"j([{"order":0,"line":40,"function":"call","text":"cpp_fused_0(a)"},)j"
                     R"j({"order":1,"line":52,"function":"call","text":"cpp_fused_0(b)"}])j");
}

// A stock training compile with a graph break before it, a cache hit after it, and names that try to break out.
Built stock_training() {
  CaptureBuilder b({{"backend", "inductor"}, {"program", "train.py"}, {"provenance_level", "0"}});
  const CompileId first = b.compile("inductor", "0/0");
  {
    const GraphId pre = b.graph(first, "fx");
    const UnitId sin = b.unit(pre, UnitKind::kFxNode);
    b.snapshot("fx_pre_grad", pre,
               {b.seen(sin)
                    .text("name", "a|b`c")
                    .text("op", "call_method")
                    .text("target", "<script>|x\n\"q\"")
                    .stack("train.py", 4, "y = x.sin()  # <b>|`")});
    const GraphId post = b.graph(first, "fx", "inference");
    const UnitId post_sin = b.unit(post, UnitKind::kFxNode);
    b.snapshot("fx_post_grad", post,
               {b.seen(post_sin)
                    .text("name", "sin")
                    .text("op", "call_function")
                    .text("target", "aten.sin.default")
                    .stack("train.py", 4, "y = x.sin()  # <b>|`")
                    .text("original_aten", "aten.sin.default", "OpOverload")});
    const GraphId ir = b.graph(first, "ir", "inference");
    const UnitId op = b.unit(ir, UnitKind::kOperation);
    b.snapshot("ir_pre_pass", ir,
               {b.seen(op)
                    .text("name", "op0")
                    .refs("origins", {post_sin})
                    .ref("origin_node", post_sin)
                    .empty("traceback")
                    .json("get_stack_traces", R"(["train.py"])", "OrderedSet")
                    .json("attributes", R"(["data","origins"])")});
    const GraphId kernels = b.graph(first, "kernel", "inference");
    const UnitId kernel = b.unit(kernels, UnitKind::kKernel);
    b.recorder().link("define_kernel", {op}, {kernel});
    b.recorder().claim(kernel, "compiler", "origins", {post_sin});
    b.snapshot("kernel", kernels,
               {b.seen(kernel).text("name", "cpp_fused_0").text("comment", "# Original ATen: [aten.sin]")});
  }
  const CompileId second = b.compile("inductor", "1/0");
  {
    const GraphId pre = b.graph(second, "fx");
    const UnitId mul = b.unit(pre, UnitKind::kFxNode);
    b.snapshot("fx_pre_grad", pre,
               {b.seen(mul)
                    .text("name", "mul")
                    .text("op", "call_function")
                    .text("target", "<built-in function mul>")
                    .stack("train.py", 6, "z = y * w")});
    for (std::string_view direction : {"forward", "backward"}) {
      const GraphId post = b.graph(second, "fx", direction);
      const UnitId node = b.unit(post, UnitKind::kFxNode);
      const UnitId extra = b.unit(post, UnitKind::kFxNode);
      b.snapshot("fx_post_grad", post,
                 {b.seen(node)
                      .text("name", "mul")
                      .text("op", "call_function")
                      .text("target", "aten.mul.Tensor")
                      .stack("train.py", 6, "z = y * w"),
                  b.seen(extra)
                      .text("name", "sum_1")
                      .text("op", "call_function")
                      .text("target", "aten.sum.default")
                      .refs("inputs", {node}, "list")
                      .unreadable("stack_trace")});
      const GraphId ir = b.graph(second, "ir", direction);
      const UnitId op = b.unit(ir, UnitKind::kOperation);
      b.snapshot("ir_pre_pass", ir, {b.seen(op).text("name", "op0").refs("origins", {node, extra}).empty("traceback")});
      const UnitId group = add_group(b, b.graph(second, "schedule", direction), op);
      const GraphId kernels = b.graph(second, "kernel", direction);
      const UnitId kernel = b.unit(kernels, UnitKind::kKernel);
      b.recorder().link("define_kernel", {op}, {kernel});
      b.recorder().link("emit_kernel", {group}, {kernel});
      b.snapshot("kernel", kernels, {kernel_seen(b.seen(kernel).text("name", "cpp_fused_0"), direction)});
      b.recorder().link("call_kernel", {kernel}, {b.recorder().unit(kernels, UnitKind::kKernelCall, "a call")});
    }
  }
  const CompileId third = b.compile("inductor", "1/1");
  b.recorder().note({"not-observed", Severity::kWarning, "served from the FX graph cache", third, GraphId::kNone});
  return take(b, false);
}

}  // namespace

const std::vector<GoldenCase>& golden_cases() {
  static const std::vector<GoldenCase> kCases{
      {"seed000", [] { return build_seed000(); }},
      {"seed000_with_aten", [] { return build_seed000(true); }},
      {"empty_run", empty_run},
      {"stock_training", stock_training},
      {"lossy_passes", lossy_passes},
      {"witnessed", witnessed},
  };
  return kCases;
}

}  // namespace kerntrail::testing
