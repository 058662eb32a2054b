#include "render/rules_text.h"

#include <fmt/format.h>

#include "analyse/rules.h"
#include "base/json.h"
#include "base/strings.h"
#include "kerntrail/drops.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

std::string cell(std::string_view words) { return base::replace_all(std::string(words), "|", "\\|"); }

std::string intents_table() {
  std::string out = md_header({"Pass", "Kind", "Of", "By design"});
  for (const Intent& intent : builtin_intents()) {
    std::vector<std::string> of;
    if (!intent.subsystem.empty()) of.push_back("passes of " + md_code(intent.subsystem));
    if (!intent.fields.empty()) of.push_back("field " + md_codes(intent.fields));
    if (!intent.targets.empty()) of.push_back("units that call " + md_codes(intent.targets));
    out += md_row({md_code(intent.pass), std::string(intent_kind_name(intent.kind)),
                   of.empty() ? "all" : base::join(of, ", "), md_text(intent.reason)});
  }
  return out;
}

}  // namespace

std::string rules_markdown() {
  std::string out =
      "# Rules\n\nWhat the words in `kerntrail drops`, `kerntrail lineage` and the report mean. Four axes, never "
      "mixed: the *state* of a "
      "slot is observed (`present`, `empty`, `no_slot`, `unreadable`); *reason*, *quality* and *fate* are concluded. "
      "Every table adds up: states to the units of a stage, reasons to the absent, qualities to the present, fates to "
      "the units that entered.\n\nThis file is what `kerntrail rules` prints.\n";
  for (const analyse::Axis& axis : analyse::rule_axes()) {
    out += fmt::format("\n## {}\n\n{}\n\n", axis.title, axis.meaning);
    out += md_header({axis.id == "observer"   ? "Rule"
                      : axis.id == "evidence" ? "Tag"
                                              : "Word",
                      "Means", "Example", "What to do"});
    for (const analyse::Rule& rule : analyse::rules()) {
      if (rule.axis != axis.id) continue;
      out += md_row({md_code(rule.id), cell(rule.meaning), cell(rule.example), cell(rule.action)});
    }
  }
  out +=
      "\n## Where a loss is charged to\n\nA unit that lost a field in place: the pass whose look is the first to show "
      "it. A unit made without it: the innermost pass that made it, by the strongest evidence of what it was made "
      "from: "
      "what the pass declares itself, the nodes that a pattern matched, those whose uses it took over, those whose "
      "uses "
      "its users took over, those that were interpreted or copied. The responsible line is the innermost frame of the "
      "compiler that made it; of a pattern, the definition of the function that writes the replacement. A match of "
      "several nodes says how many of them had the field, not which of them the unit stands for. Without passes (level "
      "`borders`) a loss lies "
      "between two stages.\n";
  out +=
      "\n## Declared intents\n\nWhat is by design is declared, shown as declared and never counted as a loss; it never "
      "covers units or fields beyond what it names. `synthesises`: new units of the pass need no source, unless they "
      "stand for units that a pattern matched or whose uses they took over. `removes`: what it takes away needs no "
      "survivor. `remaps`: it may change or drop the fields. `kerntrail drops --intents FILE` adds your own "
      "(`schemas/intents.schema.json`); a pass is named by the path that drops shows (`outer / inner`), the last parts "
      "of it, or its own name, and what covers nothing of the capture is said on standard error. Built in:\n\n";
  return out + intents_table();
}

std::string rules_json() {
  std::string out;
  base::JsonWriter json(out, 2);
  json.begin_object();
  json.member("format", "kerntrail-rules");
  json.member("version", 1);
  json.key("rules").begin_array();
  for (const analyse::Rule& rule : analyse::rules()) {
    json.begin_object();
    json.member("axis", rule.axis);
    json.member("id", rule.id);
    json.member("meaning", rule.meaning);
    json.member("example", rule.example);
    json.member("action", rule.action);
    json.end_object();
  }
  json.end_array();
  json.key("intents").begin_array();
  for (const Intent& intent : builtin_intents()) {
    json.begin_object();
    json.member("pass", intent.pass);
    json.member("kind", intent_kind_name(intent.kind));
    json.member("reason", intent.reason);
    if (!intent.subsystem.empty()) json.member("subsystem", intent.subsystem);
    for (const auto& [key, list] : {std::pair{"targets", &intent.targets}, std::pair{"fields", &intent.fields}}) {
      if (list->empty()) continue;
      json.key(key).begin_array();
      for (const std::string& item : *list) json.value(item);
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
