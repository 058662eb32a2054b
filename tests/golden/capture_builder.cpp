#include "capture_builder.h"

#include <gtest/gtest.h>

#include <utility>

namespace kerntrail::testing {

class TeeSink final : public model::Sink {
 public:
  TeeSink(model::Sink& a, model::Sink& b) : a_(a), b_(b) {}
  void run(const RunInfo& v) override {
    both([&](auto& s) { s.run(v); });
  }
  void stage(StageId id, const Stage& v) override {
    both([&](auto& s) { s.stage(id, v); });
  }
  void attr_kind(AttrId id, const AttrKind& v) override {
    both([&](auto& s) { s.attr_kind(id, v); });
  }
  void hook(const HookRecord& v, bool at_end) override {
    both([&](auto& s) { s.hook(v, at_end); });
  }
  void text(TextId id, std::string_view v, bool is_json) override {
    both([&](auto& s) { s.text(id, v, is_json); });
  }
  void loc(LocId id, const Loc& v) override {
    both([&](auto& s) { s.loc(id, v); });
  }
  void compile(CompileId id, const Compile& v) override {
    both([&](auto& s) { s.compile(id, v); });
  }
  void graph(GraphId id, const Graph& v) override {
    both([&](auto& s) { s.graph(id, v); });
  }
  void unit(UnitId id, const Unit& v) override {
    both([&](auto& s) { s.unit(id, v); });
  }
  void attr(const model::AttrChange& v) override {
    both([&](auto& s) { s.attr(v); });
  }
  void snapshot(SnapshotId id, const Snapshot& v) override {
    both([&](auto& s) { s.snapshot(id, v); });
  }
  void pass(PassId id, const Pass& v, bool at_end) override {
    both([&](auto& s) { s.pass(id, v, at_end); });
  }
  void birth(const Birth& v) override {
    both([&](auto& s) { s.birth(v); });
  }
  void link(const Link& v) override {
    both([&](auto& s) { s.link(v); });
  }
  void claim(const Claim& v) override {
    both([&](auto& s) { s.claim(v); });
  }
  void note(const Note& v) override {
    both([&](auto& s) { s.note(v); });
  }
  void volatile_value(const Volatile& v) override {
    both([&](auto& s) { s.volatile_value(v); });
  }
  void source(const SourceFile& v) override {
    both([&](auto& s) { s.source(v); });
  }
  void end(const EndRecord& v) override {
    both([&](auto& s) { s.end(v); });
  }

 private:
  template <class F>
  void both(F&& f) {
    f(a_);
    f(b_);
  }
  model::Sink& a_;
  model::Sink& b_;
};

namespace {

const std::vector<Stage>& probe_stages() {
  static const std::vector<Stage> kStages{
      {"fx_pre_grad", "FX Graph (pre-grad)", "compute node", "FX", 20},
      {"fx_aten", "FX Graph (before post-grad)", "compute node", "FX", 40},
      {"fx_post_grad", "FX Graph (post-grad)", "compute node", "FX", 50},
      {"ir_pre_pass", "LoopLevelIR (pre-pass)", "operation", "IR", 60},
      {"ir_post_pass", "LoopLevelIR (post-pass)", "operation", "IR", 70},
      {"op_spec", "OpSpec", "op", "Spyre", 90},
      {"superdsc", "SuperDSC JSON", "file", "Spyre", 100},
      {"kernel", "Kernel", "kernel", "backend", 110},
  };
  return kStages;
}

const std::vector<AttrKind>& probe_attrs() {
  static const std::vector<AttrKind> kAttrs{
      {"stack_trace", ValueType::kStack, "FX", "fx_pre_grad", true},
      {"nn_module_stack", ValueType::kModules, "FX", "fx_pre_grad", true},
      {"source_fn_stack", ValueType::kJson, "FX", "fx_pre_grad", true},
      {"original_aten", ValueType::kOp, "FX", "fx_joint", true},
      {"from_node", ValueType::kNodeSources, "FX", "fx_joint", true},
      {"origins", ValueType::kRefs, "IR", "ir_pre_pass", true},
      {"origin_node", ValueType::kRef, "IR", "ir_pre_pass", true},
      {"traceback", ValueType::kText, "IR", "ir_pre_pass", true},
      {"get_stack_traces", ValueType::kJson, "IR", "ir_pre_pass", true},
      {"debug_handle", ValueType::kHandle, "Spyre", "op_spec", true},
      {"name", ValueType::kText, "", "", false},
      {"op", ValueType::kText, "", "", false},
      {"target", ValueType::kText, "", "", false},
      {"inputs", ValueType::kRefs, "", "", false},
      {"keys", ValueType::kJson, "", "", false},
      {"attributes", ValueType::kJson, "", "", false},
      {"ir_class", ValueType::kText, "", "", false},
      {"data_class", ValueType::kText, "", "", false},
      {"buffer", ValueType::kText, "", "", false},
      {"fields", ValueType::kJson, "", "", false},
      {"is_reduction", ValueType::kJson, "", "", false},
      {"buffer_origins", ValueType::kRefs, "", "", false},
      {"buffer_origin_node", ValueType::kRef, "", "", false},
      {"buffer_traceback", ValueType::kText, "", "", false},
      {"buffer_get_stack_traces", ValueType::kJson, "", "", false},
      {"op_keys", ValueType::kJson, "", "", false},
      {"fields_found", ValueType::kJson, "", "", false},
      {"parse_error", ValueType::kText, "", "", false},
      {"comment", ValueType::kText, "", "", false},
      {"detailed", ValueType::kText, "", "", false},
  };
  return kAttrs;
}

}  // namespace

CaptureBuilder::CaptureBuilder(Settings settings)
    : writer_(model::NdjsonWriter::to_string(ndjson_)),
      replay_(std::make_unique<model::Replay>()),
      tee_(std::make_unique<TeeSink>(*writer_, *replay_)),
      recorder_(std::make_unique<model::Recorder>(*tee_)) {
  recorder_->run({kFormatVersion, "kerntrail test", "2.13.0", "3.11", "linux", std::move(settings)});
  for (const Stage& stage : probe_stages()) stages_.emplace_back(stage.key, recorder_->stage(stage));
  for (const AttrKind& kind : probe_attrs()) attrs_.emplace_back(kind.name, recorder_->attr_kind(kind));
}

CaptureBuilder::~CaptureBuilder() = default;

StageId CaptureBuilder::stage(std::string_view key) const {
  for (const auto& [name, id] : stages_) {
    if (name == key) return id;
  }
  return StageId::kNone;
}

void CaptureBuilder::add_stage(const Stage& stage) { stages_.emplace_back(stage.key, recorder_->stage(stage)); }

AttrId CaptureBuilder::attr(std::string_view name) {
  for (const auto& [known, id] : attrs_) {
    if (known == name) return id;
  }
  return recorder_->inventory_attr(name);
}

CompileId CaptureBuilder::compile(std::string_view backend, std::string_view torch_id) {
  return recorder_->compile({std::string(torch_id), 0, std::string(backend), {}});
}

GraphId CaptureBuilder::graph(CompileId compile, std::string_view kind, std::string_view direction) {
  return recorder_->graph(compile, kind, direction);
}

UnitId CaptureBuilder::unit(GraphId graph, UnitKind kind) { return recorder_->unit(graph, kind); }

SnapshotId CaptureBuilder::snapshot(std::string_view stage_key, GraphId graph, const std::vector<Seen>& units) {
  std::vector<model::ObservedUnit> observed;
  observed.reserve(units.size());
  for (const Seen& unit : units) observed.push_back(unit.value());
  return recorder_->snapshot(stage(stage_key), graph, observed);
}

LocId CaptureBuilder::frame(std::string_view file, std::int64_t line, std::string_view function) {
  Loc range;
  range.kind = LocKind::kRange;
  range.text = recorder_->text(file);
  range.function = recorder_->text(function);
  range.line = line;
  range.frame_class = FrameClass::kCompiler;
  range.rule = FrameRule::kTorchPath;
  return recorder_->loc(range);
}

LocId CaptureBuilder::call(LocId inner, LocId outer) {
  Loc chain;
  chain.kind = LocKind::kCall;
  chain.child = inner;
  chain.caller = outer;
  return recorder_->loc(chain);
}

Capture CaptureBuilder::finish(bool complete) {
  recorder_->end(complete);
  writer_->close();
  if (const Error* error = replay_->error()) ADD_FAILURE() << error->text();
  return replay_->take();
}

using Seen = CaptureBuilder::Seen;

Seen& Seen::add(std::string_view attr, Observation value) {
  value_.attrs.push_back({builder_->attr(attr), std::move(value)});
  return *this;
}

Seen& Seen::text(std::string_view attr, std::string_view text, std::string_view python_type) {
  Observation value;
  value.state = State::kPresent;
  value.python_type = builder_->recorder().text(python_type);
  value.text = builder_->recorder().text(text);
  return add(attr, value);
}

Seen& Seen::json(std::string_view attr, std::string_view json, std::string_view python_type) {
  Observation value;
  value.state = State::kPresent;
  if (!python_type.empty()) value.python_type = builder_->recorder().text(python_type);
  value.text = builder_->recorder().json(json);
  return add(attr, value);
}

Seen& Seen::refs(std::string_view attr, std::vector<UnitId> refs, std::string_view python_type) {
  Observation value;
  value.state = refs.empty() ? State::kEmpty : State::kPresent;
  value.python_type = builder_->recorder().text(python_type);
  value.refs = std::move(refs);
  return add(attr, value);
}

Seen& Seen::from_node(std::string_view json, std::vector<UnitId> refs) {
  return json_refs("from_node", json, std::move(refs));
}

Seen& Seen::json_refs(std::string_view attr, std::string_view json, std::vector<UnitId> refs) {
  Observation value;
  value.state = State::kPresent;
  value.python_type = builder_->recorder().text("list");
  value.text = builder_->recorder().json(json);
  value.refs = std::move(refs);
  return add(attr, value);
}

Seen& Seen::stack(std::string_view file, std::int64_t line, std::string_view code, std::string_view function) {
  model::Recorder& recorder = builder_->recorder();
  Loc range;
  range.kind = LocKind::kRange;
  range.text = recorder.text(file);
  range.function = recorder.text(function);
  range.code = recorder.text(code);
  range.line = line;
  range.frame_class = FrameClass::kUser;
  range.rule = FrameRule::kElsewhere;
  Observation value;
  value.state = State::kPresent;
  value.python_type = recorder.text("str");
  value.text = recorder.text("  File \"" + std::string(file) + "\", line " + std::to_string(line) + ", in " +
                             std::string(function) + "\n    " + std::string(code) + "\n");
  value.loc = recorder.loc(range);
  return add("stack_trace", value);
}

Seen& Seen::stack_at(std::string_view attr, LocId loc, std::string_view text) {
  Observation value;
  value.state = State::kPresent;
  value.python_type = builder_->recorder().text("str");
  value.text = builder_->recorder().text(text);
  value.loc = loc;
  return add(attr, value);
}

Seen& Seen::empty(std::string_view attr, std::string_view python_type) {
  Observation value;
  value.state = State::kEmpty;
  value.python_type = builder_->recorder().text(python_type);
  return add(attr, value);
}

Seen& Seen::unreadable(std::string_view attr) {
  Observation value;
  value.state = State::kUnreadable;
  return add(attr, value);
}

}  // namespace kerntrail::testing
