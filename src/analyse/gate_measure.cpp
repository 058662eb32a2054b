#include "analyse/gate_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "analyse/sources.h"
#include "base/hash.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

// Reasons of absence that are findings of their own, with no place in the compiler.
constexpr std::array kPlaceless{Reason::kNeverMade, Reason::kUnknown};
constexpr int kDepth = 4;  // references followed to a source line

std::string pass_path(const Drops& drops, PassId pass) {
  const auto found = drops.pass_labels.find(pass);
  if (found == drops.pass_labels.end()) return {};
  std::string out;
  for (auto outer = found->second.within.rbegin(); outer != found->second.within.rend(); ++outer) out += *outer + " / ";
  return out + found->second.name;
}

// "file:12 (function)" -> its parts; installed packages by their own path.
SourcePlace place_of(std::string_view text) {
  SourcePlace place;
  const std::size_t paren = text.find(" (");
  const std::string_view head = text.substr(0, paren);
  const std::size_t colon = head.rfind(':');
  if (colon == std::string_view::npos) return place;
  place.file = head.substr(0, colon);
  for (const char c : head.substr(colon + 1)) {
    if (c < '0' || c > '9') return {};
    place.line = place.line * 10 + (c - '0');
  }
  if (paren != std::string_view::npos) place.code = text.substr(paren + 2, text.size() - paren - 3);
  return place;
}

// Of one part (a compile, or a direction of it).
class Part {
 public:
  Part(const Capture& capture, const AttrNames& names, const Drops& drops, AllowList& allow, GateMeasure& out,
       std::unordered_map<std::string, std::size_t>& known)
      : capture_(capture), names_(names), drops_(drops), allow_(allow), out_(out), known_(known) {}

  void measure() {
    GatePart part{compile_name(drops_.compile),
                  capture_.compiles[index(drops_.compile)].backend,
                  drops_.direction,
                  {},
                  drops_.passes_recorded};
    for (const StageTally& stage : drops_.stages) part.stages.push_back(stage.key);
    out_.parts.push_back(std::move(part));
    for (const Loss& loss : drops_.losses) losses_.push_back(add_loss(loss));
    for (const Mark& mark : drops_.marks) marks_.push_back(add_mark(mark));
    for (const Orphan& orphan : drops_.orphans) add_orphan(orphan);
    for (const ObserverFinding& found : drops_.findings) {
      if (found.intent == kNoIndex) add_finding(found);
    }
    for (const StageTally& stage : drops_.stages) {
      for (const FieldTally& field : stage.fields) add_cells(stage, field);
    }
  }

 private:
  SourcePlace line_behind(UnitId unit, SnapshotId at, int depth = 0) const {
    for (SnapshotId when : {at, last()}) {
      if (!has(when)) continue;
      if (const auto line = source_of(capture_, names_["stack_trace"], unit, when))
        return {std::string(capture_.text(line->key.file)), line->key.line, line->code};
    }
    if (depth >= kDepth) return {};
    for (const KnownAttr attr : std::initializer_list<KnownAttr>{"origin_node", "origins", "from_node", "operations"}) {
      const Observation* seen = has(last()) ? present(capture_, unit, names_[attr], last()) : nullptr;
      if (seen == nullptr) continue;
      for (UnitId next : seen->refs) {
        SourcePlace place = line_behind(next, at, depth + 1);
        if (!place.file.empty()) return place;
      }
    }
    return {};
  }
  SnapshotId last() const {
    return capture_.snapshots.empty() ? SnapshotId::kNone : id_at<SnapshotId>(capture_.snapshots.size() - 1);
  }

  GateUnit unit_of(UnitId unit, const std::vector<UnitId>& sources, SnapshotId at) const {
    GateUnit out;
    const auto label = drops_.units.find(unit);
    out.id = label == drops_.units.end() ? unit_name(capture_, unit) : label->second.id;
    if (label != drops_.units.end()) out.name = label->second.name;
    for (UnitId source : sources) {
      out.source = line_behind(source, at);
      if (!out.source.file.empty()) return out;
    }
    out.source = line_behind(unit, at);
    return out;
  }

  // The group of losses that this one belongs to, made where it is the first.
  std::size_t group(std::string_view axis, std::string_view rule, std::string_view field, std::uint32_t site,
                    std::string_view stage = {}) {
    GateFinding finding;
    finding.axis = axis;
    finding.rule = rule;
    finding.field = field;
    finding.stage = stage;
    finding.direction = drops_.direction;
    std::string identity = fmt::format("{}/{}|{}|{}|{}", axis, rule, field, drops_.direction, stage);
    if (site != kNoIndex) {
      const DropSite& at = drops_.sites[site];
      finding.pass = at.kind == SiteKind::kPass ? pass_path(drops_, at.pass) : std::string();
      if (finding.pass.empty()) finding.pass = at.title;
      finding.compiler = place_of(at.place);
      finding.site = fmt::format("{}{}", at.kind == SiteKind::kPass ? "pass " : "", finding.pass);
      identity +=
          fmt::format("|{}|{}|{}|{}|{}", site_kind_name(at.kind), finding.pass, at.pattern,
                      finding.compiler.file.substr(finding.compiler.file.rfind('/') + 1), finding.compiler.code);
    }
    return of_identity(std::move(identity), std::move(finding));
  }
  std::size_t of_identity(std::string identity, GateFinding finding) {
    const auto [place, fresh] = known_.try_emplace(std::move(identity), out_.losses.size());
    if (fresh) {
      finding.fingerprint = base::hex64(base::hash64(place->first));
      GateLoss loss;
      loss.finding = std::move(finding);
      loss.ratchets = loss.finding.axis != "reason" || loss.finding.rule == "dropped" || loss.finding.rule == "orphan";
      out_.losses.push_back(std::move(loss));
    }
    return place->second;
  }

  // One more unit of a group; false: the allow list lets it pass.
  void count(std::size_t at, UnitId unit, const std::vector<UnitId>& sources, SnapshotId when) {
    GateLoss& loss = out_.losses[at];
    ++loss.times;
    if (loss.finding.units.size() >= kNamedUnits) return;
    GateUnit named = unit_of(unit, sources, when);
    if (loss.finding.source.file.empty()) loss.finding.source = named.source;
    loss.finding.units.push_back(std::move(named));
  }

  bool allowed(std::size_t at, UnitId unit, std::string_view stage = {}) {
    if (allow_.empty()) return false;
    GateLoss& loss = out_.losses[at];
    const auto label = drops_.units.find(unit);
    AllowList::Subject subject{loss.finding.rule,          stage.empty() ? std::string_view(loss.finding.stage) : stage,
                               loss.finding.field,         loss.finding.pass,
                               loss.finding.compiler.file, {}};
    if (label != drops_.units.end()) subject.units = {label->second.name, label->second.id};
    const AllowEntry* entry = allow_.find(subject, &loss.expired);
    if (entry == nullptr) return false;
    ++loss.allowed;
    if (loss.finding.allowed_reason.empty()) {
      loss.finding.allowed_reason = entry->reason;
      loss.finding.allowed_owner = entry->owner;
      loss.finding.allowed_until = entry->expires;
    }
    return true;
  }

  std::size_t add_loss(const Loss& loss) {
    const std::size_t at = group("reason", "dropped", drops_.fields[index(loss.field)], loss.site);
    if (allowed(at, loss.unit)) excused_losses_.insert(losses_.size());
    const bool first = out_.losses[at].times == 0;
    count(at, loss.unit, loss.had, loss.before);
    if (first) flow_of_loss(loss, out_.losses[at].finding);
    return at;
  }

  std::size_t add_mark(const Mark& mark) {
    const std::size_t at = group("quality", quality_name(mark.quality), drops_.fields[index(mark.field)], mark.site);
    if (allowed(at, mark.unit)) excused_marks_.insert(marks_.size());
    count(at, mark.unit, {}, mark.site == kNoIndex ? SnapshotId::kNone : drops_.sites[mark.site].at);
    GateFinding& finding = out_.losses[at].finding;
    if (finding.flow.empty() && !finding.source.file.empty())
      finding.flow.push_back({"source", finding.source.code, finding.source});
    return at;
  }

  void add_orphan(const Orphan& orphan) {
    for (AttrId field : orphan.fields) {
      const std::size_t at = group("reason", "orphan", drops_.fields[index(field)], orphan.site);
      if (allowed(at, orphan.unit)) excused_orphans_.insert({orphan.unit, field});
      orphans_[{orphan.unit, field}] = at;
      count(at, orphan.unit, {}, SnapshotId::kNone);
    }
  }

  void add_finding(const ObserverFinding& found) {
    GateFinding finding;
    finding.axis = "observer";
    finding.rule = observer_rule_id(found.rule);
    finding.field = "origins";
    finding.direction = drops_.direction;
    finding.pass = pass_path(drops_, found.pass);
    finding.site = "pass " + finding.pass;
    const auto label = drops_.pass_labels.find(found.pass);
    if (label != drops_.pass_labels.end()) finding.compiler = place_of(label->second.place);
    const std::string identity = fmt::format("observer/{}|{}|{}", finding.rule, finding.direction, finding.pass);
    const std::size_t at = of_identity(identity, std::move(finding));
    allowed(at, found.unit);
    count(at, found.unit, found.lost, SnapshotId::kNone);
  }

  // From the source line through the stages that had the field to the place that lost it and the stages without.
  void flow_of_loss(const Loss& loss, GateFinding& finding) const {
    const std::string& field = finding.field;
    if (!finding.source.file.empty()) finding.flow.push_back({"source", finding.source.code, finding.source});
    const auto name = [&](UnitId unit) {
      const auto label = drops_.units.find(unit);
      return label == drops_.units.end() || label->second.name.empty() ? unit_name(capture_, unit) : label->second.name;
    };
    std::vector<GateStep> without;
    for (const StageTally& stage : drops_.stages) {
      for (const FieldTally& tally : stage.fields) {
        if (tally.attr != loss.field) continue;
        for (const FieldUnit& cell : tally.units) {
          const bool had = std::find(loss.had.begin(), loss.had.end(), cell.unit) != loss.had.end();
          if (had && cell.state == State::kPresent) {
            finding.flow.push_back(
                {stage.key, fmt::format("{}: {} has {}", stage.title, name(cell.unit), field), finding.source});
            break;
          }
          if ((cell.unit == loss.unit || contains(loss.heirs, cell.unit)) && cell.state != State::kPresent) {
            without.push_back(
                {stage.key, fmt::format("{}: {} is without {}", stage.title, name(cell.unit), field), finding.source});
            break;
          }
        }
      }
    }
    finding.flow.push_back({"", fmt::format("lost in {}", finding.site), finding.compiler});
    finding.flow.insert(finding.flow.end(), without.begin(), without.end());
  }
  static bool contains(const std::vector<UnitId>& units, UnitId unit) {
    return std::find(units.begin(), units.end(), unit) != units.end();
  }

  GateCells& cells_of(const StageTally& stage, const FieldTally& field) {
    const std::string& backend = capture_.compiles[index(drops_.compile)].backend;
    for (GateCells& cells : out_.cells) {
      if (cells.stage == stage.key && cells.field == field.name && cells.backend == backend &&
          cells.direction == drops_.direction)
        return cells;
    }
    GateCells fresh;
    fresh.backend = backend;
    fresh.direction = drops_.direction;
    fresh.stage = stage.key;
    fresh.title = stage.title;
    fresh.noun = stage.noun;
    fresh.field = field.name;
    fresh.order = capture_.stages[index(stage.stage)].order;
    out_.cells.push_back(std::move(fresh));
    return out_.cells.back();
  }

  void add_cells(const StageTally& stage, const FieldTally& field) {
    GateCells& cells = cells_of(stage, field);
    for (const FieldUnit& unit : field.units) add_cell(stage, field, unit, cells);
  }

  void add_cell(const StageTally& stage, const FieldTally& field, const FieldUnit& unit, GateCells& cells) {
    ++cells.units;
    if (unit.state == State::kUnreadable) {
      ++cells.unreadable;
      return lacking(unit, "unreadable", cells);
    }
    if (unit.state == State::kPresent) {
      const bool spoilt = unit.quality != Quality::kKept;
      const bool excused = spoilt && excused_marks_.count(unit.mark) != 0;
      if (spoilt && unit.mark != kNoIndex) hit(marks_[unit.mark], stage.key, excused);
      ++cells.covered;
      if (!spoilt || excused) ++cells.kept;
      return;
    }
    if (unit.reason == Reason::kCarriedBy) {
      ++cells.covered;
      ++cells.kept;
    } else if (unit.reason == Reason::kSynthesised) {
      ++cells.by_design;
    } else if (unit.reason == Reason::kNotCreatedYet) {
      ++cells.not_created;
    } else if (excused(stage, field, unit)) {
      ++cells.allowed;
    } else {
      lacking(unit, reason_name(unit.reason), cells);
    }
  }

  // Books an absent field to its loss; true where the allow list lets it pass.
  bool excused(const StageTally& stage, const FieldTally& field, const FieldUnit& unit) {
    if (unit.loss != kNoIndex) return hit(losses_[unit.loss], stage.key, excused_losses_.count(unit.loss) != 0);
    if (has(unit.orphan)) {
      const auto orphan = orphans_.find({unit.orphan, field.attr});
      if (orphan == orphans_.end()) return false;
      return hit(orphan->second, stage.key, excused_orphans_.count({unit.orphan, field.attr}) != 0);
    }
    const Reason root = unit.reason == Reason::kInheritedGap ? unit.root : unit.reason;
    if (std::find(kPlaceless.begin(), kPlaceless.end(), root) == kPlaceless.end()) return false;
    const auto [place, fresh] = placeless_.try_emplace({stage.stage, field.attr, root}, 0);
    if (fresh) place->second = group("reason", reason_name(root), field.name, kNoIndex, stage.key);
    const bool allow = allowed(place->second, unit.unit, stage.key);
    count(place->second, unit.unit, {}, SnapshotId::kNone);
    return hit(place->second, stage.key, allow);
  }

  // One slot more; gives `excused` back.
  bool hit(std::size_t loss, const std::string& stage, bool excused) {
    if (!excused) ++out_.losses[loss].cells[stage];
    return excused;
  }

  void lacking(const FieldUnit& unit, std::string_view why, GateCells& cells) {
    ++cells.reasons[std::string(why)];
    if (cells.missing.size() < kNamedUnits) cells.missing.push_back(unit_of(unit.unit, {}, SnapshotId::kNone));
  }

  const Capture& capture_;
  const AttrNames& names_;
  const Drops& drops_;
  AllowList& allow_;
  GateMeasure& out_;
  std::unordered_map<std::string, std::size_t>& known_;
  std::vector<std::size_t> losses_, marks_;  // groups, by index into Drops
  std::map<std::pair<UnitId, AttrId>, std::size_t> orphans_;
  std::unordered_set<std::size_t> excused_losses_, excused_marks_;
  std::set<std::pair<UnitId, AttrId>> excused_orphans_;
  std::map<std::tuple<StageId, AttrId, Reason>, std::size_t> placeless_;
};

template <class Of>
std::vector<std::string> distinct(const std::vector<GateCells>& cells, Of of) {
  std::vector<std::string> out;
  for (const GateCells& one : cells) {
    if (std::find(out.begin(), out.end(), of(one)) == out.end()) out.push_back(of(one));
  }
  return out;
}

void share_out(GateMeasure& out) {
  for (GateLoss& loss : out.losses) {
    std::size_t slots = 0;
    std::size_t hit = 0;
    for (const GateCells& cells : out.cells) {
      if (cells.field == loss.finding.field && cells.direction == loss.finding.direction) slots += cells.units;
    }
    for (const auto& [stage, n] : loss.cells) hit += n;
    if (loss.finding.axis == "observer") hit = loss.times - loss.allowed;
    loss.share = slots == 0 ? 0.0 : static_cast<double>(hit) / static_cast<double>(slots);
  }
}

}  // namespace

double GateCells::ratio(bool kept_only) const {
  if (judged() == 0) return 1.0;
  return static_cast<double>(kept_only ? kept : covered) / static_cast<double>(judged());
}

GateMeasure measure_gate(const Capture& capture, const std::vector<Drops>& all, AllowList& allow) {
  GateMeasure out;
  const AttrNames names(capture);
  std::unordered_map<std::string, std::size_t> known;
  for (const Drops& drops : all) Part(capture, names, drops, allow, out, known).measure();
  std::stable_sort(out.cells.begin(), out.cells.end(), [](const GateCells& a, const GateCells& b) {
    return std::tie(a.backend, a.direction, a.order) < std::tie(b.backend, b.direction, b.order);
  });
  share_out(out);
  out.backends = distinct(out.cells, [](const GateCells& c) { return c.backend; });
  out.directions = distinct(out.cells, [](const GateCells& c) { return c.direction; });
  out.stages = distinct(out.cells, [](const GateCells& c) { return c.stage; });
  out.fields = distinct(out.cells, [](const GateCells& c) { return c.field; });
  out.sources = user_files(capture);
  return out;
}

std::vector<std::string> user_files(const Capture& capture) {
  std::set<TextId> files;
  for (const Loc& loc : capture.locs) {
    if (loc.kind == LocKind::kRange && loc.frame_class == FrameClass::kUser) files.insert(loc.text);
  }
  std::vector<std::string> out;
  for (TextId file : files) out.emplace_back(capture.text(file));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace kerntrail::analyse
