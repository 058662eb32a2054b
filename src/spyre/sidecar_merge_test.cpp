#include "spyre/sidecar_merge.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "spyre/sidecar_rules.h"
#include "spyre/test_sidecars.h"

namespace kerntrail::spyre {
namespace {

using testing::kernel;
using testing::op_from_line;
using testing::sidecar;
using testing::tracked;

Sidecar merged(const Sidecar& a, const Sidecar& b) {
  const auto out = merge_sidecars(a, b);
  EXPECT_TRUE(out) << out.error().text();
  return out ? *out : Sidecar{};
}

Sidecar without_generation(Sidecar sidecar) {
  sidecar.generation = 0;
  return sidecar;
}

CompileRecord compile() { return tracked({kernel("k0", {op_from_line(7, 3)}), kernel("k1", {op_from_line(8, 4)})}); }

CompileRecord replay() {
  CompileRecord out = compile();
  out.live_graph = false;
  return out;
}

TEST(SidecarMerge, SameAgainChangesNothing) {
  const Sidecar one = sidecar(compile());
  EXPECT_EQ(merged(one, one), one);
}

TEST(SidecarMerge, OtherCompilesComeBeside) {
  const Sidecar both = merged(sidecar(compile()), sidecar(tracked({kernel("k0", {op_from_line(9, 5)})})));
  EXPECT_EQ(both.projections.size(), 2U);
  EXPECT_EQ(both.occurrences.size(), 3U);
  EXPECT_EQ(both.generation, 2);
  EXPECT_TRUE(both.complete);
}

TEST(SidecarMerge, ReplayAfterFreshIsNothingNew) {
  const Sidecar fresh = sidecar(compile());
  EXPECT_EQ(merged(fresh, sidecar(replay())), fresh);
  const Sidecar enriched = merged(sidecar(replay()), fresh);
  EXPECT_EQ(without_generation(enriched), without_generation(fresh));
  EXPECT_EQ(enriched.generation, 2);
}

TEST(SidecarMerge, SettingsTakeTheStronger) {
  CompileRecord loud = compile();
  loud.tracking_level = 2;
  CompileRecord traced = compile();
  traced.structured_tracing = true;
  for (const auto& [a, b] : {std::pair(loud, traced), std::pair(traced, loud)}) {
    const Sidecar both = merged(sidecar(a), sidecar(b));
    EXPECT_EQ(both.projections.begin()->second.tracking_level, 2);
    EXPECT_TRUE(both.projections.begin()->second.structured_tracing);
  }
}

TEST(SidecarMerge, EqualSegmentsUniteTheirTraces) {
  CompileRecord other = compile();
  other.upstream.stack_contexts["k0:1"].stack_traces = {"from another place"};
  const Sidecar both = merged(sidecar(compile()), sidecar(other));
  EXPECT_EQ(both.projections.begin()->second.stack_contexts.at("k0:1").stack_traces,
            (Names{"trace of k0", "from another place"}));
}

TEST(SidecarMerge, RegistrationsAreUnited) {
  CompileRecord again = compile();
  again.upstream.kernel_to_post["k1:5"] = {"k1_node"};
  again.upstream.stack_contexts["k1:5"] = {{"t"}, {"k1_node"}, {"k1_pre"}};
  const Sidecar both = merged(sidecar(again), sidecar(compile()));
  std::size_t registrations = 0;
  for (const auto& [id, occurrence] : both.occurrences) registrations += occurrence.registrations.size();
  EXPECT_EQ(registrations, 3U);
}

TEST(SidecarMerge, InverseListsAreInTheOrderOfNames) {
  CompileRecord compile = tracked({kernel("k0", {op_from_line(7, 3)})});
  compile.upstream.pre_to_post = {{"attn_9", {"k0_node"}}, {"attn_10", {"k0_node"}}};
  EXPECT_EQ(sidecar(compile).projections.begin()->second.post_to_pre.at("k0_node"), (Names{"attn_10", "attn_9"}));
}

TEST(SidecarMerge, FailureAndUncollectedStay) {
  CompileRecord failed = compile();
  failed.upstream.stack_contexts.erase("k0:1");
  failed.kernels.push_back({"lost", {}});
  for (const auto& [a, b] : {std::pair(failed, compile()), std::pair(compile(), failed)}) {
    const Sidecar both = merged(sidecar(a), sidecar(b));
    const Projection& projection = both.projections.begin()->second;
    EXPECT_EQ(projection.join, UpstreamJoin::kOk);
    EXPECT_TRUE(projection.failed);
    EXPECT_EQ(projection.uncollected, Names{"lost"});
    EXPECT_FALSE(both.complete);
  }
}

TEST(SidecarMerge, ContradictionsAreRefused) {
  const Sidecar one = sidecar(compile());
  const auto conflict = [&](const std::function<void(Sidecar&)>& change) {
    Sidecar other = one;
    change(other);
    const auto out = merge_sidecars(one, other);
    EXPECT_FALSE(out);
    EXPECT_TRUE(out || out.error().code == ErrorCode::kReference);
    return out ? std::string() : out.error().message;
  };
  EXPECT_NE(conflict([](Sidecar& s) { s.handles.at("7").source->start_line = 99; }).find("sidecar.handles.7"),
            std::string::npos);
  EXPECT_NE(conflict([](Sidecar& s) { s.identities.begin()->second.event_base += "x"; }).find("kernelIdentities."),
            std::string::npos);
  EXPECT_NE(conflict([](Sidecar& s) { s.occurrences.begin()->second.selector = "x"; }).find(".selector"),
            std::string::npos);
  EXPECT_NE(conflict([](Sidecar& s) { s.projections.begin()->second.torch_version = "3"; }).find(".producer"),
            std::string::npos);
  EXPECT_NE(conflict([](Sidecar& s) {
              Projection& p = s.projections.begin()->second;
              p.join = UpstreamJoin::kPartial;
              p.kernel_to_post["k0:1"] = {"a node the fuller one lacks"};
            }).find("fuller mapping"),
            std::string::npos);
}

// Whatever the order, the result is the same but for its generation and the order of united lists of one compile.
RC_GTEST_PROP(SidecarMerge, OrderOfCompilesDoesNotMatter, ()) {
  std::vector<Sidecar> parts;
  const auto lines =
      *rc::gen::resize(8, rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(1, 6)));
  for (const std::uint8_t line : lines) {
    CompileRecord part = tracked({kernel("k", {op_from_line(line, line)})});
    part.live_graph = *rc::gen::arbitrary<bool>();
    part.tracking_level = *rc::gen::inRange(0, 2);
    parts.push_back(sidecar(part));
  }
  Sidecar forth, back;
  for (const Sidecar& part : parts) forth = merged(forth, part);
  for (auto it = parts.rbegin(); it != parts.rend(); ++it) back = merged(back, *it);
  RC_ASSERT(without_generation(forth) == without_generation(back));
  RC_ASSERT(!misfit_of(forth));
}

}  // namespace
}  // namespace kerntrail::spyre
