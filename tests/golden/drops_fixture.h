// A small compile in which tests of drops plant what they are about.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture_builder.h"
#include "invariants.h"
#include "kerntrail/drops.h"

namespace kerntrail::testing {

// One compile with a pre-grad graph of two nodes on lines 1 and 2 and an ATen graph that was traced from it.
class DropsTest : public ::testing::Test {
 protected:
  using Seen = CaptureBuilder::Seen;

  DropsTest() {
    compile_ = b_.compile("inductor");
    pre_ = b_.graph(compile_, "fx");
    graph_ = b_.graph(compile_, "fx", "inference");
    for (UnitId* unit : {&sin_, &cos_}) *unit = b_.unit(pre_, UnitKind::kFxNode);
    b_.snapshot("fx_pre_grad", pre_, {node(sin_, "sin", 1), node(cos_, "cos", 2)});
    a_ = b_.unit(graph_, UnitKind::kFxNode);
    c_ = b_.unit(graph_, UnitKind::kFxNode);
    born({a_, PassId::kNone, "frame", "", LocId::kNone, frame("torch/fx/interpreter.py", 9, "run_node"), {sin_}});
    born({c_, PassId::kNone, "frame", "", LocId::kNone, frame("torch/fx/interpreter.py", 9, "run_node"), {cos_}});
  }

  Seen node(UnitId unit, std::string_view name, int line, std::vector<UnitId> inputs = {},
            std::string_view target = "aten.sin.default") {
    Seen seen = b_.seen(unit);
    seen.text("name", name)
        .text("op", "call_function")
        .text("target", target)
        .refs("inputs", std::move(inputs), "list");
    if (line > 0) seen.stack("model.py", line, "y = f(x)");
    return seen;
  }
  Seen aten(UnitId unit, std::string_view name, int line, std::vector<UnitId> inputs = {}) {
    return node(unit, name, line, std::move(inputs)).text("original_aten", "aten.sin.default", "OpOverload");
  }
  void enter() { b_.snapshot("fx_aten", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2, {a_})}); }

  LocId frame(std::string_view file, int line, std::string_view function) { return b_.frame(file, line, function); }
  void born(const Birth& birth) { b_.recorder().birth(birth); }
  PassId begin(std::string_view name, std::string_view subsystem = "post_grad_passes", PassId parent = PassId::kNone) {
    return begin_on(graph_, name, subsystem, parent);
  }
  PassId begin_on(GraphId graph, std::string_view name, std::string_view subsystem = "", PassId parent = PassId::kNone,
                  PassKind kind = PassKind::kPass) {
    Pass pass;
    pass.graph = graph;
    pass.name = name;
    pass.subsystem = subsystem;
    pass.parent = parent;
    pass.kind = kind;
    if (kind == PassKind::kPass) pass.loc = frame("passes.py", 7, name);  // where its function is defined
    return b_.recorder().begin_pass(pass);
  }
  void look(PassId pass, GraphId graph, const std::vector<Seen>& units) {
    std::vector<model::ObservedUnit> observed;
    for (const Seen& unit : units) observed.push_back(unit.value());
    b_.recorder().look(pass, graph, observed);
  }
  UnitId fresh() { return b_.unit(graph_, UnitKind::kFxNode); }

  Drops judged(const DropOptions& options = {}) {
    capture_ = b_.finish();
    expect_invariants(capture_);
    auto all = drops(capture_, options);
    EXPECT_TRUE(all) << (all ? "" : all.error().text());
    EXPECT_EQ(all->size(), 1U);
    return all && !all->empty() ? all->front() : Drops{};
  }

  static const FieldUnit& cell(const Drops& drops, std::string_view stage, std::string_view field, UnitId unit) {
    for (const StageTally& s : drops.stages) {
      for (const FieldTally& f : s.fields) {
        for (const FieldUnit& u : f.units) {
          if (s.key == stage && f.name == field && u.unit == unit) return u;
        }
      }
    }
    static const FieldUnit kNothing{};
    ADD_FAILURE() << "no cell of " << field << " at " << stage;
    return kNothing;
  }
  const FieldUnit& post(const Drops& drops, std::string_view field, UnitId unit) {
    return cell(drops, "fx_post_grad", field, unit);
  }
  static Fate fate_in(const Drops& drops, PassId pass, UnitId unit, UnitId* by = nullptr) {
    for (const PassTally& tally : drops.passes) {
      for (const UnitFate& fate : tally.leavers) {
        if (tally.pass != pass || fate.unit != unit) continue;
        if (by != nullptr) *by = fate.by;
        return fate.fate;
      }
    }
    ADD_FAILURE() << "the unit did not leave in this pass";
    return Fate::kSurvived;
  }
  static std::vector<std::string> rules(const Drops& drops, bool declared = false) {
    std::vector<std::string> found;
    for (const ObserverFinding& f : drops.findings) {
      if ((f.intent != kNoIndex) == declared) found.emplace_back(observer_rule_id(f.rule));
    }
    return found;
  }

  CaptureBuilder b_;
  CompileId compile_{};
  GraphId pre_{}, graph_{};
  UnitId sin_{}, cos_{};  // pre-grad
  UnitId a_{}, c_{};      // ATen
  Capture capture_;
};

}  // namespace kerntrail::testing
