// SourceText.cpp: see SourceText.h.
#include "SourceText.h"

#include "Compat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace tracekit {

/// How deep included files are looked through for macros.
static constexpr unsigned DeepestInclude = 8;

static bool isWordCharacter(char C) { return isAlnum(C) || C == '_' || C == '$' || (C & 0x80); }

/// Calls `Use` with each identifier of `Text` until it returns true.
template <typename Callback> static bool anyWord(StringRef Text, Callback Use) {
  for (size_t At = 0; At < Text.size();) {
    size_t End = At;
    while (End < Text.size() && isWordCharacter(Text[End]))
      ++End;
    if (End > At && !isDigit(Text[At]) && Use(Text.slice(At, End)))
      return true;
    At = std::max(End, At + 1);
  }
  return false;
}

/// Where the comment or literal ends that begins at `At`; `At` if none begins there.
static size_t endOfUnread(StringRef Text, size_t At) {
  auto Behind = [&](StringRef End) { return std::min(Text.find(End, At + 2), Text.size() - End.size()) + End.size(); };
  StringRef Rest = Text.substr(At);
  if (startsWith(Rest, "/*"))
    return Behind("*/");
  if (startsWith(Rest, "//"))
    return std::min(Text.find('\n', At), Text.size());
  bool IsSeparator = Rest[0] == '\'' && At && isAlnum(Text[At - 1]); // of digits
  if ((Rest[0] != '"' && Rest[0] != '\'') || IsSeparator)
    return At;
  size_t End = At + 1;
  while (End < Text.size() && Text[End] != Rest[0] && Text[End] != '\n')
    End += Text[End] == '\\' ? 2 : 1;
  return std::min(End + 1, Text.size());
}

/// `Text` with spaces for comments and literals: each character keeps its place.
static std::string withoutUnread(StringRef Text) {
  std::string Result = Text.str();
  for (size_t At = 0; At < Text.size();) {
    size_t End = endOfUnread(Text, At);
    for (size_t K = At; K < End; ++K)
      if (Result[K] != '\n')
        Result[K] = ' ';
    At = std::max(End, At + 1);
  }
  return Result;
}

/// Calls `Use` with the offset and the text of each preprocessor directive, continued lines included.
template <typename Callback> static void eachDirective(StringRef Text, Callback Use) {
  for (size_t At = 0; At < Text.size();) {
    size_t End = At;
    do
      End = std::min(Text.find('\n', End), Text.size() - 1) + 1;
    while (End < Text.size() && Text.slice(At, End).rtrim("\r\n").take_back(1) == "\\");
    if (startsWith(Text.substr(At).ltrim(" \t"), "#"))
      Use(At, Text.slice(At, End));
    At = End;
  }
}

/// Whether a directive is a pragma about the loop behind it that compilers act on. OpenMP takes none beside its own:
/// gcc and clang refuse it between the directive and the `for`, and clang the directive between it and the `for`.
static bool isLoopPragma(StringRef Directive) {
  SmallVector<StringRef, 4> Words;
  SplitString(Directive.ltrim(" \t#"), Words);
  if (Words.size() < 2 || Words[0] != "pragma")
    return false;
  StringRef What = Words[1].take_while(isWordCharacter);
  if (What == "clang" || What == "GCC")
    What = Words.size() > 2 ? Words[2].take_while(isWordCharacter) : "";
  static constexpr StringLiteral Known[] = {"unroll", "nounroll", "unroll_and_jam", "nounroll_and_jam",
                                            "loop",   "ivdep",    "novector"};
  return is_contained(Known, What);
}

/// Whether a directive of OpenMP lets the iterations of the loop behind it run in any order.
static bool isConcurrentDirective(StringRef Directive) {
  SmallVector<StringRef, 4> Words;
  SplitString(Directive.ltrim(" \t#"), Words);
  return Words.size() > 2 && Words[0] == "pragma" && Words[1] == "omp" &&
         anyWord(Directive, [](StringRef Word) { return Word == "loop" || Word == "concurrent"; });
}

/// Adds the names that a `threadprivate` directive lists, if `Text` holds one.
static void addThreadPrivateIn(StringRef Text, StringSet<> &Names) {
  size_t At = Text.find("threadprivate");
  if (At == StringRef::npos)
    return;
  StringRef List = Text.substr(At).split('(').second.split(')').first;
  anyWord(List, [&](StringRef Word) {
    Names.insert(Word);
    return false;
  });
}

void SourceText::addMacros(StringRef Path, File &To, StringSet<> &Seen, unsigned Depth) {
  if (Depth > DeepestInclude || !Seen.insert(Path).second)
    return;
  auto Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return;
  StringRef Original = (*Buffer)->getBuffer();
  std::string Text = withoutUnread(Original);
  eachDirective(Text, [&](size_t At, StringRef Directive) {
    StringRef Rest = Directive.ltrim(" \t#");
    if (startsWith(Rest, "define")) {
      StringRef Body = Rest.drop_front(6).ltrim();
      StringRef Name = Body.take_while(isWordCharacter);
      (To.Macros[Name] += ' ') += Body.drop_front(Name.size());
    } else if (startsWith(Rest, "pragma")) {
      addThreadPrivateIn(Rest, To.ThreadPrivate);
    } else if (startsWith(Rest, "include")) {
      StringRef Included = Original.substr(At, Directive.size()).split('"').second.split('"').first;
      SmallString<256> Next = sys::path::parent_path(Path);
      sys::path::append(Next, Included);
      if (!Included.empty())
        addMacros(Next, To, Seen, Depth + 1);
    }
  });
  if (Depth)
    return;
  eachDirective(std::string(Text), [&](size_t At, StringRef Directive) {
    if (isLoopPragma(Directive))
      To.LoopPragmas.push_back(At + Directive.size());
    if (isConcurrentDirective(Directive))
      To.Concurrent.push_back({At, At + Directive.size()});
    for (size_t K = At; K < At + Directive.size(); ++K)
      if (Text[K] != '\n')
        Text[K] = ' ';
  });
  To.Text = std::move(Text);
}

static SmallString<256> pathOf(const DIFile &Of) {
  SmallString<256> Path;
  if (!sys::path::is_absolute(Of.getFilename()))
    Path = Of.getDirectory();
  sys::path::append(Path, Of.getFilename());
  return Path;
}

const SourceText::File &SourceText::read(const DIFile &Of) {
  SmallString<256> Path = pathOf(Of);
  auto [Entry, New] = Files.try_emplace(Path);
  File &Result = Entry->second;
  if (!New)
    return Result;
  StringSet<> Seen;
  Result.Form = fortranForm(Path);
  if (Result.Form == FortranForm::None)
    addMacros(Path, Result, Seen, 0);
  else if (auto Buffer = MemoryBuffer::getFile(Path)) {
    Result.Form = fortranForm(Path, (*Buffer)->getBuffer());
    Result.Text = fortranCode((*Buffer)->getBuffer(), Result.Form, Result.LoopPragmas);
    std::string Small = (*Buffer)->getBuffer().lower();
    for (size_t At = 0; (At = StringRef(Small).find("$omp threadprivate", At)) != StringRef::npos; ++At)
      addThreadPrivateIn(StringRef(Small).substr(At), Result.ThreadPrivate);
  }
  Result.Lines.push_back(0);
  for (size_t At = 0; (At = Result.Text.find('\n', At)) != std::string::npos;)
    Result.Lines.push_back(++At);
  return Result;
}

/// Whether a word of `Text` is part of a longer name there, `outer::name`, `object.name` or `object%name`: no clause
/// has those.
static bool isQualified(StringRef Text, StringRef Word, bool IsFortran) {
  StringRef Before = Text.take_front(Word.data() - Text.data()).rtrim();
  if (IsFortran)
    return Before.take_back(1) == "%";
  return Before.take_back(2) == "::" || Before.take_back(2) == "->" || Before.take_back(1) == ".";
}

bool SourceText::leadsTo(const File &In, StringRef Text, StringRef Name, StringSet<> &Expanded) const {
  return anyWord(Text, [&](StringRef Word) {
    if (Word == Name && !isQualified(Text, Word, In.Form != FortranForm::None))
      return true;
    auto Macro = In.Macros.find(Word);
    return Macro != In.Macros.end() && Expanded.insert(Word).second && leadsTo(In, Macro->second, Name, Expanded);
  });
}

/// Where a place lies in a file's text; StringRef::npos if there is no such line.
size_t SourceText::offsetOf(const File &In, unsigned Line, unsigned Column) {
  if (!Line || Line >= In.Lines.size())
    return StringRef::npos;
  return std::min(In.Lines[Line - 1] + (Column ? Column - 1 : 0), In.Text.size());
}

bool SourceText::isFor(const DILocation &At) {
  const File &In = read(*At.getFile());
  size_t Here = offsetOf(In, At);
  if (Here == StringRef::npos)
    return true;
  if (In.Form != FortranForm::None)
    return isFortranDo(StringRef(In.Text).substr(Here));
  StringRef Word = StringRef(In.Text).substr(Here).take_while(isWordCharacter);
  auto Macro = In.Macros.find(Word);
  if (Macro == In.Macros.end())
    return Word == "for";
  StringRef Body = Macro->second;
  Body = Body.ltrim();
  if (Body.take_front(1) == "(") // parameters
    Body = Body.drop_front(std::min(Body.find(')'), Body.size() - 1) + 1).ltrim(" \t\r\n\\");
  return Body.take_while(isWordCharacter) == "for";
}

/// The test in the head of a `for` that a text begins with; "" if there is none.
static StringRef testOf(StringRef Text) {
  unsigned Depth = 0;
  size_t Begin = StringRef::npos;
  for (size_t K = 0; K < Text.size(); ++K) {
    char C = Text[K];
    Depth += StringRef("([{").contains(C);
    if (StringRef(")]}").contains(C) && (!Depth || !--Depth))
      break;
    if (C == ';' && Depth == 1 && Begin != StringRef::npos)
      return Text.slice(Begin, K);
    if (C == ';' && Depth == 1)
      Begin = K + 1;
  }
  return "";
}

bool SourceText::castsInTest(const DILocation &At, StringRef Counter) {
  const File &In = read(*At.getFile());
  size_t Here = offsetOf(In, At);
  StringRef Text = Here == StringRef::npos ? StringRef() : StringRef(In.Text).substr(Here);
  if (Text.take_while(isWordCharacter) != "for")
    return false;
  StringRef Test = testOf(Text);
  return anyWord(Test, [&](StringRef Word) {
    StringRef Before = Test.take_front(Word.data() - Test.data()).rtrim();
    if (Word != Counter || Before.empty())
      return false;
    char Last = Before.back();
    Before = Before.drop_back().rtrim();
    return Last == ')' || (Last == '(' && !Before.empty() && (isWordCharacter(Before.back()) || Before.back() == '>'));
  });
}

bool SourceText::replacesWords(const DIFile &Of) {
  static constexpr StringLiteral Words[] = {"omp",          "parallel",    "for",      "private",
                                            "firstprivate", "lastprivate", "reduction"};
  const File &In = read(Of);
  return any_of(Words, [&](StringRef Word) { return In.Macros.count(Word) > 0; });
}

bool SourceText::isDoConcurrent(const DILocation &At) {
  const File &In = read(*At.getFile());
  size_t Here = offsetOf(In, At);
  return Here != StringRef::npos && In.Form != FortranForm::None &&
         isFortranConcurrent(StringRef(In.Text).substr(Here));
}

bool SourceText::hasLoopPragma(const DILocation &At) {
  const File &In = read(*At.getFile());
  size_t Here = offsetOf(In, At);
  return Here != StringRef::npos && any_of(In.LoopPragmas, [&](size_t End) {
           return End <= Here && StringRef(In.Text).slice(End, Here).trim().empty();
         });
}

bool SourceText::isConcurrent(const DILocation &At) {
  const File &In = read(*At.getFile());
  size_t Here = offsetOf(In, At);
  return any_of(In.Concurrent, [&](auto Each) { return Each.first <= Here && Here < Each.second; });
}

bool SourceText::hasName(const DILocation &At, StringRef Name) {
  const File &In = read(*At.getFile());
  size_t Here = offsetOf(In, At);
  if (Here == StringRef::npos)
    return true;
  static constexpr StringLiteral Ends = ";{}";
  StringRef Text = In.Text;
  StringSet<> Expanded;
  if (In.Form != FortranForm::None)
    return leadsTo(In, fortranStatement(Text, Here, In.Form), Name, Expanded);
  size_t Begin = Text.find_last_of(Ends, Here);
  size_t End = Text.find_first_of(Ends, Here);
  return leadsTo(In, Text.slice(Begin == StringRef::npos ? 0 : Begin, End), Name, Expanded);
}

bool SourceText::hasDeclaration(const DILocation &Begin, std::pair<unsigned, unsigned> End) {
  const File &In = read(*Begin.getFile());
  size_t From = offsetOf(In, Begin), To = offsetOf(In, End.first, End.second);
  return From < To && To != StringRef::npos &&
         anyWord(
             StringRef(In.Text).slice(From, To), [](StringRef Word) { return Word == "extern" || Word == "using"; });
}

bool SourceText::isConstexpr(const DISubprogram &Of) {
  if (!Of.getLine() || !Of.getFile())
    return false;
  const File &In = read(*Of.getFile());
  if (Of.getLine() >= In.Lines.size())
    return false;
  if (In.Form != FortranForm::None)
    return anyWord(fortranStatement(In.Text, In.Lines[Of.getLine() - 1], In.Form),
                   [](StringRef Word) { return Word == "pure" || Word == "elemental"; });
  static constexpr StringLiteral Ends = ";{}";
  StringRef Text = In.Text, Name = Of.getName().take_while(isWordCharacter);
  size_t At = Text.find(Name, In.Lines[Of.getLine() - 1]);
  At = std::min(At, In.Lines[Of.getLine()] - 1);
  size_t Begin = Text.find_last_of(Ends, At), End = Text.find_first_of(Ends, At);
  StringRef Head = Text.slice(Begin == StringRef::npos ? 0 : Begin, End);
  return any_of(ArrayRef<StringRef>{"constexpr", "consteval"}, [&](StringRef Word) {
    StringSet<> Expanded;
    return Head.contains_insensitive(Word) || leadsTo(In, Head, Word, Expanded);
  });
}

/// Whether what stands before a name in a text is the beginning of a structured binding, up to that name.
static bool beginsBinding(StringRef Before) {
  Before = Before.rtrim();
  while (!Before.empty() && (isWordCharacter(Before.back()) || isSpace(Before.back()) || Before.back() == ','))
    Before = Before.drop_back();
  if (Before.empty() || Before.back() != '[')
    return false;
  Before = Before.drop_back().rtrim(" \t\r\n&");
  return Before.take_back(4) == "auto" && (Before.size() == 4 || !isWordCharacter(Before[Before.size() - 5]));
}

static bool isReference(const DIType *Of) {
  return Of && (Of->getTag() == dwarf::DW_TAG_reference_type || Of->getTag() == dwarf::DW_TAG_rvalue_reference_type);
}

bool SourceText::isInBinding(const DILocalVariable &V) {
  if (V.getName().empty() || startsWith(V.getName(), "__"))
    return false;
  if (!V.getLine() || !V.getFile()) // clang gives no place to what std::get gives a name to, nor to OpenMP's copies
    return V.isArtificial() && !V.isParameter() && isReference(V.getType());
  const File &In = read(*V.getFile());
  if (V.getLine() > In.Lines.size())
    return false;
  StringRef Text = In.Text;
  size_t Begin = In.Lines[V.getLine() - 1];
  StringRef Line = Text.slice(Begin, Text.find('\n', Begin));
  return anyWord(Line, [&](StringRef Word) {
    return Word == V.getName() && beginsBinding(Text.take_front(Word.data() - Text.data()));
  });
}

void SourceText::addThreadPrivate(const DIFile &Of, bool IsCompiled, StringSet<> &Names) {
  auto Buffer = MemoryBuffer::getFile(pathOf(Of));
  if (!Buffer || (!IsCompiled && !(*Buffer)->getBuffer().contains_insensitive("threadprivate")))
    return; // most headers: not worth reading for macros
  for (const auto &Each : read(Of).ThreadPrivate)
    Names.insert(Each.getKey());
}

} // namespace tracekit
