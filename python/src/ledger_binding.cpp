#include "ledger_binding.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "analyse/ledger.h"
#include "analyse/synthetic.h"
#include "render/ledger_output.h"
#include "tracing.h"

namespace nb = nanobind;

namespace kerntrail::python {
namespace {

using analyse::NodeKey;
using Texts = std::vector<std::string>;
// The fields of the structs of analyse/ledger.h, in their order.
using Held = std::vector<std::pair<std::string, std::uint32_t>>;
using Given = std::tuple<std::string, std::vector<NodeKey>, std::vector<NodeKey>, bool, Held>;
using Made = std::tuple<std::string, std::string>;
using After = std::tuple<NodeKey, std::optional<std::string>, Texts, Held>;
using Replacement = std::tuple<NodeKey, NodeKey, std::string>;
using Touch = std::tuple<NodeKey, std::string>;

template <class Out, class In>
std::vector<Out> rows(const std::vector<In>& in) {
  std::vector<Out> out;
  out.reserve(in.size());
  for (const In& row : in) out.push_back(std::apply([](const auto&... fields) { return Out{fields...}; }, row));
  return out;
}

std::vector<analyse::HeldField> held(const Held& in) {
  std::vector<analyse::HeldField> out;
  out.reserve(in.size());
  for (const auto& [name, value] : in) out.push_back({name, value});
  return out;
}

std::vector<analyse::GivenNode> given_nodes(const std::vector<Given>& in) {
  std::vector<analyse::GivenNode> out;
  out.reserve(in.size());
  for (const auto& [name, inputs, users, is_pure, fields] : in)
    out.push_back({name, inputs, users, is_pure, held(fields)});
  return out;
}

std::vector<analyse::NodeAfter> nodes_after(const std::vector<After>& in) {
  std::vector<analyse::NodeAfter> out;
  out.reserve(in.size());
  for (const auto& [key, stack, sources, fields] : in) out.push_back({key, stack, sources, held(fields)});
  return out;
}

nb::list entries_of(const analyse::Ledger& ledger) {
  nb::list out;
  for (const analyse::LedgerEntry& entry : ledger.entries) {
    nb::dict row;
    row["id"] = entry.id;
    row["node"] = entry.node;
    row["fate"] = std::string(analyse::id_fate_name(entry.fate));
    row["heirs"] = entry.heirs;
    row["is_named"] = entry.is_named;
    row["without"] = entry.without;
    row["altered"] = entry.altered;
    row["loc"] = entry.loc;
    row["why"] = entry.why;
    out.append(row);
  }
  return out;
}

nb::list fabricated_of(const analyse::Ledger& ledger) {
  nb::list out;
  for (const analyse::FabricatedNode& node : ledger.fabricated) {
    nb::dict row;
    row["node"] = node.node;
    row["loc"] = node.loc;
    row["why"] = node.why;
    out.append(row);
  }
  return out;
}

analyse::Ledger judge(const std::string& pass, const std::string& tag, const std::vector<Given>& given,
                      const std::vector<Made>& made, const std::vector<After>& after,
                      const std::vector<Replacement>& replaced, const std::vector<Touch>& erased,
                      const std::vector<Touch>& written) {
  auto ledger = analyse::judge_pass({pass, tag, given_nodes(given), rows<analyse::MadeNode>(made), nodes_after(after),
                                     rows<analyse::Replaced>(replaced), rows<analyse::Touched>(erased),
                                     rows<analyse::Touched>(written)});
  if (!ledger) throw nb::value_error(ledger.error().text().c_str());
  return std::move(*ledger);
}

// (fault, node, row) of each.
std::vector<std::tuple<std::string, std::string, std::string>> faults(const analyse::Ledger& ledger,
                                                                      const Texts& fields, const Texts& allow) {
  std::vector<std::tuple<std::string, std::string, std::string>> out;
  for (const analyse::LedgerFault& fault : analyse::ledger_faults(ledger, {fields, allow})) {
    if (fault.is_fabricated) {
      const analyse::FabricatedNode& node = ledger.fabricated[fault.place];
      out.emplace_back(fault.kind, node.node, render::ledger_row(node));
    } else {
      const analyse::LedgerEntry& entry = ledger.entries[fault.place];
      out.emplace_back(fault.kind, entry.node, render::ledger_row(entry));
    }
  }
  return out;
}

// Rows of what did not stay as it was.
Texts rows_of(const analyse::Ledger& ledger) {
  Texts out;
  for (const analyse::LedgerEntry& entry : ledger.entries)
    if (entry.fate != analyse::IdFate::kSurvived || !entry.without.empty() || !entry.altered.empty())
      out.push_back(render::ledger_row(entry));
  for (const analyse::FabricatedNode& node : ledger.fabricated) out.push_back(render::ledger_row(node));
  return out;
}

// Directories differ from machine to machine: the part of a place below one of `prefixes` is kept.
void shorten(std::string& loc, const Texts& prefixes) {
  for (const std::string& prefix : prefixes)
    if (!prefix.empty() && loc.rfind(prefix, 0) == 0) return void(loc.erase(0, prefix.size()));
}

struct Report {
  analyse::DebugifyReport report;
  Texts prefixes;

  std::size_t add_graph(const std::string& compile, const std::string& stage, const std::string& direction,
                        const std::string& path) {
    report.graphs.push_back({compile, stage, direction, path, {}, {}});
    return report.graphs.size() - 1;
  }
  void add_pass(std::size_t graph, analyse::Ledger ledger) {
    for (analyse::LedgerEntry& entry : ledger.entries) shorten(entry.loc, prefixes);
    for (analyse::FabricatedNode& node : ledger.fabricated) shorten(node.loc, prefixes);
    report.graphs.at(graph).passes.push_back(std::move(ledger));
  }
  void add_unjudged(std::size_t graph, const std::string& text) { report.graphs.at(graph).unjudged.push_back(text); }
};

void bind_report(nb::module_& m) {
  nb::class_<Report>(m, "Report")
      .def("__init__",
           [](Report* self, const Texts& stages, const std::string& pass, const Texts& fields, const Texts& allow,
              const Texts& prefixes) {
             new (self) Report{{stages, pass, {fields, allow}, {}}, prefixes};
           },
           nb::kw_only(), nb::arg("stages"), nb::arg("pass_name"), nb::arg("fields"), nb::arg("allow"),
           nb::arg("prefixes"))
      .def("add_graph", &Report::add_graph, nb::arg("compile"), nb::arg("stage"), nb::arg("direction"), nb::arg("path"))
      .def("add_pass", &Report::add_pass, nb::arg("graph"), nb::arg("ledger"))
      .def("add_unjudged", &Report::add_unjudged, nb::arg("graph"), nb::arg("text"))
      .def_prop_ro("faults", [](const Report& r) { return render::debugify_totals(r.report).faults; })
      .def_prop_ro("unjudged", [](const Report& r) { return render::debugify_totals(r.report).unjudged; })
      .def_prop_ro("graphs", [](const Report& r) { return r.report.graphs.size(); })
      .def("text", [](const Report& r) { return render::debugify_text(r.report); })
      .def("json", [](const Report& r) { return render::debugify_json(r.report); });
}

Texts fault_names() { return {std::begin(analyse::kFaultNames), std::end(analyse::kFaultNames)}; }

Texts fate_names() {
  Texts out;
  for (std::size_t fate = 0; fate < analyse::kIdFates; ++fate)
    out.emplace_back(analyse::id_fate_name(static_cast<analyse::IdFate>(fate)));
  return out;
}

}  // namespace

void bind_ledger(nb::module_& m) {
  m.attr("fates") = nb::cast(fate_names());
  m.attr("faults") = nb::cast(fault_names());
  nb::class_<analyse::Ledger>(m, "Judged")
      .def_prop_ro("entries", &entries_of)
      .def_prop_ro("fabricated", &fabricated_of)
      .def_prop_ro("kept", [](const analyse::Ledger& l) { return l.kept; })
      .def_prop_ro("inheriting", [](const analyse::Ledger& l) { return l.inheriting; })
      .def_prop_ro("is_touched", [](const analyse::Ledger& l) { return analyse::is_touched(l); })
      .def_prop_ro("rows", &rows_of)
      .def("faults", &faults, nb::arg("fields"), nb::arg("allow"));
  bind_report(m);
  m.def("allow_error", &analyse::allow_error, nb::arg("rule"));
  m.def("judge", &judge, nb::arg("pass_name"), nb::arg("tag"), nb::arg("given"), nb::arg("made"), nb::arg("after"),
        nb::arg("replaced"), nb::arg("erased"), nb::arg("written"));
  m.def("synthetic_stack", &analyse::synthetic_stack, nb::arg("tag"), nb::arg("id"), nb::arg("node"));
  m.def("synthetic_source", &analyse::synthetic_source, nb::arg("tag"), nb::arg("id"));
  m.def("id_of_source", &analyse::id_of_source, nb::arg("source"), nb::arg("tag"));
  m.def("restored_stack", &analyse::restored_stack, nb::arg("stack"), nb::arg("tag"), nb::arg("originals"));
  m.def("is_generic_file", &probe::is_generic_file, nb::arg("path"));
}

}  // namespace kerntrail::python
