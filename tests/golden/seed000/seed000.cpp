#include "seed000/seed000.h"

#include <array>

#include "capture_builder.h"

namespace kerntrail::testing {
namespace {

constexpr std::string_view kFile = "reference_mlp.py";
constexpr std::string_view kKernelName = "sdsc_fused_addmm_linear_relu_0";
constexpr std::string_view kTraces25 = R"(["  File \"reference_mlp.py\", line 25, in forward\n    x = self.fc1(x)\n"])";
constexpr std::string_view kTraces26 =
    R"(["  File \"reference_mlp.py\", line 26, in forward\n    x = torch.relu(x)\n"])";
constexpr std::string_view kTraces27 = R"(["  File \"reference_mlp.py\", line 27, in forward\n    x = self.fc2(x)\n"])";

class Seed000 {
 public:
  explicit Seed000(bool with_aten)
      : with_aten_(with_aten),
        b_({{"backend", "kerntrail_spyre"},
            {"metadata", "seed"},
            {"provenance_level", "0"},
            {"force_disable_caches", "true"},
            {"program", "reference_mlp.py"}}) {}

  Built build() {
    for (std::string_view label : {"stage2_pre_grad", "stage2_post_grad", "stage3_looplevel_prepass", "stage5_opspec",
                                   "stage6_define_kernel", "stage6_output_dir"}) {
      hook(label, std::string("reference.") + std::string(label));
    }
    hook("torch._inductor.compile_fx.compile_fx", "torch._inductor.compile_fx.compile_fx");
    compile_ = b_.compile("kerntrail_spyre");
    pre_grad();
    post_grad();
    looplevel();
    op_specs();
    kernel();
    bundle();
    b_.recorder().close_compile(compile_);
    Built result;
    result.capture = b_.finish();
    result.ndjson = b_.ndjson();
    return result;
  }

 private:
  using Seen = CaptureBuilder::Seen;

  void hook(std::string_view label, const std::string& attribute) {
    HookRecord record;
    record.label = label;
    record.attribute = attribute;
    b_.recorder().hook(record, false);
    record.fired = 1;
    b_.recorder().hook(record, true);
  }

  Seen node(UnitId unit, std::string_view name, std::string_view op, std::string_view target,
            std::vector<UnitId> inputs) {
    Seen seen = b_.seen(unit);
    seen.text("name", name).text("op", op).text("target", target).refs("inputs", std::move(inputs), "list");
    return seen;
  }

  void pre_grad() {
    const GraphId graph = b_.graph(compile_, "fx");
    const UnitId l_x = b_.unit(graph, UnitKind::kFxNode);
    for (UnitId& unit : pre_) unit = b_.unit(graph, UnitKind::kFxNode);
    const UnitId output = b_.unit(graph, UnitKind::kFxNode);
    const auto linear = [&](UnitId unit, std::string_view name, UnitId input, int line, std::string_view module) {
      Seen seen = node(unit, name, "call_function", "<built-in function linear>", {input});
      seen.stack(kFile, line, "x = self." + std::string(module) + "(x)");
      seen.json("nn_module_stack",
                R"([{"key":"L__self___)" + std::string(module) + R"(","name":"L['self'].)" + std::string(module) +
                    R"(","class":"torch.nn.modules.linear.Linear"}])",
                "dict");
      seen.json("source_fn_stack", R"([[")" + std::string(name) + R"(","<class 'torch.nn.modules.linear.Linear'>"]])",
                "list");
      seen.json("keys", R"(["example_value","mutation_region_id","nn_module_stack","source_fn_stack","stack_trace"])");
      return seen;
    };
    Seen relu = node(pre_[1], "x_1", "call_function", "<built-in method relu of type object>", {pre_[0]});
    relu.stack(kFile, 26, "x = torch.relu(x)");
    relu.json("source_fn_stack", R"([["x_1","<built-in method relu of type object>"]])", "list");
    relu.json("keys", R"(["example_value","mutation_region_id","source_fn_stack","stack_trace"])");
    b_.snapshot("fx_pre_grad", graph,
                {node(l_x, "l_x_", "placeholder", "L_x_", {}), linear(pre_[0], "x", l_x, 25, "fc1"), relu,
                 linear(pre_[2], "x_2", pre_[1], 27, "fc2"), node(output, "output", "output", "output", {pre_[2]})});
  }

  // A node that kept all its fields.
  Seen anchor(UnitId unit, std::string_view name, std::string_view target, std::string_view aten,
              std::vector<UnitId> inputs, std::size_t source) {
    constexpr std::array<std::string_view, 3> kCode{"x = self.fc1(x)", "x = torch.relu(x)", "x = self.fc2(x)"};
    constexpr std::array<std::string_view, 3> kNames{"x", "x_1", "x_2"};
    Seen seen = node(unit, name, "call_function", target, std::move(inputs));
    seen.stack(kFile, 25 + static_cast<int>(source), kCode[source]);
    const std::string module = source == 0 ? "fc1" : "fc2";
    if (source != 1) {
      seen.json("nn_module_stack",
                R"([{"key":"L__self___)" + module + R"(","name":"L['self'].)" + module +
                    R"(","class":"torch.nn.modules.linear.Linear"}])",
                "dict");
    }
    const std::string_view fn =
        source == 1 ? "<built-in method relu of type object>" : "<class 'torch.nn.modules.linear.Linear'>";
    seen.json("source_fn_stack", R"([[")" + std::string(kNames[source]) + R"(",")" + std::string(fn) + R"("]])",
              "list");
    seen.text("original_aten", aten, "OpOverload");
    seen.from_node(
        R"([{"name":")" + std::string(kNames[source]) + R"(","pass":"","action":"create","graph":"pre","from":[]}])",
        {pre_[source]});
    seen.json(
        "keys",
        source == 1
            ? R"(["from_node","mutation_region_id","original_aten","seq_nr","source_fn_stack","stack_trace","tensor_meta","val"])"
            : R"(["from_node","mutation_region_id","nn_module_stack","original_aten","seq_nr","source_fn_stack","stack_trace","tensor_meta","val"])");
    return seen;
  }

  // A node that the rewrite made: only the ATen op came along.
  Seen made(UnitId unit, std::string_view name, std::string_view target, std::vector<UnitId> inputs) {
    Seen seen = node(unit, name, "call_function", target, std::move(inputs));
    seen.text("original_aten", "aten.addmm.default", "OpOverload");
    seen.json("keys", R"(["mutation_region_id","original_aten","tensor_meta","val"])");
    return seen;
  }

  void post_grad() {
    const GraphId graph = b_.graph(compile_, "fx", "inference");
    std::array<UnitId, 5> arg{};
    for (UnitId& unit : arg) unit = b_.unit(graph, UnitKind::kFxNode);
    std::array<UnitId, 5> aten{};
    if (with_aten_) {
      for (UnitId& unit : aten) unit = b_.unit(graph, UnitKind::kFxNode);
    }
    for (UnitId& unit : post_) unit = b_.unit(graph, UnitKind::kFxNode);
    if (with_aten_) {
      post_[0] = aten[0];
      post_[3] = aten[2];
      post_[4] = aten[3];
    }
    const UnitId output = b_.unit(graph, UnitKind::kFxNode);
    std::vector<Seen> inputs;
    for (std::size_t i = 0; i < arg.size(); ++i) {
      const std::string name = "arg" + std::to_string(i) + "_1";
      inputs.push_back(node(arg[i], name, "placeholder", name, {}));
    }
    const Seen permute = anchor(post_[0], "permute", "aten.permute.default", "aten.linear.default", {arg[0]}, 0);
    const Seen permute_1 = anchor(post_[4], "permute_1", "aten.permute.default", "aten.linear.default", {arg[3]}, 2);
    if (with_aten_) {
      std::vector<Seen> before = inputs;
      before.push_back(permute);
      before.push_back(
          anchor(aten[1], "addmm", "aten.addmm.default", "aten.addmm.default", {arg[1], arg[2], post_[0]}, 0));
      before.push_back(anchor(post_[3], "relu", "aten.relu.default", "aten.relu.default", {aten[1]}, 1));
      before.push_back(permute_1);
      before.push_back(
          anchor(aten[4], "addmm_1", "aten.addmm.default", "aten.addmm.default", {arg[4], post_[3], post_[4]}, 2));
      before.push_back(node(output, "output", "output", "output", {aten[4]}));
      b_.snapshot("fx_aten", graph, before);
    }
    std::vector<Seen> units = inputs;
    units.push_back(permute);
    units.push_back(made(post_[1], "mm_default_1", "aten.mm.default", {arg[2], post_[0]}));
    units.push_back(made(post_[2], "add_tensor_1", "aten.add.Tensor", {arg[1], post_[1]}));
    units.push_back(anchor(post_[3], "relu", "aten.relu.default", "aten.relu.default", {post_[2]}, 1));
    units.push_back(permute_1);
    units.push_back(made(post_[5], "mm_default", "aten.mm.default", {post_[3], post_[4]}));
    units.push_back(made(post_[6], "add_tensor", "aten.add.Tensor", {arg[4], post_[5]}));
    units.push_back(node(output, "output", "output", "output", {post_[6]}));
    b_.snapshot("fx_post_grad", graph, units);
  }

  struct Lowered {
    std::vector<UnitId> origins;
    UnitId origin_node;
    std::string_view traces;  // empty: the accessor gave an empty set
  };

  std::array<Lowered, 5> lowered() const {
    return {{{{post_[0], post_[1]}, post_[1], kTraces25},
             {{post_[2]}, post_[2], {}},
             {{post_[3]}, post_[3], kTraces26},
             {{post_[4], post_[5]}, post_[5], kTraces27},
             {{post_[6]}, post_[6], {}}}};
  }

  void looplevel() {
    const GraphId graph = b_.graph(compile_, "ir", "inference");
    for (UnitId& unit : ops_) unit = b_.unit(graph, UnitKind::kOperation);
    const auto all = lowered();
    for (std::string_view stage : {"ir_pre_pass", "ir_post_pass"}) {
      std::vector<Seen> units;
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        Seen seen = b_.seen(ops_[i]);
        seen.text("name", "op" + std::to_string(i)).text("buffer", "buf" + std::to_string(i));
        seen.text("ir_class", "ComputedBuffer").text("data_class", i == 0 || i == 3 ? "Reduction" : "Pointwise");
        seen.json(
            "attributes",
            stage == "ir_pre_pass"
                ? R"(["annotations","data","layout","name","operation_name","origin_node","origins","traceback"])"
                : R"(["annotations","data","dim_hints","layout","name","op_it_space_splits","operation_name","origin_node","origins","traceback"])");
        seen.refs("origins", all[i].origins).ref("origin_node", all[i].origin_node).empty("traceback");
        if (all[i].traces.empty()) {
          seen.empty("get_stack_traces", "OrderedSet");
        } else {
          seen.json("get_stack_traces", all[i].traces, "OrderedSet");
        }
        units.push_back(seen);
      }
      b_.snapshot(stage, graph, units);
    }
  }

  static std::string source(int line) {
    return R"({"file":"reference_mlp.py","start_line":)" + std::to_string(line) +
           R"(,"start_col":0,"end_line":null,"end_col":null})";
  }

  static std::string handle(std::string_view id, const std::string& source, std::string_view aten,
                            const std::string& chain, const std::string& fused) {
    return R"({"id":")" + std::string(id) + R"(","source":)" + source + R"(,"aten_op":")" + std::string(aten) +
           R"(","ir_chain":)" + chain + R"(,"fused_from":)" + fused + R"(,"fusion_context":null})";
  }

  // The constituents of a matmul: the mm without a source, the permute with one.
  static std::string constituents(int line, std::string_view mm, std::string_view permute, std::string_view id_a,
                                  std::string_view id_b) {
    return "[" + handle(id_a, "null", "aten.addmm.default", R"([")" + std::string(mm) + R"("])", "[]") + "," +
           handle(id_b, source(line), "aten.linear.default", R"([")" + std::string(permute) + R"("])", "[]") + "]";
  }

  static std::array<std::string, 5> handles() {
    return {handle("3841103980854345041", source(25), "aten.addmm.default", R"(["mm_default_1","permute","buf0"])",
                   constituents(25, "mm_default_1", "permute", "1001", "1002")),
            handle("605170506422197115", "null", "aten.addmm.default", R"(["add_tensor_1","buf1"])", "[]"),
            handle("2003101464082329501", source(26), "aten.relu.default", R"(["relu","buf2"])", "[]"),
            handle("4917498687135836649", source(27), "aten.addmm.default", R"(["mm_default","permute_1","buf3"])",
                   constituents(27, "mm_default", "permute_1", "1003", "1004")),
            handle("6208522288796453179", "null", "aten.addmm.default", R"(["add_tensor","buf4"])", "[]")};
  }

  static constexpr std::array<std::string_view, 5> kDeviceOps{"batchmatmul", "add", "relufwd", "batchmatmul", "add"};

  void op_specs() {
    const GraphId graph = b_.graph(compile_, "op_spec", "inference");
    std::vector<Seen> units;
    const auto all = lowered();
    const auto id = handles();
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      specs_[i] = b_.unit(graph, UnitKind::kOpSpec);
      Seen seen = b_.seen(specs_[i]);
      seen.text("name", "op" + std::to_string(i)).text("op", kDeviceOps[i]).text("buffer", "buf" + std::to_string(i));
      seen.json("is_reduction", i == 0 || i == 3 ? "true" : "false");
      seen.json(
          "fields",
          R"(["op","is_reduction","iteration_space","args","op_info","tiled_symbols","symbolic_dim_bounds","debug_handle"])");
      seen.refs("buffer_origins", all[i].origins)
          .ref("buffer_origin_node", all[i].origin_node)
          .empty("buffer_traceback");
      if (all[i].traces.empty()) {
        seen.empty("buffer_get_stack_traces", "OrderedSet");
      } else {
        seen.json("buffer_get_stack_traces", all[i].traces, "OrderedSet");
      }
      seen.json("debug_handle", id[i], "DebugHandle");
      units.push_back(seen);
      b_.recorder().link("create_op_spec", {ops_[i]}, {specs_[i]});
    }
    b_.snapshot("op_spec", graph, units);
  }

  void kernel() {
    const GraphId graph = b_.graph(compile_, "kernel", "inference");
    kernel_ = b_.unit(graph, UnitKind::kKernel);
    b_.recorder().link("define_kernel", {ops_.begin(), ops_.end()}, {kernel_});
    b_.recorder().claim(kernel_, "compiler", "origins", {post_.begin(), post_.end()});
    Seen seen = b_.seen(kernel_);
    seen.text("name", kKernelName);
    seen.text(
        "comment",
        "# Topologically Sorted Source Nodes: [x, x_1, x_2], Original ATen: [aten.linear, aten.addmm, aten.relu]");
    seen.text("detailed", "# kernel path: none");
    b_.snapshot("kernel", graph, {seen});
    b_.recorder().volatile_value(b_.recorder().unit_name(kernel_), "output_dir",
                                 "bundles/sdsc_fused_addmm_linear_relu_0");
  }

  void bundle() {
    const GraphId graph = b_.graph(compile_, "bundle", "inference");
    std::vector<Seen> units;
    std::vector<UnitId> files;
    const auto id = handles();
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      files.push_back(b_.unit(graph, UnitKind::kBundleFile));
      Seen seen = b_.seen(files.back());
      const std::string n = std::to_string(i);
      seen.text("name", "sdsc_" + n + ".json");
      seen.json("op_keys", R"([")" + n + "_" + std::string(kDeviceOps[i]) + R"("])");
      seen.json("fields_found", R"(["debug_handle_"])");
      seen.json("debug_handle", id[i], "dict");
      units.push_back(seen);
    }
    b_.snapshot("superdsc", graph, units);
    b_.recorder().link("bundle_file", {kernel_}, files);
  }

  bool with_aten_;
  CaptureBuilder b_;
  CompileId compile_ = CompileId::kNone;
  std::array<UnitId, 3> pre_{};
  std::array<UnitId, 7> post_{};
  std::array<UnitId, 5> ops_{}, specs_{};
  UnitId kernel_ = UnitId::kNone;
};

}  // namespace

Built build_seed000(bool with_aten) { return Seed000(with_aten).build(); }

}  // namespace kerntrail::testing
