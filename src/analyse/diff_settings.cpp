// What two captures were made with: whether they can be compared at all, and which recorded settings differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyse/match_nodes.h"
#include "analyse/pipeline.h"
#include "analyse/settings.h"
#include "base/strings.h"
#include "kerntrail/diff.h"

namespace kerntrail {
namespace analyse {
namespace {

enum class Role : std::uint8_t { kForbids, kCaches, kHarmless, kMatters };

// What a differing run setting means; any other may change what a compile does.
struct SettingRow {
  std::string_view name;
  Role role;
  std::string_view code;
};
constexpr SettingRow kSettings[] = {
    {"level", Role::kForbids, "capture-level"},
    {"provenance_level", Role::kForbids, "provenance-level"},
    {"backend", Role::kForbids, "backend"},
    {"force_disable_caches", Role::kCaches, ""},
    {"fx_graph_cache", Role::kCaches, ""},
    {"autograd_cache", Role::kCaches, ""},
    {"program", Role::kHarmless, ""},
    {"started_by", Role::kHarmless, ""},
    {"source", Role::kHarmless, ""},
};

// At least this much of the two programs must be the same for a comparison to mean anything.
constexpr double kSameModel = 0.5;

std::string setting(const Capture& capture, std::string_view name) {
  return std::string(analyse::setting(capture.run.settings, name));
}

Role role_of(std::string_view name) {
  for (const SettingRow& row : kSettings) {
    if (row.name == name) return row.role;
  }
  return Role::kMatters;
}

std::string caches_of(const Capture& capture) {
  if (setting(capture, "force_disable_caches") == "True") return "off";
  const std::string fx = setting(capture, "fx_graph_cache");
  const std::string autograd = setting(capture, "autograd_cache");
  return fmt::format("fx_graph_cache {}, autograd_cache {}", fx.empty() ? "not recorded" : fx,
                     autograd.empty() ? "not recorded" : autograd);
}

std::size_t served_from_cache(const Capture& capture) {
  return static_cast<std::size_t>(std::count_if(capture.notes.begin(), capture.notes.end(), [](const Note& note) {
    return note.code == "not-observed" && note.text.find("cache") != std::string::npos;
  }));
}

std::vector<bool> observed(const Capture& capture) {
  std::vector<bool> out(capture.compiles.size(), false);
  for (const Snapshot& snapshot : capture.snapshots) {
    if (has(snapshot.stage)) out[index(capture.graphs[index(snapshot.graph)].compile)] = true;
  }
  return out;
}

std::string backends_of(const Capture& capture) {
  std::set<std::string> names;
  const auto seen = observed(capture);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) names.insert(capture.compiles[i].backend);
  }
  return base::join({names.begin(), names.end()}, ", ");
}

using Bag = std::map<std::uint64_t, std::size_t>;

// The program as it entered the compiler: what its nodes do, and the code texts of their lines.
struct Program {
  Bag ops, codes;
  std::set<std::string> files;
};

Program program_of(const Capture& capture) {
  Program out;
  const AttrNames names(capture);
  for (std::size_t c = 0; c < capture.compiles.size(); ++c) {
    const Pipeline pipeline = pipeline_of(capture, id_at<CompileId>(c));
    if (pipeline.columns.empty()) continue;
    for (const ColumnUnit& unit : pipeline.columns.front().units) {
      ++out.ops[label_of(capture, names, unit)];
      if (const std::uint64_t code = code_of(capture, names, unit)) ++out.codes[code];
      const Observation* stack = present(capture, unit.unit, names["stack_trace"], unit.snapshot);
      const auto line = source_in(capture, stack);
      if (line) out.files.insert(std::string(base::basename(capture.text(line->key.file))));
    }
  }
  return out;
}

// 1 for two empty bags.
double alike(const Bag& a, const Bag& b) {
  std::size_t both = 0;
  std::size_t all = 0;
  for (const auto& [key, n] : a) {
    const auto found = b.find(key);
    both += found == b.end() ? 0 : std::min(n, found->second);
    all += n;
  }
  for (const auto& [key, n] : b) all += n;
  return all == 0 ? 1.0 : 2.0 * static_cast<double>(both) / static_cast<double>(all);
}

std::size_t size_of(const Bag& bag) {
  std::size_t n = 0;
  for (const auto& [key, count] : bag) n += count;
  return n;
}

void check_model(const Capture& old, const Capture& now, std::vector<Difference>& out) {
  const Program a = program_of(old);
  const Program b = program_of(now);
  const bool shares_file =
      std::any_of(a.files.begin(), a.files.end(), [&](const std::string& file) { return b.files.count(file) != 0; });
  const double ops = alike(a.ops, b.ops);
  const double codes = alike(a.codes, b.codes);
  const auto text = [](const Program& program) {
    const std::vector<std::string> files(program.files.begin(), program.files.end());
    return fmt::format("{} of {}", base::counted(size_of(program.ops), "node"),
                       files.empty() ? "no known file" : base::join(files, ", "));
  };
  if (ops < kSameModel) {
    out.push_back({"model",
                   fmt::format("the graphs that enter the compiler: {:.0f} % of their nodes do the same", ops * 100),
                   text(a), text(b)});
  } else if (codes < kSameModel && !shares_file && !a.files.empty() && !b.files.empty()) {
    out.push_back({"model", fmt::format("the source files: {:.0f} % of their lines are the same", codes * 100), text(a),
                   text(b)});
  }
}

std::string count_text(std::size_t n) { return base::counted(n, "compile"); }

std::map<std::string, std::string> attributes_of(const Capture& capture) {
  std::map<std::string, std::set<std::string>> values;
  for (const Compile& compile : capture.compiles) {
    for (const auto& [name, value] : compile.attributes) values[name].insert(value);
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, all] : values) out[name] = base::join({all.begin(), all.end()}, ", ");
  return out;
}

void compare_maps(const std::map<std::string, std::string>& old, const std::map<std::string, std::string>& now,
                  std::string_view prefix, std::vector<Difference>& out) {
  std::set<std::string> names;
  for (const auto& [name, value] : old) names.insert(name);
  for (const auto& [name, value] : now) names.insert(name);
  for (const std::string& name : names) {
    const auto a = old.find(name);
    const auto b = now.find(name);
    Difference one{"setting", fmt::format("{}{}", prefix, name), a == old.end() ? "" : a->second,
                   b == now.end() ? "" : b->second};
    if (one.was == one.now) continue;
    const Role role = role_of(name);
    one.can_matter = role != Role::kHarmless;
    const bool known = std::any_of(out.begin(), out.end(), [&](const Difference& o) {
      return o.name == "setting " + name && o.was == one.was && o.now == one.now;
    });
    if (role != Role::kForbids && role != Role::kCaches && !known) out.push_back(std::move(one));
  }
}

void compare_sources(const Capture& old, const Capture& now, std::vector<Difference>& out) {
  std::multimap<std::string, const SourceFile*> by_name;
  for (const SourceFile& file : now.sources) by_name.emplace(base::basename(file.file), &file);
  for (const SourceFile& file : old.sources) {
    const std::string name(base::basename(file.file));
    const SourceFile* other = nullptr;
    const auto [first, last] = by_name.equal_range(name);
    for (auto at = first; at != last; ++at) {
      if (std::next(first) == last || at->second->file == file.file) other = at->second;
    }
    if (other == nullptr || file.sha256.empty() || other->sha256.empty() || file.sha256 == other->sha256) continue;
    out.push_back({"source", "file " + other->file, file.sha256.substr(0, 12), other->sha256.substr(0, 12)});
  }
}

}  // namespace
}  // namespace analyse

using namespace analyse;

std::vector<Difference> incomparable(const Capture& old, const Capture& now) {
  std::vector<Difference> out;
  const auto add = [&](std::string code, std::string name, std::string was, std::string is) {
    if (was != is) out.push_back({std::move(code), std::move(name), std::move(was), std::move(is)});
  };
  const CaptureState a = capture_state(old);
  const CaptureState b = capture_state(now);
  if (a.torn || b.torn) out.push_back({"torn", "capture", a.torn ? "torn" : "whole", b.torn ? "torn" : "whole"});
  const bool part_a = a.partial && !a.torn;
  const bool part_b = b.partial && !b.torn;
  if (part_a || part_b)
    out.push_back({"partial", "capture", part_a ? "partial" : "whole", part_b ? "partial" : "whole"});
  for (const SettingRow& row : kSettings) {
    if (row.role != Role::kForbids || row.name == "backend") continue;
    add(std::string(row.code), fmt::format("setting {}", row.name), setting(old, row.name), setting(now, row.name));
  }
  add("caches", "caches", caches_of(old), caches_of(now));
  add("caches", "served from a cache", count_text(served_from_cache(old)), count_text(served_from_cache(now)));
  const auto seen = [](const Capture& c) {
    const auto all = observed(c);
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), true));
  };
  if (seen(old) == 0 || seen(now) == 0) {
    out.push_back({"nothing-compiled", "observed", count_text(seen(old)), count_text(seen(now))});
    return out;
  }
  add("backend", "backends of the compiles", backends_of(old), backends_of(now));
  check_model(old, now, out);
  return out;
}

std::vector<Difference> differing_settings(const Capture& old, const Capture& now) {
  std::vector<Difference> out;
  const auto version = [&](std::string name, const std::string& was, const std::string& is) {
    if (was != is) out.push_back({"version", std::move(name), was, is});
  };
  version("kerntrail", old.run.tool, now.run.tool);
  version("torch", old.run.torch, now.run.torch);
  version("python", old.run.python, now.run.python);
  version("platform", old.run.platform, now.run.platform);
  compare_maps({old.run.settings.begin(), old.run.settings.end()}, {now.run.settings.begin(), now.run.settings.end()},
               "setting ", out);
  compare_maps(attributes_of(old), attributes_of(now), "compile attribute ", out);
  compare_sources(old, now, out);
  return out;
}

}  // namespace kerntrail
