#include "witness.h"

#include <algorithm>
#include <atomic>

#include "base/strings.h"
#include "python_text.h"

namespace kerntrail::probe {
namespace {

constexpr std::size_t kKeptPrints = 512;  // of one kernel; more are of templates that were tried and thrown away

std::atomic<std::int64_t> next_serial{1};

}  // namespace

Witness::Witness() : serial_(next_serial++) {}

std::int32_t Witness::source_of(UnitId unit) {
  const auto [it, fresh] = by_unit_.try_emplace(unit, static_cast<std::int32_t>(sources_.size()));
  if (fresh) sources_.push_back({unit, {}});
  return it->second;
}

std::int32_t Witness::made_at(FrameRef frame) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const FrameRef& known = sources_[i].maker;
    if (known.code.is_valid() && known.code.ptr() == frame.code.ptr() && known.line == frame.line)
      return static_cast<std::int32_t>(i);
  }
  sources_.push_back({UnitId::kNone, std::move(frame)});
  return static_cast<std::int32_t>(sources_.size() - 1);
}

std::int32_t Witness::marked(std::int64_t mark) const {
  if ((mark >> 32) != serial_) return kNothing;
  const auto source = static_cast<std::int32_t>(mark & 0x7FFFFFFF);
  return static_cast<std::size_t>(source) < sources_.size() ? source : kNothing;
}

std::int32_t Witness::op_of(nb::handle target) {
  if (const auto known = by_target_.find(target.ptr()); known != by_target_.end()) return known->second.second;
  std::string name = PyUnicode_Check(target.ptr()) ? text(target).value_or("") : std::string("output");
  while (!name.empty() && name.back() >= '0' && name.back() <= '9' && name != "log2" && name != "exp2" &&
         name != "log10" && name != "atan2")
    name.pop_back();
  const auto [it, fresh] = by_op_.try_emplace(name, static_cast<std::int32_t>(ops_.size()));
  if (fresh) ops_.push_back({name, model::does_of_op(name)});
  by_target_.emplace(target.ptr(), std::pair(nb::borrow(target), it->second));
  return it->second;
}

void Witness::lowering(nb::handle operation, UnitId unit) {
  if (by_operation_.try_emplace(operation.ptr(), operations_.size()).second)
    operations_.emplace_back(nb::borrow(operation), unit);
}

UnitId Witness::lowered_for(nb::handle operation) const {
  if (const auto known = by_operation_.find(operation.ptr()); known != by_operation_.end())
    return operations_[known->second].second;
  const auto name = text(attribute(operation, "operation_name"));
  if (!name) return UnitId::kNone;
  for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
    if (text(attribute(it->first, "operation_name")) == name) return it->second;
  }
  return UnitId::kNone;
}

void Witness::wrote(nb::handle buffer, std::size_t size) {
  const auto known = buffers_.find(buffer.ptr());
  if (size == 0) return;
  if (known != buffers_.end() && known->second.lines.size() >= size) known->second.lines.resize(size - 1);  // emptied
  if (running.empty()) return;
  Buffer& entry = known != buffers_.end() ? known->second : buffers_[buffer.ptr()];
  if (!entry.keep.is_valid()) entry.keep = nb::borrow(buffer);
  entry.lines.resize(size, kNothing);
  entry.lines.back() = static_cast<std::int32_t>(lines_.size());
  lines_.push_back({running.back(), {}});
}

// Lines [first, size) of `to` are all `from_size` lines of `from` (none of it where they were a plain text): a line
// that nobody is known to have written is the running one's.
void Witness::copied(nb::handle to, std::size_t first, std::size_t size, nb::handle from, std::size_t from_size) {
  const auto source = from.is_valid() ? buffers_.find(from.ptr()) : buffers_.end();
  const bool aligned = source != buffers_.end() && size - first == from_size;
  std::vector<std::int32_t> lines(size - first, kNothing);
  if (aligned) {
    for (std::size_t i = 0; i < lines.size() && i < source->second.lines.size(); ++i)
      lines[i] = source->second.lines[i];
  }
  if (!running.empty()) {
    std::int32_t own = kNothing;
    for (std::int32_t& line : lines) {
      if (line != kNothing) continue;
      if (own == kNothing) {
        own = static_cast<std::int32_t>(lines_.size());
        lines_.push_back({running.back(), {}});
      }
      line = own;
    }
  }
  const bool any = std::any_of(lines.begin(), lines.end(), [](std::int32_t line) { return line != kNothing; });
  const auto known = buffers_.find(to.ptr());
  if (!any && known == buffers_.end()) return;
  Buffer& entry = known != buffers_.end() ? known->second : buffers_[to.ptr()];
  if (!entry.keep.is_valid()) entry.keep = nb::borrow(to);
  entry.lines.resize(first, kNothing);
  entry.lines.insert(entry.lines.end(), lines.begin(), lines.end());
}

void Witness::filtered(nb::handle buffer, nb::handle before, nb::handle after) {
  const auto known = buffers_.find(buffer.ptr());
  if (known == buffers_.end() || !PyList_Check(before.ptr()) || !PyList_Check(after.ptr())) return;
  std::vector<std::int32_t>& lines = known->second.lines;
  std::vector<std::int32_t> kept;
  Py_ssize_t at = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(after.ptr()); ++i, ++at) {
    while (at < PyList_GET_SIZE(before.ptr()) && PyList_GET_ITEM(before.ptr(), at) != PyList_GET_ITEM(after.ptr(), i))
      ++at;
    kept.push_back(static_cast<std::size_t>(at) < lines.size() ? lines[static_cast<std::size_t>(at)] : kNothing);
  }
  lines = std::move(kept);
}

void Witness::named(nb::handle variable, std::size_t line) {
  if (line < lines_.size()) variables_.insert_or_assign(variable.ptr(), std::pair(nb::borrow(variable), line));
}

void Witness::given_again(nb::handle variable) {
  const auto known = variables_.find(variable.ptr());
  if (known == variables_.end() || running.empty()) return;
  WitnessLine& line = lines_[known->second.second];
  const std::int32_t source = running.back().source;
  if (source == kNothing || line.by.source == source) return;
  if (std::find(line.also.begin(), line.also.end(), source) == line.also.end()) line.also.push_back(source);
}

// As the buffer prints itself: a line that was taken back is left out, one of several lines counts as several.
void Witness::printed(nb::handle buffer, nb::handle lines) {
  const auto known = buffers_.find(buffer.ptr());
  if (known == buffers_.end() || !PyList_Check(lines.ptr())) return;
  const std::vector<std::int32_t>& written = known->second.lines;
  Printed out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lines.ptr()); ++i) {
    nb::object line = nb::borrow(PyList_GET_ITEM(lines.ptr(), i));
    if (!PyUnicode_Check(line.ptr())) {
      if (PyTuple_Check(line.ptr()) || !PyCallable_Check(line.ptr())) continue;  // a context, which prints nothing
      line = nb::steal(PyObject_CallNoArgs(line.ptr()));
      if (!line.is_valid()) return clear_error();
      if (!PyUnicode_Check(line.ptr())) continue;
    }
    const auto shown = str_view(line);
    if (!shown) continue;
    const auto at = static_cast<std::size_t>(i);
    const std::int32_t by = at < written.size() ? written[at] : kNothing;
    for (const std::string_view part : base::split(*shown, '\n')) {
      const std::string_view trimmed = base::trim(part);
      out.text.emplace_back(trimmed);
      // The name of a helper function is filled in later.
      out.lines.push_back(trimmed.empty() || trimmed.find("{name}") != std::string_view::npos ? kNothing : by);
      if (out.lines.back() != kNothing) ++out.known;
    }
  }
  if (out.known == 0) return;
  if (printed_.size() >= kKeptPrints) printed_.pop_front();
  printed_.push_back(std::move(out));
}

// Puts what was printed where `text` has the same lines in the same order, and where nothing was put before. Lines
// that nobody wrote may differ: names of kernels are filled in after printing.
bool Witness::place(const Printed& printed, const std::vector<std::string_view>& text,
                    std::vector<std::int32_t>& out) const {
  std::size_t anchor = 0;
  bool is_there = false;
  while (printed.lines[anchor] == kNothing) ++anchor;
  for (std::size_t at = anchor; at < text.size(); ++at) {
    if (text[at] != printed.text[anchor]) continue;
    const std::size_t shift = at - anchor;
    bool reads = true, is_free = true;
    for (std::size_t i = anchor; reads && i < printed.text.size(); ++i) {
      if (printed.lines[i] == kNothing) continue;
      reads = shift + i < text.size() && text[shift + i] == printed.text[i];
      is_free = is_free && reads && out[shift + i] == kNothing;
    }
    is_there = is_there || reads;
    if (!reads || !is_free) continue;
    for (std::size_t i = anchor; i < printed.text.size(); ++i) {
      if (printed.lines[i] != kNothing) out[shift + i] = printed.lines[i];
    }
  }
  return is_there;
}

std::vector<TextLine> Witness::take(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : base::split(text, '\n')) lines.push_back(base::trim(line));
  std::vector<std::int32_t> found(lines.size(), kNothing);
  // The whole text was printed last but for what came after; parts of it were printed before.
  std::vector<Printed*> order;
  for (auto it = printed_.rbegin(); it != printed_.rend(); ++it) order.push_back(&*it);
  std::stable_sort(order.begin(), order.end(), [](const Printed* a, const Printed* b) { return a->known > b->known; });
  for (Printed* printed : order) printed->is_used = place(*printed, lines, found);
  std::vector<TextLine> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != kNothing)
      out.push_back({static_cast<std::int64_t>(i + 1), lines_[static_cast<std::size_t>(found[i])]});
  }
  std::erase_if(printed_, [](const Printed& printed) { return printed.is_used; });
  return out;
}

}  // namespace kerntrail::probe
