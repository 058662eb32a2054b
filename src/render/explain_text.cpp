// Explanations as a compiler would write its notes, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/json.h"
#include "base/strings.h"
#include "render/json_output.h"
#include "render/json_parts.h"
#include "render/mermaid.h"
#include "render/outputs.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kShown = 6;  // units of one layer, notes of one kind: the whole fits on a screen
constexpr std::size_t kTitleWidth = 24;

// A border between two looks is a place, not somebody who did it.
std::string by(const std::string& site) {
  for (std::string_view place : {"between ", "before ", "tracing ", "copying "}) {
    if (site.starts_with(place)) return visible(site);
  }
  return "by " + visible(site);
}

// Units that end for one reason, at one stage.
using Ends = std::vector<const EndedUnit*>;

std::vector<Ends> ends_of(const std::vector<EndedUnit>& all) {
  std::vector<Ends> out;
  for (const EndedUnit& end : all) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Ends& known) {
      const EndedUnit& one = *known.front();
      return std::tie(one.stage, one.fate, one.why, one.by, one.pass, one.place) ==
             std::tie(end.stage, end.fate, end.why, end.by, end.pass, end.place);
    });
    if (same == out.end()) {
      out.push_back({&end});
    } else {
      same->push_back(&end);
    }
  }
  return out;
}

// Layers that show the same units say so once.
struct Line {
  std::string title;
  const ExplainedLayer* layer = nullptr;
};

bool same_units(const ExplainedLayer& a, const ExplainedLayer& b) {
  return std::equal(a.units.begin(), a.units.end(), b.units.begin(), b.units.end(),
                    [](const ExplainedUnit& x, const ExplainedUnit& y) { return x.id == y.id; });
}

std::vector<Line> lines_of(const std::vector<ExplainedLayer>& layers) {
  std::vector<Line> out;
  for (const ExplainedLayer& layer : layers) {
    const std::string title = short_title(layer.title);
    if (!out.empty() && same_units(*out.back().layer, layer)) {
      out.back().title = out.back().title.substr(0, out.back().title.find(" … ")) + " … " + title;
      out.back().layer = &layer;
    } else {
      out.push_back({title, &layer});
    }
  }
  return out;
}

class Text {
 public:
  explicit Text(const TreeStyle& style) : style_(style) {}

  void write(const Explanation& one) {
    out_ += fmt::format("{} ({})\n", bold(visible(one.detail.empty() ? one.name : one.name + " · " + one.detail)),
                        one.id.find(':') == std::string::npos ? visible(one.stage) + ", " + visible(one.id) +
                                                                    (one.direction.empty() ? "" : ", " + one.direction)
                                                              : visible(one.id));
    const bool is_line = one.stage == "Source";
    if (one.comes_from.empty() && !is_line) out_ += "  comes from nothing that was seen\n";
    if (!one.comes_from.empty()) layers("comes from", one.comes_from);
    if (!one.becomes.empty()) layers("becomes", one.becomes);
    for (const BrokenLink& link : first(one.breaks)) broken(link);
    more(one.breaks.size(), "broken links");
    recovered(one);
    const std::vector<Ends> ends = ends_of(one.ends);
    for (std::size_t i = 0; i < ends.size() && i < kShown; ++i) ended(ends[i]);
    more(ends.size(), "groups of units that go no further");
    for (std::size_t i = 0; i < one.rewrites.size() && i < kShown; ++i) rewritten(one, i);
    more(one.rewrites.size(), "nodes that were written over");
    contradicted(one);
    if (!one.witnessed)
      note("note",
           "no witness: below the FX graph this is the compiler's own word; record with --level truth to check it");
  }

  std::string take() { return std::move(out_); }

 private:
  template <class T>
  static std::vector<T> first(const std::vector<T>& all) {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kShown))};
  }

  void more(std::size_t total, std::string_view what) {
    if (total > kShown) out_ += fmt::format("        and {} more {}: --format json has them\n", total - kShown, what);
  }

  void layers(std::string_view verb, const std::vector<ExplainedLayer>& layers) {
    out_ += fmt::format("  {}\n", verb);
    for (const Line& line : lines_of(layers)) {
      const auto& units = line.layer->units;
      for (std::size_t i = 0; i < units.size() && i < kShown; ++i) {
        const std::string title = i == 0 ? visible(line.title) : std::string();
        const std::size_t width = title.size() - 2 * count(title, "…");  // the sign is one column of three bytes
        out_ += fmt::format("    {}{}{}{}\n", dim(title), std::string(std::max(kTitleWidth, width + 1) - width, ' '),
                            unit(units[i]), why(units[i]));
      }
      if (units.size() > kShown) out_ += fmt::format("    {:24}and {} more\n", "", units.size() - kShown);
    }
  }

  static std::size_t count(std::string_view text, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++n;
    return n;
  }

  std::string unit(const ExplainedUnit& one) const {
    if (!has(one.unit)) return bold(visible(one.id)) + "  " + visible(one.name);
    return visible(one.detail.empty() ? one.name : one.name + " · " + one.detail) + dim(" (" + visible(one.id) + ")");
  }

  std::string why(const ExplainedUnit& one) const {
    const bool plain = one.evidence == Evidence::kIdentity || one.evidence == Evidence::kLink;
    if (plain && !one.ambiguous) return {};
    return dim(fmt::format("  [{}{}{}]", evidence_name(one.evidence),
                           one.strength == Strength::kDerived   ? ", derived"
                           : one.strength == Strength::kClaimed ? ", claimed"
                                                                : "",
                           one.ambiguous ? ", ambiguous" : ""));
  }

  void note(std::string_view kind, const std::string& text) { out_ += fmt::format("  {}: {}\n", bold(kind), text); }
  void under(const std::string& text) {
    if (!text.empty()) out_ += "        " + text + "\n";
  }

  void broken(const BrokenLink& link) {
    std::string text = fmt::format("the link breaks at {} ({}, {})", visible(link.name),
                                   visible(short_title(link.stage)), visible(link.id));
    for (std::size_t i = 0; i < link.also.size() && i + 1 < kShown; ++i) text += ", " + visible(link.also[i]);
    if (link.also.size() >= kShown) text += fmt::format(" and {} more", link.also.size() + 1 - kShown);
    if (!link.field.empty()) text += fmt::format(": {} {}", visible(link.field), link.reason);
    note("warning", text);
    under(visible(link.meaning));
    if (!link.had.empty()) {
      std::vector<std::string> had(link.had.begin(),
                                   link.had.begin() + static_cast<std::ptrdiff_t>(std::min(link.had.size(), kShown)));
      under(fmt::format("had by {}, says {}", visible(base::join(had, ", ")), link.evidence));
    }
    if (!link.pass.empty()) under(by(link.pass) + (link.place.empty() ? "" : ", " + visible(link.place)));
  }

  void recovered(const Explanation& one) {
    for (const RecoveredSource& source : first(one.recovered)) {
      note("help", fmt::format("nearest source that can be recovered: {}:{}  {}", visible(source.file), source.line,
                               visible(source.code)));
      under(fmt::format("recovered by {}{}; the compiler's records don't lead there", evidence_name(source.evidence),
                        source.ambiguous ? ", ambiguous" : ""));
    }
    more(one.recovered.size(), "recovered sources");
  }

  void ended(const Ends& ends) {
    const EndedUnit& end = *ends.front();
    std::vector<std::string> units;
    for (std::size_t i = 0; i < ends.size() && i < kShown; ++i)
      units.push_back(fmt::format("{} ({})", visible(ends[i]->name), visible(ends[i]->id)));
    if (ends.size() > kShown) units.push_back(fmt::format("{} more", ends.size() - kShown));
    std::string text = fmt::format("at {}, {} {} no further", visible(short_title(end.stage)), base::join(units, ", "),
                                   ends.size() == 1 ? "goes" : "go");
    if (!end.fate.empty()) text += fmt::format(": {}", end.fate);
    if (!end.by.empty()) text += fmt::format(", {} has its place", visible(end.by));
    note("note", text);
    if (!end.why.empty()) under(visible(end.why));
    if (!end.pass.empty()) under(by(end.pass) + (end.place.empty() ? "" : ", " + visible(end.place)));
  }

  void rewritten(const Explanation& one, std::size_t i) {
    const Rewrite& rewrite = one.rewrites[i];
    note("warning", fmt::format("{} was made from {}, and names {} {}", visible(one.rewritten[i]),
                                visible(base::join(rewrite.was, ", ")), visible(rewrite.now),
                                rewrite.at_birth ? "from the first" : "in the end"));
    if (!rewrite.pass.empty())
      under(by(rewrite.pass) +
            (rewrite.place.empty() ? "" : (rewrite.place_is_pass ? ", defined at " : ", ") + visible(rewrite.place)));
  }

  void contradicted(const Explanation& one) {
    for (std::size_t i = 0; i < one.lines.size() && i < kShown; ++i) {
      note("note",
           fmt::format("the compiler says that {} comes from {}; the witness contradicts ({})",
                       visible(one.lines[i].unit), visible(one.lines[i].place), support_name(one.lines[i].support)));
    }
    more(one.lines.size(), "contradicted lines");
    for (std::size_t i = 0; i < one.contradicted.size() && i < kShown; ++i) {
      const ContradictedClaim& claim = one.contradicted[i];
      note("note", fmt::format("the compiler says that {} comes from {}; the witness contradicts ({})",
                               visible(one.contradicted_units[i]), visible(claim.name), support_name(claim.support)));
    }
    more(one.contradicted.size(), "contradicted claims");
  }

  std::string dim(const std::string& text) const {
    return style_.colour && !text.empty() ? "\x1b[2m" + text + "\x1b[0m" : text;
  }
  std::string bold(std::string_view text) const {
    return style_.colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
  }

  TreeStyle style_;
  std::string out_;
};

void write_layers(base::JsonWriter& json, std::string_view key, const std::vector<ExplainedLayer>& layers) {
  json.key(key).begin_array();
  for (const ExplainedLayer& layer : layers) {
    json.begin_object();
    json.member("stage", layer.key);
    json.member("title", layer.title);
    json.key("units").begin_array();
    for (const ExplainedUnit& unit : layer.units) {
      json.begin_object();
      json.member("id", unit.id);
      json.member("name", unit.name);
      if (!unit.detail.empty()) json.member("detail", unit.detail);
      json.member("evidence", evidence_name(unit.evidence));
      json.member("strength", strength_name(unit.strength));
      if (unit.ambiguous) json.member("ambiguous", true);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void text(base::JsonWriter& json, std::string_view key, const std::string& value) {
  if (!value.empty()) json.member(key, value);
}

void write_break(base::JsonWriter& json, const BrokenLink& link) {
  json.begin_object();
  json.member("unit", link.id);
  json.member("name", link.name);
  json.member("stage", link.stage);
  json.key("also").begin_array();
  for (const std::string& unit : link.also) json.value(unit);
  json.end_array();
  text(json, "field", link.field);
  text(json, "reason", link.reason);
  json.member("meaning", link.meaning);
  text(json, "evidence", link.evidence);
  json.key("had").begin_array();
  for (const std::string& name : link.had) json.value(name);
  json.end_array();
  text(json, "pass", link.pass);
  text(json, "place", link.place);
  json.end_object();
}

void write_end(base::JsonWriter& json, const EndedUnit& end) {
  json.begin_object();
  json.member("unit", end.id);
  json.member("name", end.name);
  json.member("stage", end.stage);
  text(json, "fate", end.fate);
  text(json, "why", end.why);
  text(json, "by", end.by);
  text(json, "pass", end.pass);
  text(json, "place", end.place);
  json.end_object();
}

void write_one(base::JsonWriter& json, const Explanation& one) {
  json.begin_object();
  json.member("compile", compile_name(one.compile));
  json.member("id", one.id);
  json.member("name", one.name);
  text(json, "detail", one.detail);
  json.member("stage", one.stage);
  text(json, "direction", one.direction);
  json.member("witnessed", one.witnessed);
  write_layers(json, "comes_from", one.comes_from);
  write_layers(json, "becomes", one.becomes);
  json.key("breaks").begin_array();
  for (const BrokenLink& link : one.breaks) write_break(json, link);
  json.end_array();
  json.key("recovered").begin_array();
  for (const RecoveredSource& source : one.recovered) {
    json.begin_object();
    json.member("file", source.file).member("line", source.line).member("code", source.code);
    json.member("evidence", evidence_name(source.evidence));
    json.member("ambiguous", source.ambiguous);
    json.end_object();
  }
  json.end_array();
  json.key("ends").begin_array();
  for (const EndedUnit& end : one.ends) write_end(json, end);
  json.end_array();
  json.key("rewrites").begin_array();
  for (std::size_t i = 0; i < one.rewrites.size(); ++i) {
    json.begin_object();
    json.member("node", one.rewritten[i]);
    write_rewrite(json, one.rewrites[i]);
    json.end_object();
  }
  json.end_array();
  json.key("contradicted_lines").begin_array();
  for (const ContradictedLine& line : one.lines) {
    json.begin_object();
    json.member("unit", line.unit).member("place", line.place).member("witness", support_name(line.support));
    json.end_object();
  }
  json.end_array();
  json.key("contradicted").begin_array();
  for (std::size_t i = 0; i < one.contradicted.size(); ++i) {
    json.begin_object();
    json.member("unit", one.contradicted_units[i]);
    json.member("claimed", one.contradicted[i].name);
    json.member("witness", support_name(one.contradicted[i].support));
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

std::string explain_text(const std::vector<Explanation>& all, const TreeStyle& style) {
  Text out(style);
  std::string result;
  for (const Explanation& one : all) {
    if (!result.empty()) result += "\n";
    if (all.size() > 1) result += fmt::format("Compile {}: ", compile_name(one.compile));
    out.write(one);
    result += out.take();
  }
  return result;
}

std::string explain_json(const std::vector<Explanation>& all) {
  std::string out;
  base::JsonWriter json(out, 2);
  json.begin_object();
  json.member("format", "kerntrail-explain");
  json.member("version", 1);
  json.key("explanations").begin_array();
  for (const Explanation& one : all) write_one(json, one);
  json.end_array();
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
