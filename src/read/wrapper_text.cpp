#include "read/wrapper_text.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/strings.h"

namespace kerntrail::read {
namespace {

using base::trim;

// Namespaces of the wrapper's header that hold kernels and nothing else.
constexpr std::array<std::string_view, 5> kKernelNamespaces{"extern_kernels.", "torch.ops.", "aten.", "inductor_ops.",
                                                            "_quantized."};
// Lines of C++ that declare what others call.
constexpr std::array<std::string_view, 10> kDeclarations{
    "extern ", "void ", "static ", "inline ", "template", "#", "typedef", "AOTI_TORCH_EXPORT", "//", "using "};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

template <std::size_t N>
bool starts_with_any(std::string_view text, const std::array<std::string_view, N>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return text.starts_with(p); });
}

// `buf0 = f(x)`, `(a, b) = f(x)`: what is assigned; other lines as they are. `f(x, key=1)` holds no " = ".
std::string_view assigned(std::string_view line) {
  const std::size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return line;
  const std::string_view target = line.substr(0, equals);
  if (!target.starts_with('(') && target.find('(') != std::string_view::npos) return line;
  return trim(line.substr(equals + 3));
}

// "extern_kernels.mm" of "extern_kernels.mm(a, b)"; empty where the expression is no call of a dotted name.
std::string_view callee(std::string_view expression) {
  std::size_t end = 0;
  while (end < expression.size() && (is_word(expression[end]) || expression[end] == '.')) ++end;
  if (end == 0 || end == expression.size() || expression[end] != '(') return {};
  return expression.substr(0, end);
}

// Follows one text, a line at a time: inside which string literal, which function.
class Scanner {
 public:
  explicit Scanner(const std::unordered_set<std::string>& kernels) : kernels_(kernels) {}

  void line(std::string_view text) {
    ++number_;
    const bool inside = !quote_.empty();
    follow_quotes(text);
    if (inside) {
      if (cpp_) cpp_line(trim(text));
      if (quote_.empty()) cpp_ = false;
      return;
    }
    const std::string_view code = trim(text);
    if (code.empty() || code.starts_with('#')) return;
    if (code.starts_with("cpp_wrapper_src")) expects_cpp_ = true;
    if (!quote_.empty()) {
      cpp_ = expects_cpp_;
      expects_cpp_ = false;
    }
    enter(text, code);
    if (function_.empty() || !python_line(code)) mention(code);
  }

  WrapperText result() {
    visit("call");
    for (const std::string& name : order_) visit(name);
    return std::move(result_);
  }

 private:
  struct Step {
    WrapperCall call;      // empty name: another function is called here
    std::string function;  // which
  };

  void follow_quotes(std::string_view text) {
    for (std::size_t i = 0; i + 2 < text.size(); ++i) {
      const std::string_view three = text.substr(i, 3);
      if (quote_.empty() && text[i] == '#') return;
      if (quote_.empty() ? three == "'''" || three == "\"\"\"" : three == quote_) {
        quote_ = quote_.empty() ? std::string(three) : std::string();
        i += 2;
      }
    }
  }

  void enter(std::string_view text, std::string_view code) {
    if (code.starts_with("def ")) {
      const std::string_view name = callee(code.substr(4));
      function_ = name;
      if (steps_.try_emplace(function_).second) order_.push_back(function_);
    } else if (text.front() != ' ' && text.front() != '\t' && !code.starts_with(')')) {
      function_.clear();
    }
  }

  // True where the line calls a kernel.
  bool python_line(std::string_view code) {
    const std::string_view expression = assigned(code);
    constexpr std::string_view kPartitions = "self.partitions[";
    if (expression.starts_with(kPartitions)) {
      const std::string_view rest = expression.substr(kPartitions.size());
      steps_[function_].push_back({{}, "partition_" + std::string(rest.substr(0, rest.find(']')))});
      return false;
    }
    const std::string_view name = callee(expression);
    if (name.empty()) return false;
    // Triton kernels are called by .run(), CUDA C++ ones by a member of their own name.
    const std::string head(name.substr(0, name.find('.')));
    if (kernels_.contains(std::string(name)) || starts_with_any(name, kKernelNamespaces)) {
      add(std::string(name), code);
      return true;
    }
    if (kernels_.contains(head)) {
      add(head, code);
      return true;
    }
    steps_[function_].push_back({{}, std::string(name)});
    return false;
  }

  void mention(std::string_view code) {
    bool first = true;
    for (std::size_t i = 0; i < code.size();) {
      const std::string word(next_word(code, i));
      const bool target = first && code.substr(i).starts_with(" = ");  // its definition
      if (!word.empty() && !target && kernels_.contains(word)) result_.mentioned.insert(word);
      first = first && word.empty();
    }
  }

  // The word that begins at i; past it, or past one other character.
  static std::string_view next_word(std::string_view code, std::size_t& i) {
    const std::size_t start = i;
    while (i < code.size() && is_word(code[i])) ++i;
    if (i == start) {
      ++i;
      return {};
    }
    return code.substr(start, i - start);
  }

  // C++ wraps calls in checks: any known name before a bracket is one.
  void cpp_line(std::string_view code) {
    if (starts_with_any(code, kDeclarations)) return;
    for (std::size_t i = 0; i < code.size();) {
      std::string word(next_word(code, i));
      if (word.empty() || i == code.size() || code[i] != '(') continue;
      if (!kernels_.contains(word) && word.starts_with("call_")) word.erase(0, 5);  // the launcher of a Triton kernel
      if (kernels_.contains(word)) add(std::move(word), code);
    }
  }

  void add(std::string name, std::string_view code) {
    if (steps_.try_emplace(function_).second) order_.push_back(function_);
    steps_[function_].push_back({{std::move(name), function_, number_, std::string(code)}, {}});
  }

  void visit(const std::string& function) {
    const auto found = steps_.find(function);
    if (found == steps_.end() || !visited_.insert(function).second) return;
    for (const Step& step : found->second) {
      if (step.call.name.empty()) {
        visit(step.function);
      } else {
        result_.calls.push_back(step.call);
      }
    }
  }

  const std::unordered_set<std::string>& kernels_;
  std::string quote_;  // of the string literal that the next line begins in
  bool expects_cpp_ = false, cpp_ = false;
  std::string function_;  // empty at the module's own level
  std::int64_t number_ = 0;
  std::unordered_map<std::string, std::vector<Step>> steps_;  // by function
  std::vector<std::string> order_;  // functions as they are defined
  std::unordered_set<std::string> visited_;
  WrapperText result_;
};

}  // namespace

WrapperText read_wrapper(std::string_view wrapper, const std::unordered_set<std::string>& kernels) {
  Scanner scanner(kernels);
  for (const std::string_view text : base::split_lines(wrapper)) scanner.line(text);
  return scanner.result();
}

}  // namespace kerntrail::read
