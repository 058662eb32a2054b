// The reference report, row by row: its numbers and names are the data here, the capture is seed000's.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "base/strings.h"
#include "render/markdown.h"
#include "render/outputs.h"
#include "seed000/seed000.h"

namespace kerntrail {
namespace {

const std::string& report_text() {
  static const std::string kText = [] {
    const auto built = testing::build_seed000();
    ReportOptions options;
    options.model_name = "SimpleMLP";
    options.stamp = "2026-07-15 14:22";
    options.example = true;
    auto report = make_report(built.capture, options);
    EXPECT_TRUE(report);
    return report ? render::report_markdown(*report) : std::string();
  }();
  return kText;
}

// Cells of a table row, trimmed.
std::vector<std::string> cells(std::string_view row) {
  std::vector<std::string> result;
  for (std::string_view cell : base::split(row, '|')) result.emplace_back(base::trim(cell));
  if (result.size() >= 2) {
    result.erase(result.begin());
    result.pop_back();
  }
  return result;
}

// Rows of the n-th table below a heading that starts with `heading`, without header and rule.
std::vector<std::vector<std::string>> table(std::string_view heading, std::size_t n = 0) {
  std::vector<std::vector<std::vector<std::string>>> tables;
  bool inside = false;
  bool in_table = false;
  for (std::string_view line : base::split_lines(report_text())) {
    if (line.substr(0, 1) == "#") inside = line.find(heading) != std::string_view::npos;
    const bool row = inside && line.substr(0, 1) == "|";
    if (row && !in_table) tables.emplace_back();
    if (row) tables.back().push_back(cells(line));
    in_table = row;
  }
  if (n >= tables.size()) {
    ADD_FAILURE() << "no table below " << heading;
    return {};
  }
  tables[n].erase(tables[n].begin(), tables[n].begin() + 2);
  return tables[n];
}

using Rows = std::vector<std::vector<std::string>>;

TEST(Seed000Report, SectionsComeInTheReferencesOrder) {
  const std::vector<std::string> headings{"# Example Audit: `SimpleMLP` — Source-to-Kernel Provenance",
                                          "> Generated: 2026-07-15 14:22 | Issue: torch-spyre#2574",
                                          "## Source → Kernel Lineage",
                                          "## Stage × Field Matrix",
                                          "## Stage 2a — FX Graph (pre-grad): 3 compute nodes",
                                          "## Stage 2b — FX Graph (post-grad): 7 compute nodes",
                                          "## Stage 3 — LoopLevelIR (pre-pass): 5 operations",
                                          "## Stage 4 — LoopLevelIR (post-pass): 5 operations",
                                          "## Stage 5 — OpSpec: 5 ops",
                                          "## Stage 6 — SuperDSC: 5 `sdsc_*.json` files (1 kernel)",
                                          "### `sdsc_fused_addmm_linear_relu_0`"};
  std::size_t at = 0;
  for (const std::string& heading : headings) {
    const std::size_t found = report_text().find(heading + "\n", at);
    ASSERT_NE(found, std::string::npos) << heading;
    at = found;
  }
}

TEST(Seed000Report, Matrix) {
  const Rows expected{{"FX", "`stack_trace`", "✓", "◐ 3/7", "–", "–", "–", "–"},
                      {"FX", "`nn_module_stack`", "◐ 2/3", "◐ 2/7", "–", "–", "✗", "✗"},
                      {"FX", "`source_fn_stack`", "✓", "◐ 3/7", "–", "–", "✗", "✗"},
                      {"FX", "`original_aten`", "–", "✓", "–", "–", "–", "–"},
                      {"FX", "`from_node`", "–", "◐ 3/7", "–", "–", "✗", "✗"},
                      {"IR", "`origins`", "–", "–", "✓", "✓", "–", "–"},
                      {"IR", "`origin_node`", "–", "–", "✓", "✓", "–", "–"},
                      {"IR", "`traceback`", "–", "–", "✗", "✗", "✗", "✗"},
                      {"IR", "`get_stack_traces`", "–", "–", "◐ 3/5", "◐ 3/5", "–", "–"},
                      {"Spyre", "`debug_handle`", "–", "–", "–", "–", "✓", "✓"}};
  EXPECT_EQ(table("Stage × Field Matrix"), expected);
}

TEST(Seed000Report, CountsTable) {
  const Rows expected{
      {"FX Graph (pre-grad): compute nodes", "3"},
      {"FX Graph (post-grad): compute nodes", "7"},
      {"LoopLevelIR (pre-pass): operations", "5"},
      {"LoopLevelIR (post-pass): operations", "5"},
      {"OpSpec: ops", "5"},
      {"SuperDSC JSON: files", "5"},
      {"Kernels", "1"},
      {"OpSpec declared fields",
       "op, is_reduction, iteration_space, args, op_info, tiled_symbols, symbolic_dim_bounds, debug_handle"}};
  EXPECT_EQ(table("Stage × Field Matrix", 1), expected);
}

TEST(Seed000Report, FxTables) {
  const Rows pre{
      {"`x`", "`<built-in function linear>`", "`str`", "`dict`", "`list`", "✗", "✗", "`x = self.fc1(x)`"},
      {"`x_1`", "`<built-in method relu of type object>`", "`str`", "✗", "`list`", "✗", "✗", "`x = torch.relu(x)`"},
      {"`x_2`", "`<built-in function linear>`", "`str`", "`dict`", "`list`", "✗", "✗", "`x = self.fc2(x)`"}};
  EXPECT_EQ(table("Stage 2a"), pre);
  const Rows post{
      {"`permute`", "`aten.permute.default`", "`str`", "`dict`", "`list`", "`OpOverload`", "`list`",
       "`x = self.fc1(x)`"},
      {"`mm_default_1`", "`aten.mm.default`", "✗", "✗", "✗", "`OpOverload`", "✗", "—"},
      {"`add_tensor_1`", "`aten.add.Tensor`", "✗", "✗", "✗", "`OpOverload`", "✗", "—"},
      {"`relu`", "`aten.relu.default`", "`str`", "✗", "`list`", "`OpOverload`", "`list`", "`x = torch.relu(x)`"},
      {"`permute_1`", "`aten.permute.default`", "`str`", "`dict`", "`list`", "`OpOverload`", "`list`",
       "`x = self.fc2(x)`"},
      {"`mm_default`", "`aten.mm.default`", "✗", "✗", "✗", "`OpOverload`", "✗", "—"},
      {"`add_tensor`", "`aten.add.Tensor`", "✗", "✗", "✗", "`OpOverload`", "✗", "—"}};
  EXPECT_EQ(table("Stage 2b"), post);
}

TEST(Seed000Report, LoopLevelTables) {
  const Rows expected{{"`op0`", "`mm_default_1`, `permute`", "`mm_default_1`", "✗", "✓"},
                      {"`op1`", "`add_tensor_1`", "`add_tensor_1`", "✗", "✗"},
                      {"`op2`", "`relu`", "`relu`", "✗", "✓"},
                      {"`op3`", "`mm_default`, `permute_1`", "`mm_default`", "✗", "✓"},
                      {"`op4`", "`add_tensor`", "`add_tensor`", "✗", "✗"}};
  EXPECT_EQ(table("Stage 3"), expected);
  EXPECT_EQ(table("Stage 4"), expected);
}

TEST(Seed000Report, OpSpecTable) {
  const Rows expected{{"`batchmatmul`", "`op0`", "`mm_default_1`, `permute`", "`mm_default_1`", "`3841103980854345041`",
                       "`reference_mlp.py:25`"},
                      {"`add`", "`op1`", "`add_tensor_1`", "`add_tensor_1`", "`605170506422197115`", "—"},
                      {"`relufwd`", "`op2`", "`relu`", "`relu`", "`2003101464082329501`", "`reference_mlp.py:26`"},
                      {"`batchmatmul`", "`op3`", "`mm_default`, `permute_1`", "`mm_default`", "`4917498687135836649`",
                       "`reference_mlp.py:27`"},
                      {"`add`", "`op4`", "`add_tensor`", "`add_tensor`", "`6208522288796453179`", "—"}};
  EXPECT_EQ(table("Stage 5"), expected);
}

TEST(Seed000Report, SuperDscTable) {
  const std::string kernel = "`sdsc_fused_addmm_linear_relu_0`";
  const std::string addmm = "`aten.addmm.default`";
  const std::string both = "`aten.addmm.default`, `aten.linear.default`";
  const Rows expected{
      {kernel, "`sdsc_0.json`", "`0_batchmatmul`", addmm, "`reference_mlp.py:25`", both, "`3841103980854345041`"},
      {kernel, "`sdsc_1.json`", "`1_add`", addmm, "—", "—", "`605170506422197115`"},
      {kernel, "`sdsc_2.json`", "`2_relufwd`", "`aten.relu.default`", "`reference_mlp.py:26`", "—",
       "`2003101464082329501`"},
      {kernel, "`sdsc_3.json`", "`3_batchmatmul`", addmm, "`reference_mlp.py:27`", both, "`4917498687135836649`"},
      {kernel, "`sdsc_4.json`", "`4_add`", addmm, "—", "—", "`6208522288796453179`"}};
  EXPECT_EQ(table("Stage 6"), expected);
}

TEST(Seed000Report, ListsAndKernelBlock) {
  for (const char* line :
       {"All observed node.meta keys: `['example_value', 'mutation_region_id', 'nn_module_stack', 'source_fn_stack', "
        "'stack_trace']`.",
        "All observed node.meta keys: `['from_node', 'mutation_region_id', 'nn_module_stack', 'original_aten', "
        "'seq_nr', "
        "'source_fn_stack', 'stack_trace', 'tensor_meta', 'val']`.",
        "All observed ComputedBuffer attributes: `['annotations', 'data', 'layout', 'name', 'operation_name', "
        "'origin_node', "
        "'origins', 'traceback']`.",
        "All observed ComputedBuffer attributes: `['annotations', 'data', 'dim_hints', 'layout', 'name', "
        "'op_it_space_splits', "
        "'operation_name', 'origin_node', 'origins', 'traceback']`.",
        "OpSpec declared fields: `['op', 'is_reduction', 'iteration_space', 'args', 'op_info', 'tiled_symbols', "
        "'symbolic_dim_bounds', 'debug_handle']`.",
        "`debug_handle_` present in 5/5 files, non-null in 5/5.",
        "All observed `debug_handle` keys: `['aten_op', 'fused_from', 'fusion_context', 'id', 'ir_chain', 'source']`.",
        "- buffers (5): op0, op1, op2, op3, op4",
        "- fx origins: add_tensor, add_tensor_1, mm_default, mm_default_1, permute, permute_1, relu",
        "- kernel metadata: `# Topologically Sorted Source Nodes: [x, x_1, x_2], Original ATen: [aten.linear, "
        "aten.addmm, aten.relu]`",
        "- `sdsc_*.json` files: 5; `debug_handle_` non-null: 5/5"}) {
    EXPECT_NE(report_text().find(std::string(line) + "\n"), std::string::npos) << line;
  }
}

TEST(Seed000Report, DeclaresRuleAndEmulation) {
  EXPECT_NE(report_text().find("Metadata rule in force: `seed`."), std::string::npos);
  EXPECT_NE(report_text().find("relabelled to `aten.linear`"), std::string::npos);
  EXPECT_NE(report_text().find("(bias, mm)"), std::string::npos);
}

TEST(Seed000Report, NoDateUnlessGiven) {
  const auto built = testing::build_seed000();
  const auto report = make_report(built.capture);
  ASSERT_TRUE(report);
  EXPECT_EQ(render::report_markdown(*report).find("Generated"), std::string::npos);
}

TEST(Seed000Raw, HasTheReferencesKeys) {
  const auto built = testing::build_seed000();
  const auto text = render::raw_export(built.capture);
  ASSERT_TRUE(text);
  const auto json = base::Json::parse(*text);
  ASSERT_TRUE(json);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json->as_object()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"stage2_pre_grad", "stage2_post_grad", "stage3_looplevel_prepass",
                                            "stage4_looplevel_postpass", "stage5_opspec", "stage6_kernels", "_hooks"}));
  const base::Json& x = (*json)["stage2_pre_grad"]["nodes"].as_array().at(0);
  EXPECT_EQ(x["name"].as_string(), "x");
  EXPECT_EQ(x["fields"]["stack_trace"]["source_line"].as_string(), "x = self.fc1(x)");
  EXPECT_TRUE(x["fields"]["original_aten"].is_null());
  const base::Json& op = (*json)["stage3_looplevel_prepass"]["operations"].as_array().at(0);
  EXPECT_EQ(op["name"].as_string(), "op0");
  EXPECT_EQ(op["type"].as_string(), "ComputedBuffer");
  EXPECT_EQ(op["fields"]["origin_node"].as_string(), "mm_default_1");
  EXPECT_TRUE(op["attr_exists"]["traceback"].as_bool());
  EXPECT_TRUE(op["fields"]["traceback"].is_null());
  const base::Json& spec = (*json)["stage5_opspec"]["ops"].as_array().at(0);
  EXPECT_EQ(spec["op"].as_string(), "batchmatmul");
  EXPECT_TRUE(spec["opspec_present"]["debug_handle"].as_bool());
  EXPECT_FALSE(spec["opspec_present"]["origins"].as_bool(true));
  EXPECT_EQ(spec["debug_handle"]["source_line"].as_string(), "reference_mlp.py:25");
  EXPECT_EQ((*json)["stage6_kernels"]["output_dirs"]["sdsc_fused_addmm_linear_relu_0"].as_string(),
            "bundles/sdsc_fused_addmm_linear_relu_0");
  std::vector<std::string> hooks;
  for (const auto& [key, value] : (*json)["_hooks"].as_object()) hooks.push_back(key);
  ASSERT_GE(hooks.size(), 7U);
  EXPECT_EQ(hooks[0], "stage2_pre_grad");
  EXPECT_EQ(hooks[5], "stage6_output_dir");
  EXPECT_EQ((*json)["_hooks"]["stage6_output_dir"].as_string(), "installed");
}

TEST(Seed000Summary, SixLinesPaddedTo25) {
  const auto built = testing::build_seed000();
  const std::string text = render::render_summary(built.capture, {"SimpleMLP", "batch=2", "raw.json", "report.md"});
  for (const char* line : {"  stage2_pre_grad           True nodes=3\n", "  stage4_looplevel_postpass True ops=5\n",
                           "  stage6_kernels            True kernels=1, dirs=1\n",
                           "SuperDSC: 1 kernels, 5 sdsc_*.json, provenance_present=True\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace kerntrail
