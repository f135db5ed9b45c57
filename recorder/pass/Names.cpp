// Names.cpp: see Names.h.
#include "Names.h"

#include "Compat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/ConvertUTF.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

using namespace llvm;

namespace tracekit {

static constexpr size_t LongestName = 4096, LongestScope = 256;

StringRef globalName(const GlobalVariable &G) {
  SmallVector<DIGlobalVariableExpression *, 1> Debug;
  G.getDebugInfo(Debug);
  if (!Debug.empty())
    return Debug.front()->getVariable()->getName();
  bool IsC = G.isDeclaration() && !startsWith(G.getName(), "_Z") && !G.getName().contains('.');
  return IsC ? G.getName() : "";
}

StringRef namedMemory(const Value *Address) {
  const Value *Object = getUnderlyingObject(Address, /*MaxLookup=*/0);
  if (auto *Global = dyn_cast<GlobalVariable>(Object)) {
    SmallVector<DIGlobalVariableExpression *, 1> Sources;
    Global->getDebugInfo(Sources);
    return Sources.empty() ? Global->getName() : Sources.front()->getVariable()->getName();
  }
  if (auto *Local = dyn_cast<AllocaInst>(Object))
    return variableName(const_cast<AllocaInst *>(Local));
  return "";
}

std::string placeKey(const DILocation &At) {
  const DISubprogram *Function = At.getScope()->getSubprogram();
  StringRef Name = Function->getLinkageName().empty() ? Function->getName() : Function->getLinkageName();
  return (Name + ":" + At.getFilename() + ":" + Twine(At.getLine()) + ":" + Twine(At.getColumn())).str();
}

/// What `$Code$` stands for in a legacy name of Rust; "" if nothing.
static std::string rustEscape(StringRef Code) {
  unsigned Point;
  if (startsWith(Code, "u") && !Code.drop_front().getAsInteger(16, Point)) {
    char Text[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *End = Text;
    return ConvertCodePointToUTF8(Point, End) ? std::string(Text, End) : "";
  }
  return StringSwitch<StringRef>(Code)
      .Case("SP", "@")
      .Case("BP", "*")
      .Case("RF", "&")
      .Case("LT", "<")
      .Case("GT", ">")
      .Case("LP", "(")
      .Case("RP", ")")
      .Case("C", ",")
      .Default("")
      .str();
}

/// A path in Rust's notation, from the letters that C++'s mangling allows.
static std::string rustPath(StringRef Path) {
  std::string Text;
  while (!Path.empty()) {
    bool Begins = Text.empty() || StringRef(Text).take_back(2) == "::";
    if (Begins && startsWith(Path, "_$")) // an underscore comes before what is no letter
      Path = Path.drop_front();
    std::string Escaped = Path[0] == '$' ? rustEscape(Path.drop_front().split('$').first) : "";
    if (!Escaped.empty()) {
      Text += Escaped;
      Path = Path.drop_front().split('$').second;
    } else if (startsWith(Path, "..")) {
      Text += "::";
      Path = Path.drop_front(2);
    } else {
      Text += Path[0];
      Path = Path.drop_front();
    }
  }
  return Text;
}

/// Rust's legacy mangling is C++'s of a path whose last element is a hash; that says nothing to a reader and goes.
/// `Text`, as C++ has it, if it is no such path.
static std::string withoutRustHash(StringRef Text) {
  auto [Path, Rest] = Text.rsplit("::h");
  StringRef Suffix = Rest.drop_front(std::min<size_t>(16, Rest.size())); // of a clone: " (.llvm.123)"
  bool Hash = Rest.size() >= 16 && all_of(Rest.take_front(16), isHexDigit) && (Suffix.empty() || Suffix[0] == ' ');
  return Hash ? rustPath(Path) + Suffix.str() : Text.str();
}

/// GNU's string of C++ goes by the name that programs have for it.
static std::string withoutBasicString(std::string Text) {
  static constexpr StringLiteral Whole =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>";
  for (size_t At = 0; (At = Text.find(Whole.data(), At)) != std::string::npos;)
    Text.replace(At, Whole.size(), "std::string");
  return Text;
}

/// "" if the name is not mangled, or not in a way that LLVM knows.
static std::string demangled(StringRef Linkage) {
  std::string Name = Linkage.str(), Text;
  if (nonMicrosoftDemangle(Name.c_str(), Text))
    return startsWith(Linkage, "_ZN") ? withoutBasicString(withoutRustHash(Text)) : withoutBasicString(Text);
  if (!startsWith(Linkage, "_Z"))
    return "";
  // Since LLVM 18 it does not know what the parameters of a local class's template mean, of a generic lambda's call
  // say (https://github.com/llvm/llvm-project/issues/73521).
  std::unique_ptr<char, decltype(&std::free)> Short(demangleWithoutParameters(Name.c_str(), 0), &std::free);
  return Short ? withoutBasicString(Short.get()) : "";
}

std::string sourceName(StringRef Linkage) {
  std::string Text = demangled(Linkage);
  return Text.empty() || Text.size() > LongestName ? Linkage.str() : Text;
}

std::string sourceName(StringRef Linkage, const DISubprogram *Source) {
  std::string Text = demangled(Linkage);
  if (!Text.empty() && Text.size() <= LongestName)
    return Text;
  return (Source && Source->getLinkageName() == Linkage ? Source->getName() : Linkage).str();
}

std::string scopeName(const DISubprogram &Source) {
  StringRef Plain = Source.getName(), Linkage = Source.getLinkageName();
  std::string Text = demangled(Linkage.empty() ? Plain : Linkage);
  bool Mangled = startsWith(Plain, "_Z"); // as that of the parts of a function that OpenMP runs: of no use to a reader
  bool Short = Text.size() <= (Mangled ? LongestName : std::max(LongestScope, Plain.size()));
  return !Text.empty() && Short ? Text : Plain.str();
}

void keepLinkageNames(Module &M) {
  for (Function &F : M)
    if (DISubprogram *Source = F.getSubprogram();
        Source && Source->getLinkageName().empty() && Source->getName() != F.getName())
      Source->replaceLinkageName(MDString::get(M.getContext(), F.getName()));
}

bool isFortran(const DISubprogram &Unit) { return Unit.getUnit() && isFortranUnit(*Unit.getUnit()); }

bool isFortran(const DILocation &At) {
  const DISubprogram *Unit = At.getScope()->getSubprogram();
  return Unit && isFortran(*Unit);
}

} // namespace tracekit
