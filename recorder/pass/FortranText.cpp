// FortranText.cpp: see FortranText.h.
#include "FortranText.h"

#include "Compat.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace tracekit {

FortranForm fortranForm(StringRef Path) {
  static constexpr StringLiteral Fixed[] = {".f", ".for", ".ftn", ".fpp", ".f77"};
  static constexpr StringLiteral Free[] = {".f90", ".f95", ".f03", ".f08", ".f18"};
  std::string Suffix = sys::path::extension(Path).lower();
  return is_contained(Free, Suffix)    ? FortranForm::Free
         : is_contained(Fixed, Suffix) ? FortranForm::Fixed
                                       : FortranForm::None;
}

static bool isNameCharacter(char C) { return isAlnum(C) || C == '_'; }

/// Whether a line of fixed form is a comment by its first column.
static bool isFixedComment(StringRef Line) { return !Line.empty() && StringRef("c*").contains(toLower(Line[0])); }

/// Whether a line has a letter in the first five columns, where fixed form has labels, and is no comment there.
static bool isFreeAlone(StringRef Line) {
  if (Line.empty() || StringRef("c*d!#").contains(toLower(Line[0])))
    return false;
  return any_of(Line.take_front(5).drop_while([](char C) { return C == ' ' || isDigit(C); }).take_front(1), isAlpha);
}

FortranForm fortranForm(StringRef Path, StringRef Text) {
  FortranForm Form = fortranForm(Path);
  while (Form == FortranForm::Fixed && !Text.empty()) {
    auto [Line, Rest] = Text.split('\n');
    if (isFreeAlone(Line))
      return FortranForm::Free;
    Text = Rest;
  }
  return Form;
}

static bool isDirective(StringRef Comment) {
  std::string Word = Comment.drop_front().take_until([](char C) { return isSpace(C); }).lower();
  static constexpr StringLiteral Known[] = {"$omp", "$acc", "dir$", "gcc$", "dec$", "ibm*"};
  return is_contained(Known, Word);
}

/// Blanks the comments and the literals of one line; returns whether it ends in a directive.
static bool blank(MutableArrayRef<char> Line, FortranForm Form) {
  char Quote = 0;
  auto Spaces = [&](size_t From) { std::fill(Line.begin() + From, Line.end(), ' '); };
  StringRef Whole(Line.data(), Line.size());
  if (Form == FortranForm::Fixed && isFixedComment(Whole)) {
    bool Found = isDirective(Whole);
    Spaces(0);
    return Found;
  }
  for (size_t At = 0; At < Line.size(); ++At) {
    char C = Line[At];
    if (!Quote && C == '!') {
      bool Found = isDirective(Whole.substr(At));
      Spaces(At);
      return Found;
    }
    if (C == '\'' || C == '"')
      Quote = !Quote ? C : Quote == C ? 0 : Quote;
    Line[At] = Quote || C == '\'' || C == '"' ? ' ' : toLower(C);
  }
  return false;
}

std::string fortranCode(StringRef Text, FortranForm Form, std::vector<size_t> &Directives) {
  std::string Code = Text.str();
  for (size_t At = 0; At < Code.size();) {
    size_t End = std::min(Code.find('\n', At), Code.size());
    if (blank(MutableArrayRef<char>(Code.data() + At, End - At), Form))
      Directives.push_back(End);
    At = End + 1;
  }
  return Code;
}

static bool continuesFixed(StringRef Line) {
  return Line.size() > 5 && Line.take_front(5).trim().empty() && Line[5] != ' ' && Line[5] != '0' && Line[5] != '\t';
}

StringRef fortranStatement(StringRef Code, size_t At, FortranForm Form) {
  auto Begin = [&](size_t Place) { return Place ? Code.rfind('\n', Place - 1) + 1 : 0; };
  auto End = [&](size_t Place) { return std::min(Code.find('\n', Place), Code.size()); };
  auto GoesOn = [&](size_t Line, size_t Next) { // whether the line that begins at `Next` continues the other
    return Form == FortranForm::Fixed ? continuesFixed(Code.slice(Next, End(Next)))
                                      : Code.slice(Line, End(Line)).rtrim().take_back(1) == "&";
  };
  size_t First = Begin(At), Last = End(At);
  while (First && GoesOn(Begin(First - 1), First))
    First = Begin(First - 1);
  while (Last + 1 < Code.size() && GoesOn(Begin(Last), Last + 1))
    Last = End(Last + 1);
  return Code.slice(First, Last);
}

/// What follows `do`, perhaps behind the construct's name, and its label; the words in front of that are dropped.
static StringRef afterDo(StringRef &Text) {
  auto Name = [&] {
    StringRef Word = Text.take_while(isNameCharacter);
    Text = Text.drop_front(Word.size()).ltrim(" \t");
    return Word;
  };
  StringRef Word = Name();
  if (Word != "do" && Text.take_front(1) == ":") {
    Text = Text.drop_front().ltrim(" \t");
    Word = Name();
  }
  if (Word != "do")
    return "";
  Text = Text.drop_while([](char C) { return isDigit(C); }).ltrim(" \t");
  if (Text.take_front(1) == ",")
    Text = Text.drop_front().ltrim(" \t");
  return Name();
}

bool isFortranDo(StringRef Text) { return !afterDo(Text).empty() && Text.take_front(1) == "="; }

bool isFortranConcurrent(StringRef Text) { return afterDo(Text) == "concurrent" && Text.take_front(1) == "("; }

} // namespace tracekit
