#include "spyre/sidecar_resolve.h"

#include <gtest/gtest.h>

#include "spyre/sidecar_merge.h"
#include "spyre/test_sidecars.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using testing::fixture;

const std::string kFused = "spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na";

std::vector<std::string> codes(const Json& result) {
  std::vector<std::string> out;
  for (const Json& entry : result["diagnostics"].as_array())
    out.push_back(std::string(entry["severity"].as_string()) + " " + std::string(entry["code"].as_string()));
  return out;
}

std::string list(const Json& value) { return value.dump(); }

TEST(SidecarResolve, EventLeadsToHandlesAndSources) {
  const Json result = resolve_event(kFused + "#007", fixture("valid_cache_replay_v1.json"));
  EXPECT_EQ(result["event"]["commandStep"].as_int(), 7);
  EXPECT_EQ(result["event"]["commandStepSuffix"].as_string(), "007");
  EXPECT_EQ(result["event"]["baseName"].as_string(), kFused);
  EXPECT_EQ(result["identityKey"].as_string(), "atqydvnuutl766na");
  EXPECT_EQ(list(result["directHandleIds"]), R"(["200"])");
  EXPECT_EQ(list(result["fusedConstituentIds"]), R"(["101","102"])");
  EXPECT_EQ(result["handles"]["101"]["source"]["start_line"].as_int(), 17);
  EXPECT_EQ(result["occurrences"].as_array().size(), 1U);
  EXPECT_FALSE(result["occurrenceSummary"]["ambiguous"].as_bool(true));
  EXPECT_EQ(result["status"].as_string(), "partial");
  EXPECT_EQ(codes(result), (std::vector<std::string>{"warning incomplete-artifact", "warning upstream-join-status"}));
}

TEST(SidecarResolve, SeveralOccurrencesAreAllReported) {
  const Json result = resolve_event(kFused, fixture("valid_v1.json"));
  EXPECT_EQ(result["occurrences"].as_array().size(), 2U);
  EXPECT_TRUE(result["occurrenceSummary"]["ambiguous"].as_bool());
  const Json& fields = result["occurrenceSummary"]["fields"];
  EXPECT_EQ(fields["identityKey"]["value"].as_string(), "atqydvnuutl766na");
  EXPECT_EQ(fields["compileId"]["values"].as_array().size(), 2U);
  EXPECT_FALSE(fields["selector"]["ambiguous"].as_bool(true));
  EXPECT_EQ(result["upstreamProjections"].as_object().size(), 2U);
  EXPECT_EQ(codes(result), (std::vector<std::string>{"warning incomplete-artifact", "warning upstream-join-status",
                                                     "info upstream-join-status", "warning ambiguity"}));
}

TEST(SidecarResolve, CompleteWhereNothingIsMissing) {
  const Sidecar sidecar = testing::sidecar(testing::tracked({testing::kernel("k", {testing::op_from_line(7, 3)})}));
  const Json result = resolve_event(sidecar.identities.begin()->second.event_base, sidecar);
  EXPECT_EQ(result["status"].as_string(), "complete");
  EXPECT_EQ(codes(result), std::vector<std::string>{"info upstream-join-status"});
}

TEST(SidecarResolve, KernelWithoutHandles) {
  const Json result = resolve_event("spyre_kernel_v1_fused_unknown_vsancadvtjfcq6cv", fixture("valid_v1.json"));
  EXPECT_EQ(list(result["directHandleIds"]), "[]");
  EXPECT_EQ(list(result["handles"]), "{}");
  EXPECT_EQ(result["status"].as_string(), "partial");
}

TEST(SidecarResolve, SelectorChoosesExactly) {
  Sidecar sidecar = fixture("valid_v1.json");
  for (auto& [id, occurrence] : sidecar.occurrences) {
    if (occurrence.kernel == "sdsc_fused_linear_relu_1") occurrence.selector = "second";
  }
  const Json chosen = resolve_event(kFused, sidecar, "second");
  ASSERT_EQ(chosen["occurrences"].as_array().size(), 1U);
  EXPECT_EQ(chosen["occurrences"].as_array()[0]["compilerKernelName"].as_string(), "sdsc_fused_linear_relu_1");
  EXPECT_EQ(codes(resolve_event(kFused, sidecar, "")), std::vector<std::string>{"error invalid-selector"});
  EXPECT_EQ(resolve_event(kFused, sidecar, "third")["status"].as_string(), "error");
}

TEST(SidecarResolve, WhatDoesNotFitIsAnError) {
  const Sidecar sidecar = fixture("valid_v1.json");
  const auto only = [&](const std::string& event) {
    const Json result = resolve_event(event, sidecar);
    EXPECT_EQ(result["status"].as_string(), "error");
    EXPECT_TRUE(result["identity"].is_null());
    return codes(result);
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(only("mm"), Codes{"error invalid-event-name"});
  EXPECT_EQ(only("spyre_kernel_v1_fused_mm_aaaaaaaaaaaaaaaa"), Codes{"error missing-key"});
  EXPECT_EQ(only("spyre_kernel_v1_fused_mm_atqydvnuutl766na"), Codes{"error collision"});
  EXPECT_EQ(codes(resolve_event(kFused, parse_sidecar("{"))), Codes{"error artifact-read-failure"});
  EXPECT_EQ(codes(resolve_event(kFused, parse_sidecar("{\"schemaVersion\": 7}"))),
            Codes{"error unsupported-schema-version"});
  EXPECT_EQ(codes(resolve_event("mm", parse_sidecar("[]"))),
            (Codes{"error invalid-event-name", "error schema-validation-failure"}));
}

}  // namespace
}  // namespace kerntrail::spyre
