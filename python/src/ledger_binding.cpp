#include "ledger_binding.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "analyse/ledger.h"
#include "analyse/synthetic.h"
#include "tracing.h"

namespace nb = nanobind;

namespace kerntrail::python {
namespace {

using analyse::NodeKey;
using Texts = std::vector<std::string>;
// The fields of the structs of analyse/ledger.h, in their order.
using Given = std::tuple<std::string, std::vector<NodeKey>, std::vector<NodeKey>, bool, Texts>;
using Made = std::tuple<std::string, std::string>;
using After = std::tuple<NodeKey, std::optional<std::string>, Texts, Texts>;
using Replacement = std::tuple<NodeKey, NodeKey, std::string>;
using Touch = std::tuple<NodeKey, std::string>;

template <class Out, class In>
std::vector<Out> rows(const std::vector<In>& in) {
  std::vector<Out> out;
  out.reserve(in.size());
  for (const In& row : in) out.push_back(std::apply([](const auto&... fields) { return Out{fields...}; }, row));
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
    row["loc"] = entry.loc;
    row["why"] = entry.why;
    out.append(row);
  }
  return out;
}

nb::dict judge(const std::string& pass, const std::string& tag, const std::vector<Given>& given,
               const std::vector<Made>& made, const std::vector<After>& after, const std::vector<Replacement>& replaced,
               const std::vector<Touch>& erased, const std::vector<Touch>& written) {
  const auto ledger = analyse::judge_pass({pass, tag, rows<analyse::GivenNode>(given), rows<analyse::MadeNode>(made),
                                           rows<analyse::NodeAfter>(after), rows<analyse::Replaced>(replaced),
                                           rows<analyse::Touched>(erased), rows<analyse::Touched>(written)});
  if (!ledger) throw nb::value_error(ledger.error().text().c_str());
  nb::list fabricated;
  for (const analyse::FabricatedNode& node : ledger->fabricated) {
    nb::dict row;
    row["node"] = node.node;
    row["loc"] = node.loc;
    row["why"] = node.why;
    fabricated.append(row);
  }
  nb::dict out;
  out["entries"] = entries_of(*ledger);
  out["fabricated"] = fabricated;
  out["kept"] = ledger->kept;
  out["inheriting"] = ledger->inheriting;
  return out;
}

Texts fate_names() {
  Texts out;
  for (std::size_t fate = 0; fate < analyse::kIdFates; ++fate)
    out.emplace_back(analyse::id_fate_name(static_cast<analyse::IdFate>(fate)));
  return out;
}

}  // namespace

void bind_ledger(nb::module_& m) {
  m.attr("fates") = nb::cast(fate_names());
  m.def("judge", &judge, nb::arg("pass_name"), nb::arg("tag"), nb::arg("given"), nb::arg("made"), nb::arg("after"),
        nb::arg("replaced"), nb::arg("erased"), nb::arg("written"));
  m.def("synthetic_stack", &analyse::synthetic_stack, nb::arg("tag"), nb::arg("id"), nb::arg("node"));
  m.def("synthetic_source", &analyse::synthetic_source, nb::arg("tag"), nb::arg("id"));
  m.def("id_of_source", &analyse::id_of_source, nb::arg("source"), nb::arg("tag"));
  m.def("restored_stack", &analyse::restored_stack, nb::arg("stack"), nb::arg("tag"), nb::arg("originals"));
  m.def("is_generic_file", &probe::is_generic_file, nb::arg("path"));
}

}  // namespace kerntrail::python
