// The stage and attribute tables of the torch pipeline and of Spyre-format back ends: what the probe declares in
// every capture. A new stage or field is one row here.
// Must not know: how a value is read.
#pragma once

#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "model/recorder.h"

namespace kerntrail::probe {

struct Tables {
  struct Stages {
    StageId fx_pre_grad, fx_joint, fx_aten, fx_post_grad, ir_pre_pass, ir_post_pass, schedule, op_spec, superdsc,
        kernel;
  } stage;
  struct Attrs {
    // every unit
    AttrId name;
    // FX nodes
    AttrId op, target, inputs, args, type, keys;
    AttrId stack_trace, nn_module_stack, source_fn_stack, original_aten, from_node;
    // IR operations
    AttrId buffer, ir_class, data_class, attributes, history;
    AttrId origins, origin_node, traceback, get_stack_traces;
    // scheduler groups
    AttrId group_class, operations, outcomes;
    // OpSpecs: what was read from the input buffer is not the OpSpec's own
    AttrId is_reduction, fields;
    AttrId buffer_origins, buffer_origin_node, buffer_traceback, buffer_get_stack_traces;
    // kernels and bundle files
    AttrId kernel_class, ir_classes, source, handles, stacks, calls, seen, witness;
    AttrId comment, detailed, reread, op_keys, fields_found, parse_error;
    AttrId debug_handle;
  } attr;

  std::vector<std::string_view> keys;  // by StageId

  // Declares everything, in table order.
  static Tables declare(model::Recorder& recorder);
};

}  // namespace kerntrail::probe
