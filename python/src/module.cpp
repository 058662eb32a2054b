// The extension module kerntrail._native: the probe's session and the Spyre-format back end's C++ side.
// Exceptions stop here: errors of the library become Python exceptions with the same text.

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cli/debugify_options.h"
#include "cli/record_options.h"
#include "hook.h"
#include "ledger_binding.h"
#include "session.h"
#include "spyre_binding.h"
#include "witness.h"

namespace nb = nanobind;

namespace kerntrail::probe {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

SessionOptions make_options(const std::string& path, bool replace, const std::string& source, bool timing, int level,
                            const Pairs& run, const Pairs& settings, const std::vector<std::string>& torch_paths,
                            const std::vector<std::string>& package_paths,
                            const std::vector<std::string>& standard_paths, const std::string& working_directory,
                            const Pairs& fail) {
  SessionOptions out;
  out.path = path;
  out.replace = replace;
  out.source = source;
  out.timing = timing;
  out.level = static_cast<Level>(level);
  for (const auto& [key, value] : run) {
    if (key == "tool") out.run.tool = value;
    if (key == "torch") out.run.torch = value;
    if (key == "python") out.run.python = value;
    if (key == "platform") out.run.platform = value;
  }
  out.run.settings = settings;
  out.frames = {working_directory, torch_paths, package_paths, standard_paths};
  out.fail = fail;
  return out;
}

std::shared_ptr<Session> open_session(SessionOptions options) {
  auto session = Session::open(std::move(options));
  if (!session) {
    const std::string message = session.error().text();
    PyErr_SetString(PyExc_OSError, message.c_str());
    throw nb::python_error();
  }
  return *session;
}

// Python's handle on a session. The session itself must be closed while the interpreter is whole.
struct Handle {
  std::shared_ptr<Session> session;
};

nb::list hook_states(const Handle& handle) {
  nb::list out;
  for (const auto& site : handle.session->sites()) {
    nb::dict row;
    row["label"] = site->record.label;
    row["attribute"] = site->record.attribute;
    row["state"] = std::string(hook_state_name(site->record.state));
    row["detail"] = site->record.detail;
    row["fired"] = site->record.fired;
    row["errors"] = site->record.errors;
    row["last_error"] = site->record.last_error;
    row["restored"] = site->record.restored;
    row["seconds"] = static_cast<double>(site->spent_ns) * 1e-9;
    out.append(row);
  }
  return out;
}

// The options of `record` as a dict; {"exit", "text"} when there is nothing to run.
nb::dict parse_record(const std::vector<std::string>& arguments) {
  const cli::ParsedRecord parsed = cli::parse_record(arguments);
  nb::dict out;
  if (!parsed.options) {
    out["exit"] = parsed.exit;
    out["text"] = parsed.text;
    return out;
  }
  const cli::RecordOptions& options = *parsed.options;
  out["output"] = options.output;
  out["level"] = options.level;
  out["keep_caches"] = options.keep_caches;
  out["source"] = options.source;
  out["timing"] = options.timing;
  out["backend"] = options.backend;
  out["metadata"] = options.metadata;
  out["restickify"] = options.restickify;
  out["is_module"] = options.is_module;
  out["reference_model"] = options.reference_model;
  out["program"] = options.program;
  out["arguments"] = options.arguments;
  return out;
}

// The same for `debugify`.
nb::dict parse_debugify(const std::vector<std::string>& arguments) {
  const cli::ParsedDebugify parsed = cli::parse_debugify(arguments);
  nb::dict out;
  if (!parsed.options) {
    out["exit"] = parsed.exit;
    out["text"] = parsed.text;
    return out;
  }
  const cli::DebugifyOptions& options = *parsed.options;
  out["output"] = options.output;
  out["format"] = options.format;
  out["stages"] = options.stages;
  out["pass"] = options.pass;
  out["allow"] = options.allow;
  out["fields"] = options.fields;
  out["backend"] = options.backend;
  out["is_module"] = options.is_module;
  out["program"] = options.program;
  out["arguments"] = options.arguments;
  return out;
}

}  // namespace
}  // namespace kerntrail::probe

NB_MODULE(_native, m) {
  using namespace kerntrail::probe;
  nb::set_leak_warnings(false);  // hooks may outlive the interpreter's shutdown inside torch's own tables
  bind_hook_type(m);
  bind_tagged_type(m);
  nb::class_<Handle>(m, "Session")
      .def(
          "__init__",
          [](Handle* self, const std::string& path, bool replace, const std::string& source, bool timing, int level,
             const Pairs& run, const Pairs& settings, const std::vector<std::string>& torch_paths,
             const std::vector<std::string>& package_paths, const std::vector<std::string>& standard_paths,
             const std::string& working_directory, const Pairs& fail) {
            new (self) Handle{open_session(make_options(path, replace, source, timing, level, run, settings, torch_paths,
                                                        package_paths, standard_paths, working_directory, fail))};
          },
          nb::kw_only(), nb::arg("path"), nb::arg("replace"), nb::arg("source"), nb::arg("timing"), nb::arg("level"), nb::arg("run"),
          nb::arg("settings"), nb::arg("torch_paths"), nb::arg("package_paths"), nb::arg("standard_paths"),
          nb::arg("working_directory"), nb::arg("fail") = Pairs{})
      .def("install_hooks", [](Handle& h) { h.session->install_hooks(); })
      .def("close", [](Handle& h) { h.session->close(); })
      .def("abandon", [](Handle& h) { h.session->abandon(); })
      .def("hooks", &hook_states)
      .def_prop_ro("is_open", [](Handle& h) { return h.session->is_open(); })
      .def_prop_ro("is_partial", [](Handle& h) { return h.session->is_partial(); })
      .def_prop_ro("compile_count", [](Handle& h) { return h.session->compile_count(); })
      .def_prop_ro("observer_seconds", [](Handle& h) { return static_cast<double>(h.session->observer_ns()) * 1e-9; });
  m.def("parse_record", &parse_record, nb::arg("arguments"));
  m.def("parse_debugify", &parse_debugify, nb::arg("arguments"));
  nb::module_ spyre = m.def_submodule("spyre");
  kerntrail::python::bind_spyre(spyre);
  nb::module_ ledger = m.def_submodule("ledger");
  kerntrail::python::bind_ledger(ledger);
}
