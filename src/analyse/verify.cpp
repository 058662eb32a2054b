// Claims against the witness: which stages and compiles are judged, and sums over them.
#include "kerntrail/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <tuple>

#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "analyse/settings.h"
#include "analyse/verifier.h"
#include "base/parallel.h"

namespace kerntrail {
namespace analyse {
namespace {

// Every captured stage below the FX graphs, unless stages are named.
Expected<std::vector<std::size_t>> columns_to_verify(const Capture& capture, const Pipeline& pipeline,
                                                     const std::vector<std::string>& stages) {
  std::vector<std::size_t> out;
  const bool all = std::find(stages.begin(), stages.end(), "all") != stages.end();
  if (!stages.empty() && !all) {
    KERNTRAIL_TRY(out, select_columns(capture, pipeline, stages));
    for (std::size_t c : out) {
      const Column& column = pipeline.columns[c];
      if (column.layer == "FX" || column.key == "schedule")
        return fail(ErrorCode::kUsage,
                    fmt::format("nothing is claimed of the units of stage \"{}\": there is nothing to "
                                "verify; operations, OpSpecs, files and kernels have claims",
                                column.key));
    }
    return out;
  }
  for (std::size_t c = 0; c < pipeline.columns.size(); ++c) {
    const std::string& key = pipeline.columns[c].key;
    // Of one IR before and after passes the later look: that is what kernels are made of.
    const bool later = std::any_of(pipeline.columns.begin(), pipeline.columns.end(),
                                   [&](const Column& other) { return other.key == "ir_post_pass"; });
    if (pipeline.columns[c].layer == "FX" || key == "schedule" || (key == "ir_pre_pass" && later)) continue;
    out.push_back(c);
  }
  return out;
}

}  // namespace
}  // namespace analyse

std::size_t Score::total() const { return std::accumulate(claimed.begin(), claimed.end(), std::size_t{0}); }
std::size_t Score::right() const { return total() - of(Support::kElsewhere) - of(Support::kNowhere); }
std::size_t Score::worked() const { return right() - of(Support::kIndex) - of(Support::kEncloses); }

double Score::precision() const {
  return total() == 0 ? 1.0 : static_cast<double>(right()) / static_cast<double>(total());
}

double Score::recall() const {
  return right() + missed == 0 ? 1.0 : static_cast<double>(right()) / static_cast<double>(right() + missed);
}

Score& Score::operator+=(const Score& other) {
  for (std::size_t i = 0; i < claimed.size(); ++i) claimed[i] += other.claimed[i];
  missed += other.missed;
  return *this;
}

Expected<std::vector<Verification>> verify(const Capture& capture, const AnalysisOptions& options) {
  const analyse::PassIndex passes(capture);
  KERNTRAIL_TRY(const auto compiles, analyse::select_compiles(capture, options));
  std::vector<analyse::PipelinePart> parts;
  for (CompileId compile : compiles) {
    analyse::PipelinePart part{analyse::pipeline_of(capture, compile), {}};
    KERNTRAIL_TRY(part.columns, analyse::columns_to_verify(capture, part.pipeline, options.stages));
    if (!part.pipeline.columns.empty()) parts.push_back(std::move(part));
  }
  std::vector<Verification> result(parts.size());
  std::atomic<bool> witnessed = false;
  base::parallel_for(parts.size(), [&](std::size_t i) {
    auto judged = analyse::judge_claims(capture, passes, parts[i].pipeline, parts[i].columns);
    if (judged.witnessed) witnessed = true;
    result[i] = std::move(judged.verification);
  });
  if (witnessed) return result;
  if (analyse::setting(capture.run.settings, "level") == "truth")
    return fail(ErrorCode::kUnsupported,
                capture.end
                    ? "nothing in this capture was witnessed: no kernel of it was made where it could be watched"
                    : "nothing in this capture was witnessed: it breaks off before any kernel was written");
  return fail(ErrorCode::kUnsupported,
              "nothing in this capture was witnessed, so no claim can be checked: record it with --level truth");
}

std::vector<ScoreRow> total_rows(const std::vector<Verification>& all) {
  std::vector<ScoreRow> out;
  for (const Verification& one : all) {
    for (const ScoreRow& row : one.rows) {
      const auto same = std::find_if(out.begin(), out.end(), [&](const ScoreRow& known) {
        return std::tie(known.stage, known.evidence, known.unit_class) ==
               std::tie(row.stage, row.evidence, row.unit_class);
      });
      if (same == out.end()) {
        out.push_back(row);
        continue;
      }
      same->units += row.units;
      same->nodes += row.nodes;
      same->lines += row.lines;
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const ScoreRow& a, const ScoreRow& b) {
    return std::tie(a.order, a.evidence, a.unit_class) < std::tie(b.order, b.evidence, b.unit_class);
  });
  return out;
}

}  // namespace kerntrail
