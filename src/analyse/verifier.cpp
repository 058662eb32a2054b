// Verdicts a unit, rows of numbers, and what false lines come from.
#include "analyse/verifier.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyse/drop_sites.h"
#include "analyse/handles.h"
#include "analyse/support.h"
#include "analyse/trusted.h"
#include "analyse/values.h"
#include "analyse/witness.h"

namespace kerntrail::analyse {
namespace {

// A handle or another record may say lines without saying nodes.
struct ClaimSet {
  std::string evidence;
  bool names_nodes = true;
  std::vector<UnitId> nodes;
  std::vector<std::pair<std::string, std::int64_t>> lines;  // only without nodes: file, line
};

struct LineFacts {
  std::string code;
  Support support = Support::kNowhere;
  std::vector<UnitId> nodes;
};
using Place = std::pair<std::string, std::int64_t>;

class Verifier {
 public:
  Verifier(const Capture& capture, const PassIndex& passes, const Pipeline& pipeline,
           const std::vector<std::size_t>& columns)
      : capture_(capture),
        pipeline_(pipeline),
        columns_(columns),
        names_(capture),
        witness_(capture, pipeline.compile),
        support_(capture, witness_, pipeline.compile),
        sources_(capture, passes),
        sites_(capture, passes) {}

  bool witnessed() const { return !witness_.empty(); }

  Verification build() {
    result_.compile = pipeline_.compile;
    for (const Claim& claim : capture_.claims_of(pipeline_.compile)) claims_[claim.kernel].push_back(&claim);
    for (std::size_t c : columns_) {
      const Column& column = pipeline_.columns[c];
      index_workers(column);
      for (const ColumnUnit& unit : column.units) judge(column, unit);
    }
    add_rows();
    for (const UnitVerdict& unit : result_.units) label_all(unit);
    return std::move(result_);
  }

 private:
  // Which units of this stage work for a line: where a false claim really belongs.
  void index_workers(const Column& column) {
    line_workers_.clear();
    for (const ColumnUnit& unit : column.units) {
      const Work* work = witness_.of(unit.unit);
      if (work == nullptr) continue;
      for (const auto& [node, support] : *work) add_worker(node, unit.unit);
    }
    for (UnitId node : support_.enclosing()) {
      for (UnitId unit : of_stage(column, support_.workers(node))) add_worker(node, unit);
    }
  }

  void add_worker(UnitId node, UnitId unit) {
    for (const SourceKey& line : sources_.of(node).lines) {
      auto& workers = line_workers_[place_of(line)];
      if (std::find(workers.rbegin(), workers.rend(), unit) == workers.rend()) workers.push_back(unit);
    }
  }

  Place place_of(const SourceKey& line) const { return {std::string(capture_.text(line.file)), line.line}; }

  std::vector<ClaimSet> claims_of(const ColumnUnit& unit) const {
    std::vector<ClaimSet> result;
    if (const auto found = claims_.find(unit.unit); found != claims_.end()) {
      for (const Claim* claim : found->second) {
        if (claim->claimant == "compiler") result.push_back({claim->evidence, true, claim->units, {}});
      }
    }
    for (std::string_view attr : {"origins", "buffer_origins"}) {
      const Observation* seen = present(capture_, unit.unit, names_[attr], unit.snapshot);
      if (seen != nullptr) result.push_back({std::string(attr), true, seen->refs, {}});
    }
    const auto handle = read_handle(capture_, present(capture_, unit.unit, names_["debug_handle"], unit.snapshot));
    if (handle && handle->has_source()) {
      result.push_back({"debug_handle", false, {}, {{handle->file, handle->start_line}}});
    } else if (handle) {
      result.push_back({"debug_handle", false, {}, {}});
    }
    return result;
  }

  void judge(const Column& column, const ColumnUnit& unit) {
    const auto claims = claims_of(unit);
    if (witness_.of(unit.unit) == nullptr) {
      if (claims.empty()) return;
      const auto& unread = witness_.unread();
      const bool is_unread = std::find(unread.begin(), unread.end(), unit.unit) != unread.end();
      result_.unverified.push_back({unit.unit, column.key,
                                    is_unread ? "it was made where nothing watched its code being written"
                                              : "nothing at this stage witnesses it"});
      label(unit.unit);
      return;
    }
    for (const ClaimSet& claim : claims) result_.units.push_back(verdict(column, unit, claim));
    if (claims.empty()) result_.units.push_back(verdict(column, unit, {"none", true, {}, {}}));
  }

  std::string class_of(const ColumnUnit& unit) const {
    for (std::string_view attr : {"class", "data_class", "ir_class"}) {
      const std::string_view text = capture_.text_of(unit.unit, attr, unit.snapshot);
      if (!text.empty()) return std::string(text);
    }
    return {};
  }

  UnitVerdict verdict(const Column& column, const ColumnUnit& unit, const ClaimSet& claim) {
    UnitVerdict out{unit.unit, column.key, class_of(unit), claim.evidence, claim.names_nodes, {}, {}};
    std::set<UnitId> claimed;
    for (UnitId node : claim.nodes) {
      if (!claimed.insert(node).second) continue;
      NodeVerdict one{node, support_.support(unit.unit, node), true, {}};
      if (one.support == Support::kElsewhere) one.elsewhere = of_stage(column, support_.workers(node));
      // Only at another stage: an operation that no kernel of this capture was made of.
      if (one.support == Support::kElsewhere && one.elsewhere.empty()) one.support = Support::kNowhere;
      out.nodes.push_back(std::move(one));
    }
    if (claim.names_nodes) {
      for (const auto& [node, support] : *witness_.of(unit.unit)) {
        if (claimed.count(node) == 0) out.nodes.push_back({node, support, false, {}});
      }
    }
    judge_lines(unit, claim, out);
    return out;
  }

  std::vector<UnitId> of_stage(const Column& column, const std::vector<UnitId>& units) const {
    std::vector<UnitId> out;
    std::copy_if(units.begin(), units.end(), std::back_inserter(out), [&](UnitId one) { return column.holds(one); });
    return out;
  }

  // The lines that the unit works for, by the nodes it works for, and those of views that it looks through.
  std::map<Place, LineFacts> true_lines(const ColumnUnit& unit, const UnitVerdict& verdict) {
    std::map<Place, LineFacts> out;
    const auto add = [&](UnitId node, Support support) {
      const TrueSource& source = sources_.of(node);
      for (const SourceKey& line : source.lines) {
        LineFacts& facts = out[place_of(line)];
        facts.support = std::min(facts.support, support);
        facts.nodes.push_back(node);
        facts.code = sources_.code(line);
      }
    };
    for (const auto& [node, support] : *witness_.of(unit.unit)) add(node, support);
    for (const NodeVerdict& one : verdict.nodes) {
      const bool only_view = one.claimed && one.support == Support::kIndex && !works_for(unit.unit, one.node);
      if (only_view || (one.claimed && one.support == Support::kEncloses)) add(one.node, one.support);
    }
    return out;
  }

  bool works_for(UnitId unit, UnitId node) const {
    const Work* work = witness_.of(unit);
    return std::any_of(work->begin(), work->end(), [&](const auto& known) { return known.first == node; });
  }

  void judge_lines(const ColumnUnit& unit, const ClaimSet& claim, UnitVerdict& out) {
    const auto truth = true_lines(unit, out);
    std::map<Place, LineFacts> claimed;
    for (UnitId node : claim.nodes) {
      const TrueSource& source = sources_.of(node);
      if (!source.named) continue;
      LineFacts& facts = claimed[place_of(*source.named)];
      facts.nodes.push_back(node);
      facts.code = sources_.code(*source.named);
    }
    for (const Place& place : claim.lines) claimed[resolved(place, truth)];
    for (auto& [place, facts] : claimed) {
      LineVerdict line{place.first, place.second, facts.code, Support::kNowhere, true, facts.nodes, {}, {}};
      const auto found = truth.find(place);
      if (found != truth.end()) {
        line.support = found->second.support;
        if (line.code.empty()) line.code = found->second.code;
        if (line.nodes.empty()) line.nodes = found->second.nodes;
      } else if (const auto workers = line_workers_.find(place); workers != line_workers_.end()) {
        line.support = Support::kElsewhere;
        line.elsewhere = workers->second;
      }
      if (contradicts(line.support)) line.rewrites = rewrites_of(line.nodes);
      out.lines.push_back(std::move(line));
    }
    for (const auto& [place, facts] : truth) {
      if (claimed.count(place) != 0) continue;
      // That a view's line is not named by a claim of lines is no fault: it does no work.
      if (facts.support == Support::kIndex && claim.names_nodes &&
          std::none_of(facts.nodes.begin(), facts.nodes.end(), [&](UnitId n) { return works_for(unit.unit, n); }))
        continue;
      out.lines.push_back(
          {place.first, place.second, facts.code, facts.support, false, facts.nodes, {}, rewrites_of(facts.nodes)});
    }
  }

  // A handle keeps the path as the compiler saw it; a capture shortens paths below the working directory.
  static Place resolved(const Place& place, const std::map<Place, LineFacts>& truth) {
    if (truth.count(place) != 0) return place;
    for (const auto& [known, facts] : truth) {
      const std::string& a = place.first;
      const std::string& b = known.first;
      const std::string& longer = a.size() > b.size() ? a : b;
      const std::string& shorter = a.size() > b.size() ? b : a;
      const bool same = !shorter.empty() && longer.size() > shorter.size() && longer.ends_with(shorter) &&
                        longer[longer.size() - shorter.size() - 1] == '/';
      if (same && known.second == place.second) return known;
    }
    return place;
  }

  std::vector<std::uint32_t> rewrites_of(const std::vector<UnitId>& nodes) {
    std::vector<std::uint32_t> out;
    for (UnitId node : nodes) {
      const std::uint32_t rewrite = rewrite_of(node);
      if (rewrite != kNoIndex && std::find(out.begin(), out.end(), rewrite) == out.end()) out.push_back(rewrite);
    }
    return out;
  }

  std::uint32_t rewrite_of(UnitId node) {
    const auto [place, fresh] = rewrite_at_.try_emplace(node, kNoIndex);
    if (!fresh) return place->second;
    auto out = analyse::rewrite_of(capture_, sources_, sites_, node);
    if (!out) return kNoIndex;
    place->second = static_cast<std::uint32_t>(result_.rewrites.size());
    result_.rewrites.push_back(std::move(*out));
    label(node);
    return place->second;
  }

  void add_rows() {
    std::map<std::string, int> order;
    for (const Column& column : pipeline_.columns) order[column.key] = column.order;
    std::map<std::tuple<int, std::string, std::string>, ScoreRow> rows;
    for (const UnitVerdict& unit : result_.units) {
      ScoreRow& row = rows[{order[unit.stage], unit.evidence, unit.unit_class}];
      row.stage = unit.stage;
      row.order = order[unit.stage];
      for (const Column& column : pipeline_.columns) {
        if (column.key == unit.stage) row.title = column.title;
      }
      row.unit_class = unit.unit_class;
      row.evidence = unit.evidence;
      row.names_nodes = unit.names_nodes;
      ++row.units;
      for (const NodeVerdict& one : unit.nodes) count(row.nodes, one.claimed, one.support);
      for (const LineVerdict& one : unit.lines) count(row.lines, one.claimed, one.support);
    }
    for (auto& [key, row] : rows) result_.rows.push_back(std::move(row));
  }

  static void count(Score& score, bool claimed, Support support) {
    if (claimed) {
      ++score.claimed[static_cast<std::size_t>(support)];
    } else {
      ++score.missed;
    }
  }

  void label_all(const UnitVerdict& unit) {
    label(unit.unit);
    for (const NodeVerdict& one : unit.nodes) {
      label(one.node);
      for (UnitId other : one.elsewhere) label(other);
    }
    for (const LineVerdict& one : unit.lines) {
      for (UnitId node : one.nodes) label(node);
      for (UnitId other : one.elsewhere) label(other);
    }
  }

  void label(UnitId unit) {
    const auto [place, fresh] = result_.labels.try_emplace(unit);
    if (!fresh) return;
    place->second.id = unit_name(capture_, unit);
    place->second.name = last_text(unit, names_["name"]);
    place->second.target = last_text(unit, names_["target"]);
  }

  std::string last_text(UnitId unit, AttrId attr) const {
    std::string out;
    if (!has(attr)) return out;
    capture_.each_version(unit, attr, [&](SnapshotId, const Observation& seen) {
      if (seen.state == State::kPresent) out = capture_.text(seen.text);
    });
    return out;
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  const std::vector<std::size_t>& columns_;
  AttrNames names_;
  WitnessIndex witness_;
  SupportFinder support_;
  TrueSources sources_;
  SiteTable sites_;
  Verification result_;
  UnitMap<std::vector<const Claim*>> claims_;
  std::map<Place, std::vector<UnitId>> line_workers_;
  UnitMap<std::uint32_t> rewrite_at_;
};

}  // namespace

Judged judge_claims(const Capture& capture, const PassIndex& passes, const Pipeline& pipeline,
                    const std::vector<std::size_t>& columns) {
  Verifier verifier(capture, passes, pipeline, columns);
  const bool witnessed = verifier.witnessed();
  return {verifier.build(), witnessed};
}

}  // namespace kerntrail::analyse
