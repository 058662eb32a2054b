#include "stages.h"

namespace kerntrail::probe {
namespace {

struct StageRow {
  StageId Tables::Stages::* slot;
  const char *key, *title, *noun, *layer;
  int order;
};

constexpr StageRow kStages[] = {
    {&Tables::Stages::fx_pre_grad, "fx_pre_grad", "FX Graph (pre-grad)", "compute node", "FX", 20},
    {&Tables::Stages::fx_joint, "fx_joint", "FX Graph (joint)", "compute node", "FX", 30},
    {&Tables::Stages::fx_aten, "fx_aten", "FX Graph (before post-grad)", "compute node", "FX", 40},
    {&Tables::Stages::fx_post_grad, "fx_post_grad", "FX Graph (post-grad)", "compute node", "FX", 50},
    {&Tables::Stages::ir_pre_pass, "ir_pre_pass", "LoopLevelIR (pre-pass)", "operation", "IR", 60},
    {&Tables::Stages::ir_post_pass, "ir_post_pass", "LoopLevelIR (post-pass)", "operation", "IR", 70},
    {&Tables::Stages::schedule, "schedule", "Schedule", "group", "IR", 80},
    {&Tables::Stages::op_spec, "op_spec", "OpSpec", "op", "Spyre", 90},
    {&Tables::Stages::superdsc, "superdsc", "SuperDSC JSON", "file", "Spyre", 100},
    {&Tables::Stages::kernel, "kernel", "Kernel", "kernel", "backend", 110},
};

struct AttrRow {
  AttrId Tables::Attrs::* slot;
  const char* name;
  ValueType type;
  const char* layer;        // empty: inventory
  const char* first_stage;  // empty: inventory
};

// Tracked fields in the order of the report's rows; original_aten and from_node come to exist while AOT traces.
constexpr AttrRow kAttrs[] = {
    {&Tables::Attrs::stack_trace, "stack_trace", ValueType::kStack, "FX", "fx_pre_grad"},
    {&Tables::Attrs::nn_module_stack, "nn_module_stack", ValueType::kModules, "FX", "fx_pre_grad"},
    {&Tables::Attrs::source_fn_stack, "source_fn_stack", ValueType::kJson, "FX", "fx_pre_grad"},
    {&Tables::Attrs::original_aten, "original_aten", ValueType::kOp, "FX", "fx_joint"},
    {&Tables::Attrs::from_node, "from_node", ValueType::kNodeSources, "FX", "fx_joint"},
    {&Tables::Attrs::origins, "origins", ValueType::kRefs, "IR", "ir_pre_pass"},
    {&Tables::Attrs::origin_node, "origin_node", ValueType::kRef, "IR", "ir_pre_pass"},
    {&Tables::Attrs::traceback, "traceback", ValueType::kText, "IR", "ir_pre_pass"},
    {&Tables::Attrs::get_stack_traces, "get_stack_traces", ValueType::kJson, "IR", "ir_pre_pass"},
    {&Tables::Attrs::debug_handle, "debug_handle", ValueType::kHandle, "Spyre", "op_spec"},
    {&Tables::Attrs::name, "name", ValueType::kText, "", ""},
    {&Tables::Attrs::op, "op", ValueType::kText, "", ""},
    {&Tables::Attrs::target, "target", ValueType::kText, "", ""},
    {&Tables::Attrs::inputs, "inputs", ValueType::kRefs, "", ""},
    {&Tables::Attrs::args, "args", ValueType::kJson, "", ""},
    {&Tables::Attrs::type, "type", ValueType::kJson, "", ""},
    {&Tables::Attrs::keys, "keys", ValueType::kJson, "", ""},
    {&Tables::Attrs::buffer, "buffer", ValueType::kText, "", ""},
    {&Tables::Attrs::ir_class, "ir_class", ValueType::kText, "", ""},
    {&Tables::Attrs::data_class, "data_class", ValueType::kText, "", ""},
    {&Tables::Attrs::history, "history", ValueType::kJson, "", ""},
    {&Tables::Attrs::attributes, "attributes", ValueType::kJson, "", ""},
    {&Tables::Attrs::is_reduction, "is_reduction", ValueType::kJson, "", ""},
    {&Tables::Attrs::fields, "fields", ValueType::kJson, "", ""},
    {&Tables::Attrs::buffer_origins, "buffer_origins", ValueType::kRefs, "", ""},
    {&Tables::Attrs::buffer_origin_node, "buffer_origin_node", ValueType::kRef, "", ""},
    {&Tables::Attrs::buffer_traceback, "buffer_traceback", ValueType::kText, "", ""},
    {&Tables::Attrs::buffer_get_stack_traces, "buffer_get_stack_traces", ValueType::kJson, "", ""},
    {&Tables::Attrs::group_class, "group_class", ValueType::kText, "", ""},
    {&Tables::Attrs::operations, "operations", ValueType::kRefs, "", ""},
    {&Tables::Attrs::outcomes, "outcomes", ValueType::kJson, "", ""},
    {&Tables::Attrs::kernel_class, "class", ValueType::kText, "", ""},
    {&Tables::Attrs::ir_classes, "ir_classes", ValueType::kJson, "", ""},
    {&Tables::Attrs::source, "source", ValueType::kText, "", ""},
    {&Tables::Attrs::handles, "handles", ValueType::kJson, "", ""},
    {&Tables::Attrs::stacks, "stacks", ValueType::kJson, "", ""},
    {&Tables::Attrs::calls, "calls", ValueType::kJson, "", ""},
    {&Tables::Attrs::seen, "seen", ValueType::kJson, "", ""},
    {&Tables::Attrs::witness, "witness", ValueType::kJson, "", ""},
    {&Tables::Attrs::comment, "comment", ValueType::kText, "", ""},
    {&Tables::Attrs::detailed, "detailed", ValueType::kText, "", ""},
    {&Tables::Attrs::reread, "reread", ValueType::kJson, "", ""},
    {&Tables::Attrs::op_keys, "op_keys", ValueType::kJson, "", ""},
    {&Tables::Attrs::fields_found, "fields_found", ValueType::kJson, "", ""},
    {&Tables::Attrs::parse_error, "parse_error", ValueType::kText, "", ""},
};

}  // namespace

Tables Tables::declare(model::Recorder& recorder) {
  Tables out{};
  for (const StageRow& row : kStages) {
    out.stage.*row.slot = recorder.stage({row.key, row.title, row.noun, row.layer, row.order});
    out.keys.push_back(row.key);
  }
  for (const AttrRow& row : kAttrs) {
    out.attr.*row.slot = recorder.attr_kind({row.name, row.type, row.layer, row.first_stage, row.layer[0] != '\0'});
  }
  return out;
}

}  // namespace kerntrail::probe
